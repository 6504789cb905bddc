// Whether what real clients did lies in herd's envelope, and whether this file would notice if it didn't. Pure: it takes
// the notes of clients.mjs and the row of `herd list presets --json`, and starts, measures and prints nothing.

// How far a delay may lie outside while the event loop was free, in ms. Timers are set in the turn that saw the end, whose
// clock was read when it began, and count whole ms; a dial may be some turns of the loop behind its timer.
const EARLY = 3;
const LATE = 60;
// Between two ticks of clients.mjs and clients.py.
const PERIOD = 10;
// How late the first of all clients may be where there is no randomness: it has nobody before it in the loop's turn.
const FIRST = 20;
// What the loop's own lateness may explain at most: a delay that needs more is not judged, for or against.
const BUSY = 100;
// Of how many clients a retry must have been judged to count as checked.
const ENOUGH = 5;

/** What became of one client since it lost its connection: the end and the dial around each retry, and its fate. */
function life(events) {
  const retries = [];
  let fate = "never connected";
  let open = 0;
  let ended;
  for (const [what, at] of events) {
    if (what === "dial") {
      if (open === 0 && (fate === "away" || fate === "dead")) retries.push({ from: ended, to: at });
      open += 1;
    } else if (what === "end") {
      open -= 1;
      ended = at;
      if (open === 0 && fate === "connected") fate = "away";
    } else if (what === "connected") {
      if (fate === "away") fate = "let in";
    } else if (what === "ready") {
      fate = fate === "never connected" ? "connected" : "back";
    } else {
      fate = "dead";
    }
  }
  return { retries, fate };
}

/** How much later than asked for the ticks of the loop were around an interval, in all. */
function busyIn(busy, from, to) {
  const meets = busy.filter(([begin, end]) => begin <= to && end >= from);
  return meets.reduce((sum, [begin, end]) => sum + (end - begin - PERIOD), 0);
}

/** ok, wrong or unjudged, for one retry of one client. */
function place({ from, to }, [least, most], busy, late = LATE) {
  const delay = to - from;
  const [over, free, excuse] =
    delay > most
      ? [delay - most, late, busyIn(busy, from + most, Math.min(to, from + most + 500))]
      : [least - delay, EARLY, busyIn(busy, from, from)];
  if (over <= free) return "ok";
  if (over > free + excuse) return "wrong";
  return excuse > BUSY ? "unjudged" : "ok";
}

/** What is wrong and what wasn't seen often enough, as texts, and the delays that were judged of each retry. */
function faults(envelope, lives, busy) {
  const wrong = [];
  const judged = envelope.map(() => []);
  lives.forEach(({ retries, fate }, client) => {
    retries.forEach((retry, n) => {
      const bounds = envelope[n];
      if (!bounds) return;
      const verdict = place(retry, bounds, busy);
      const delay = retry.to - retry.from;
      if (verdict === "wrong") {
        wrong.push(`client ${client} waited ${delay.toFixed(1)} ms before retry ${n}, not ${bounds.join(" to ")}`);
      } else if (verdict === "ok") judged[n].push(delay);
    });
    const made = `client ${client} made ${retries.length} retries and is ${fate}`;
    const stops = envelope.length < MOST;
    if (retries.length > envelope.length) wrong.push(`${made}; the preset stops after ${envelope.length}`);
    else if (fate === "dead" && !stops) wrong.push(`${made}; the preset never stops`);
    else if (fate === "dead" && retries.length < envelope.length) wrong.push(`${made}; the preset makes ${envelope.length}`);
    else if (fate !== "dead" && fate !== "back") wrong.push(made);
  });
  envelope.forEach(([least, most], n) => {
    const all = lives.flatMap(({ retries }) => retries[n] ?? []);
    const first = all.sort((a, b) => a.to - a.from - (b.to - b.from))[0];
    if (first && least === most && place(first, [least, most], busy, FIRST) === "wrong") {
      wrong.push(`no client waited less than ${(first.to - first.from).toFixed(1)} ms before retry ${n}, not even near ${most}`);
    }
  });
  // A window that is far too wide holds every delay too. Half of a uniform one is missed by 20 clients in 1 of 50,000 runs.
  const random = envelope.findIndex(([least, most]) => most > least);
  const seen = judged[random] ?? [];
  if (seen.length >= 15) {
    const [least, most] = envelope[random];
    const span = Math.max(...seen) - Math.min(...seen);
    if (span < (most - least) / 2) {
      wrong.push(`before retry ${random} the clients waited within ${span.toFixed(1)} ms, not ${least} to ${most}`);
    }
  }
  const late = [];
  judged.slice(0, 3).forEach((delays, n) => {
    if (delays.length < ENOUGH) late.push(`retry ${n} could be judged of ${delays.length} clients only`);
  });
  return { wrong, late, judged };
}

/** How many retries `herd list presets --json` tells at most; a preset with fewer stops behind them. */
const MOST = 12;

/** False envelopes, each with its name. */
function falsified(envelope, judged) {
  const change = (name, n, with_) => [`retry ${n} ${name}`, envelope.map((bounds, at) => (at === n ? with_(bounds) : bounds))];
  const all = [];
  judged.forEach((delays, n) => {
    if (delays.length < ENOUGH) return;
    const by = ([least, most]) => (least === most ? 100 : most - least + 300);
    all.push(change("later", n, (bounds) => bounds.map((bound) => bound + by(bounds))));
    all.push(change("sooner", n, (bounds) => bounds.map((bound) => bound - by(bounds))));
  });
  const random = envelope.findIndex(([least, most]) => most > least);
  if (random >= 0) {
    all.push(change("three times as wide", random, ([least, most]) => [least - (most - least), most + (most - least)]));
  }
  all.push(["one retry fewer than were made", envelope.slice(0, judged.findLastIndex((delays) => delays.length > 0))]);
  if (envelope.length < MOST) all.push(["one retry more", [...envelope, [0, 60_000]]]);
  return all;
}

/** Judges a record of clients.mjs by a preset's row: `wrong` is what differs, `late` what the machine was too busy to show. */
export function judge(preset, { version, events, busy }) {
  const clients = Math.max(...events.map(([client]) => client)) + 1;
  const lives = Array.from({ length: clients }, (_, client) =>
    life(events.filter(([whose]) => whose === client).map(([, ...event]) => event).sort(([, a], [, b]) => a - b)),
  );
  const envelope = preset.bounds_ms;
  const { wrong, late, judged } = faults(envelope, lives, busy);
  if (preset.counted_from !== "end") wrong.push("its delays count from the start of an attempt, which this check can't measure");
  if (version !== preset.version) wrong.push(`version ${version} is installed, the preset is of ${preset.version}`);
  const lies = falsified(envelope, judged);
  const unnoticed = lies.filter(([, bounds]) => faults(bounds, lives, busy).wrong.length === 0);
  late.push(...unnoticed.map(([name]) => `a false envelope was not noticed: ${name}`));
  const margins = judged.flatMap((delays, n) => delays.map((delay) => [envelope[n][0] - delay, delay - envelope[n][1]]));
  const worst = (which) => Math.max(0, ...margins.map((margin) => margin[which])).toFixed(1);
  const fates = lives.map(({ fate }) => fate);
  const count = (fate) => fates.filter((is) => is === fate).length;
  const summary =
    `${clients} clients, ${judged.map((delays) => delays.length).join("+")} delays, at most ${worst(0)} ms early and ` +
    `${worst(1)} ms late; ${count("back")} came back, ${count("dead")} gave up; ` +
    `${lies.length - unnoticed.length} of ${lies.length} false envelopes noticed`;
  return { wrong, late, summary };
}
