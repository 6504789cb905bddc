//! Whether everybody came back, and how long until they were caught up (rules 6 and 21 of judgement).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use super::measure::{self, reconnect};
use super::relapse::relapsed;
use super::{Case, facts, several};
use crate::backoff::patience;
use crate::check::timeline::{self, OutageSpan, WaveSpan};
use crate::check::words::{names, text};
use crate::check::{Check, Finding, Outcome, Return};
use crate::history::{AttemptOutcome, ClientId, Elapsed, End, Quit};

/// Rule 23: the target's fault, whoever is back.
pub(super) const NEVER_READY: &str = "the target was never ready again";

/// What became of the absences of one outage.
#[derive(Debug, Default)]
struct Fates {
    back: u32,
    slowest: Duration,
    late: Vec<ClientId>,
    gave_up: Vec<ClientId>,
    /// What the last attempt of those two met, and how many of them.
    met: BTreeMap<String, u32>,
    fatal: Vec<ClientId>,
    /// What those met, and how many of them.
    ends: BTreeMap<String, u32>,
    absent: Vec<ClientId>,
    /// Late, and it may have been herd's own doing.
    delayed: Vec<ClientId>,
    /// Not back, and herd's own side could not make a dial of it.
    undialled: Vec<ClientId>,
    /// Away when the record ends, within the limit.
    pending: Vec<ClientId>,
}

/// Judges `all-reconnected` of one outage.
pub(super) fn all_reconnected(case: &Case<'_>, outage: &OutageSpan) -> Finding {
    let mut fates = Fates::default();
    let limits = limits(case, outage);
    let most = limits.iter().copied().max().flatten();
    for (wave, limit) in outage.waves.iter().zip(limits) {
        // Where nothing says how long the server was down, it need not have been.
        let patience = match (outage.never_ready, limit) {
            (true, _) => Some(Duration::ZERO),
            (false, None) if case.history.end() == Some(&End::Complete) => {
                honest(case, wave.dropped, Some(Duration::ZERO))
            }
            (false, limit) => limit,
        };
        for row in case.timeline.of_wave(outage.outage, wave.wave) {
            fates.add(case, row, limit, patience);
        }
    }
    let (outcome, why) = match (outage.never_ready, fates.ruling(most)) {
        (false, ruling) => ruling,
        (true, (Outcome::Fail, why)) => (Outcome::Fail, format!("{NEVER_READY}; {why}")),
        (true, _) => (Outcome::Fail, NEVER_READY.into()),
    };
    let (outcome, why) = match case.partial(outage) {
        Some(partial) if outcome == Outcome::Pass => (Outcome::Unknown, partial),
        _ => (outcome, why),
    };
    let dropped = facts::count_clients(case.timeline.of_outage(outage.outage).iter());
    let mut measured = format!("{} back of {}", fates.back, fates.total());
    if fates.total() != dropped {
        measured.push_str(&format!(" drops of {dropped} clients"));
    }
    if fates.back > 0 {
        measured.push_str(&format!(", the last after {}", text(fates.slowest)));
    }
    Finding {
        check: Check::AllReconnected,
        outage: Some(outage.outage),
        outcome,
        measured,
        limit: match most {
            Some(limit) => format!("all within {}", text(limit)),
            None => "all".into(),
        },
        why,
    }
}

impl Fates {
    /// Adds an absence: late where it ended after `limit`, and held against the server where it has not ended and
    /// `patience` ran out before the record did.
    fn add(
        &mut self,
        case: &Case<'_>,
        row: &Return,
        limit: Option<Duration>,
        patience: Option<Duration>,
    ) {
        let over = |at: Elapsed| limit.is_some_and(|limit| at.since(row.dropped) > limit);
        if let Some(attempt) = reconnect(case.history, row) {
            self.back += 1;
            self.slowest = self.slowest.max(attempt.ended.since(row.dropped));
            if over(attempt.ended) {
                // Rule 7: herd's own lateness is no fault of the server's.
                let list = if case.late_herd() && !over(attempt.due) {
                    &mut self.delayed
                } else {
                    &mut self.late
                };
                list.push(row.client);
            }
            return;
        }
        let dials = timeline::client(case.history, row.client)
            .map_or(&[][..], |(_, client)| timeline::dials(client, row));
        let local = dials
            .iter()
            .any(|a| matches!(a.outcome, AttemptOutcome::Local(_)));
        let waited = case.history.horizon.since(row.dropped);
        let list = match case.quit(row) {
            _ if local => &mut self.undialled,
            Some(Quit::GaveUp) => &mut self.gave_up,
            Some(Quit::Fatal(_)) => &mut self.fatal,
            None if patience.is_some_and(|patience| patience <= waited) => &mut self.absent,
            None => &mut self.pending,
        };
        list.push(row.client);
        if let Some(Quit::Fatal(why)) = case.quit(row) {
            let why = why.escape_debug().to_string();
            *self.ends.entry(why).or_default() += 1;
        }
        let away = self.absent.len() + self.gave_up.len();
        if away > self.met.values().sum::<u32>() as usize {
            let last = dials.iter().rev().find_map(|a| met(&a.outcome));
            *self.met.entry(last.unwrap_or("none".into())).or_default() += 1;
        }
    }

    fn total(&self) -> u32 {
        let away = [
            &self.gave_up,
            &self.fatal,
            &self.absent,
            &self.undialled,
            &self.pending,
        ];
        self.back + away.iter().map(|l| l.len() as u32).sum::<u32>()
    }

    /// Why they are away, as far as their own side saw it.
    fn last_attempts(&self) -> Option<String> {
        let told = commonest(&self.met);
        (!told.is_empty()).then(|| format!("their last attempts: {}", told.join(", ")))
    }

    /// What ended those that the policy never lets back.
    fn fatal_ends(&self) -> String {
        let told = commonest(&self.ends);
        let more = if told.len() > ENDS { ", ..." } else { "" };
        format!(" ({}{more})", told[..told.len().min(ENDS)].join(", "))
    }

    fn ruling(&self, limit: Option<Duration>) -> (Outcome, String) {
        let said = |clients: &[ClientId], what: &str| {
            (!clients.is_empty()).then(|| format!("{} {what}: {}", clients.len(), names(clients)))
        };
        let within = limit.map_or(String::new(), |l| format!(" within {}", text(l)));
        let wrong = [
            said(&self.absent, "never came back"),
            said(&self.gave_up, "gave up as the policy says"),
            self.last_attempts(),
            said(
                &self.fatal,
                &format!(
                    "met an end that the policy never retries{}",
                    self.fatal_ends()
                ),
            ),
            said(&self.late, &format!("came back, but not{within}")),
        ];
        let unsure = [
            said(&self.delayed, "were delayed by herd itself"),
            said(
                &self.undialled,
                "could not be dialled for want of descriptors or ports",
            ),
            said(
                &self.pending,
                "were still away when the record ends, within their limit",
            ),
        ];
        let join = |list: &[Option<String>]| {
            let said: Vec<_> = list.iter().flatten().map(String::as_str).collect();
            said.join("; ")
        };
        let (wrong, unsure) = (join(&wrong), join(&unsure));
        match (wrong.is_empty(), unsure.is_empty()) {
            (false, _) => (Outcome::Fail, wrong),
            (true, false) => (Outcome::Unknown, unsure),
            (true, true) => (Outcome::Pass, String::new()),
        }
    }
}

/// How many ends a finding tells.
const ENDS: usize = 3;

/// Each with how often, the commonest first.
fn commonest(counts: &BTreeMap<String, u32>) -> Vec<String> {
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by_key(|(what, n)| (Reverse(**n), *what));
    let told = counts.iter().map(|(what, n)| format!("{n} {what}"));
    told.collect()
}

/// What an attempt met; none where herd itself ended it.
fn met(outcome: &AttemptOutcome) -> Option<String> {
    Some(match outcome {
        AttemptOutcome::Opened => "opened and lost at once".into(),
        AttemptOutcome::Refused => "refused".into(),
        AttemptOutcome::Timeout => "without an answer to the TCP connect".into(),
        AttemptOutcome::Handshake {
            status: Some(status),
            ..
        } => format!("answered with status {status}"),
        AttemptOutcome::Handshake { status: None, .. } => "without a whole handshake".into(),
        AttemptOutcome::Local(_) | AttemptOutcome::Aborted => return None,
    })
}

/// Rule 6, for each wave: what the user said, or else when the last of an honest herd is back, and then some. None where
/// the server was never seen to be back, or the policy can't be read. Waves too small to be judged share one limit.
fn limits(case: &Case<'_>, outage: &OutageSpan) -> Vec<Option<Duration>> {
    if let Some(limit) = case.history.header.terms.reconnect_limit {
        return vec![Some(limit); outage.waves.len()];
    }
    let refused = last_refused(case, outage);
    let downs: Vec<_> = outage
        .waves
        .iter()
        .map(|wave| down(case, outage, wave, refused))
        .collect();
    let judged = |wave: &WaveSpan| wave.judged(case.history.clients.len());
    let small = || outage.waves.iter().zip(&downs).filter(|(w, _)| !judged(w));
    let clients = small().map(|(w, _)| w.dropped).sum();
    let shared = honest(case, clients, small().filter_map(|(_, down)| *down).max());
    let of = |(wave, down): (&WaveSpan, &Option<Duration>)| {
        if judged(wave) {
            honest(case, wave.dropped, *down)
        } else {
            shared
        }
    };
    outage.waves.iter().zip(&downs).map(of).collect()
}

/// When the last of so many honest clients is back after such a down time, and then some.
fn honest(case: &Case<'_>, clients: u32, down: Option<Duration>) -> Option<Duration> {
    patience::return_limit(case.policy.as_ref()?, clients, down?)
}

/// How long the server was down for a wave at most. Who is back after the last drop proves that it was up, whatever the
/// probe says; who is back before that may have met the server that was on its way out.
fn down(
    case: &Case<'_>,
    outage: &OutageSpan,
    wave: &WaveSpan,
    refused: Option<Elapsed>,
) -> Option<Duration> {
    let rows = case.timeline.of_wave(outage.outage, wave.wave);
    let back = rows.iter().filter_map(|r| reconnect(case.history, r));
    let back = back.map(|a| a.dialled);
    let up = match wave.ready {
        Some(ready) => back
            .filter(|at| *at >= wave.last_drop)
            .fold(ready, Elapsed::min),
        None => back.min()?,
    };
    // A server may listen and serve nobody yet; and whoever is still away when it falls again waits for that too.
    let served = measure::last_failed(case.history, rows).unwrap_or(up);
    let over = several::over(outage).unwrap_or(up);
    let up = up.max(refused.unwrap_or(up)).max(served).max(over);
    Some(up.since(wave.first_drop))
}

/// Where the server fell over again: until when it refused. Who was still away then waits for that too, and `relapse` has
/// the blame.
fn last_refused(case: &Case<'_>, outage: &OutageSpan) -> Option<Elapsed> {
    if !relapsed(case, outage) {
        return None;
    }
    let dials = measure::dials(case.history, case.timeline.of_outage(outage.outage));
    let refused =
        dials.filter(|a| matches!(a.outcome, AttemptOutcome::Refused | AttemptOutcome::Timeout));
    refused.map(|a| a.dialled).max()
}

/// Judges `recovery` of one outage: reported, and a limit only where the user set one.
pub(super) fn recovery(case: &Case<'_>, outage: &OutageSpan) -> Finding {
    let rows = case.timeline.of_outage(outage.outage);
    let limit = case.history.header.terms.max_recovery;
    let back = rows.iter().filter(|r| r.session.is_some());
    let (caught, never): (Vec<&Return>, Vec<&Return>) =
        back.partition(|r| case.recovery(r).is_some());
    let never: Vec<ClientId> = never.iter().map(|r| r.client).collect();
    // Who is never caught up takes for ever, as far as a limit is concerned; in a truncated record nobody is known to be.
    // Nor where what it was waited for came in a frame that could not be read.
    let forever = if case.history.truncated() || case.delivery.unread > 0 {
        0
    } else {
        never.len()
    };
    let over = |measure: &dyn Fn(&Return) -> Duration| {
        let mut all: Vec<Duration> = caught.iter().map(|r| measure(r)).collect();
        all.resize(all.len() + forever, Duration::MAX);
        let p99 = facts::quantile(&mut all, 0.99);
        limit.is_some_and(|limit| p99.is_some_and(|p| p > limit))
    };
    let taken = |r: &Return| case.recovery(r).unwrap_or_default();
    let by_due = |r: &Return| {
        let lag = reconnect(case.history, r).map_or(Duration::ZERO, |a| a.dialled.since(a.due));
        taken(r).saturating_sub(lag)
    };
    let named = match never.len() {
        0 => String::new(),
        n => format!("{n} came back and were never caught up: {}", names(&never)),
    };
    let (outcome, why) = if caught.is_empty() && (limit.is_none() || forever == 0) {
        (Outcome::Unknown, "no client was seen caught up".into())
    } else if !over(&taken) {
        match case.partial(outage) {
            Some(partial) => (Outcome::Unknown, partial),
            None if limit.is_some() && case.delivery.unread > 0 && !never.is_empty() => {
                let why = "; what they were waited for came in frames that were not read (see exactly-once)";
                (Outcome::Unknown, named + why)
            }
            None => (Outcome::Pass, named),
        }
    } else if case.late_herd() && !over(&by_due) {
        let why = "over the limit only by herd's own lag (see generator)";
        (Outcome::Unknown, why.into())
    } else {
        (Outcome::Fail, named)
    };
    let p99 = facts::quantile(
        &mut caught.iter().map(|r| taken(r)).collect::<Vec<_>>(),
        0.99,
    );
    Finding {
        check: Check::Recovery,
        outage: Some(outage.outage),
        outcome,
        measured: p99.map_or("nobody caught up".into(), |p| format!("p99 {}", text(p))),
        limit: limit.map_or("reported".into(), |l| format!("p99 within {}", text(l))),
        why,
    }
}
