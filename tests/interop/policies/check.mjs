// Real clients of real libraries against herd's presets: check.mjs HERD PYTHON [PRESET...]
//
// For each preset 20 clients in a process of their own, one per port, are connected to a small server here. All their
// ports are closed and their connections cut at one instant; 9 s later the ports open again, but for those on which a
// client is to give up. How long each client waited before each retry, and whether it came back or gave up, must be what
// `herd list presets --json` says. Clients note their own dials (clients.mjs says why), judge.mjs compares.

import { execFileSync, spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { judge } from "./judge.mjs";
import { servers } from "./servers.mjs";

const CLIENTS = 20;
const REFUSED = 9_000;
// A preset's clients whose ports stay closed, so that they must give up. SignalR does so after 42 s, graphql-ws after 46.
const STAY_AWAY = { signalr: 10, "graphql-ws-retry-all": 10 };
const PRESETS = "socketio phoenix reconnecting-websocket graphql-ws graphql-ws-retry-all centrifuge signalr mqttjs python-websockets";

/** Says why nothing can be checked, and ends. */
function refuse(code, why) {
  console.log(`interop: ${why}`);
  process.exit(code);
}

const [herd, python, ...asked] = process.argv.slice(2);
const known = PRESETS.split(" ");
const names = asked.length > 0 ? asked : known;
for (const name of names) if (!known.includes(name)) refuse(2, `no clients for preset '${name}'; there are: ${PRESETS}`);
const rows = JSON.parse(execFileSync(herd, ["list", "presets", "--json"], { encoding: "utf8" }));
const presets = names.map((name) => rows.find((row) => row.name === name) ?? refuse(1, `herd has no preset '${name}'`));

const started = new Set();
process.on("exit", () => started.forEach((child) => child.kill("SIGKILL")));
for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]]) process.on(signal, () => process.exit(code));

/** Ports that are open or closed, all at one instant. They lie below those that the system gives to clients: otherwise a
 *  client of a closed port could get that very port, and connect to itself. */
class Gate {
  ports = [];
  #take;
  #open = new Map();
  #connections = new Set();

  constructor(take) {
    this.#take = take;
  }

  async listen(port) {
    const server = createServer({ noDelay: true }, (connection) => {
      this.#connections.add(connection);
      connection.on("error", () => {}).on("close", () => this.#connections.delete(connection));
      this.#take(connection);
    });
    await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
    this.#open.set(port, server);
  }

  async find(count) {
    for (let port = 20_000 + Math.floor(Math.random() * 10_000); this.ports.length < count; port += 1) {
      if (port >= 32_000) throw new Error("no free ports from 20000 to 32000");
      await this.listen(port).then(() => this.ports.push(port), () => {});
    }
  }

  cut() {
    for (const server of this.#open.values()) server.close();
    this.#open.clear();
    for (const connection of this.#connections) connection.destroy();
  }
}

/** The process with a preset's clients. */
class Clients {
  ready = Array(CLIENTS).fill(0);
  dead = Array(CLIENTS).fill(0);
  #child;
  #closed;
  #record;

  constructor(preset, ports) {
    const own = preset.name === "python-websockets" ? [python, "clients.py"] : [process.execPath, "clients.mjs", preset.library];
    this.#child = spawn(own[0], [...own.slice(1), ...ports], { stdio: ["pipe", "pipe", "inherit"], cwd: import.meta.dirname });
    started.add(this.#child);
    this.#child.stdin.on("error", () => {});
    this.#closed = new Promise((resolve) => this.#child.on("close", resolve));
    createInterface(this.#child.stdout).on("line", (line) => {
      const [what, client] = line.split(" ");
      if (what === "ready" || what === "dead") this[what][client] += 1;
      else this.#record = JSON.parse(line);
    });
    this.#closed.then(() => started.delete(this.#child));
  }

  async until(condition, limit, what) {
    for (const end = performance.now() + limit; !condition(); ) {
      if (this.#child.exitCode !== null) throw new Error("its clients ended");
      if (performance.now() > end) throw new Error(`not ${what} within ${limit / 1000} s: ready ${this.ready}, dead ${this.dead}`);
      await sleep(20);
    }
  }

  async end() {
    this.#child.stdin.end();
    await Promise.race([this.#closed, sleep(5_000)]);
    this.#child.kill("SIGKILL");
    if (!this.#record) throw new Error("its clients said nothing at their end");
    return this.#record;
  }
}

/** A preset's clients, connected. */
async function connected(preset) {
  const gate = new Gate(await servers[preset.library.split(",")[0]]());
  await gate.find(CLIENTS);
  const clients = new Clients(preset, gate.ports);
  await clients.until(() => clients.ready.every((times) => times === 1), 60_000, "connected");
  return { gate, clients };
}

/** Cuts them, lets them in again and judges what they did meanwhile. */
async function outage(preset, { gate, clients }) {
  gate.cut();
  await sleep(REFUSED);
  await Promise.all(gate.ports.slice(STAY_AWAY[preset.name] ?? 0).map((port) => gate.listen(port)));
  const settled = () => clients.ready.every((times, client) => times > 1 || clients.dead[client] > 0);
  // Whoever isn't back in time is judged as what it is.
  await clients.until(settled, 60_000, "settled").catch(() => {});
  // Who has given up must not dial again.
  await sleep(5_000);
  const record = await clients.end();
  gate.cut();
  return judge(preset, record);
}

/** All of them side by side, cut one after the other so that their work doesn't meet. */
async function round(presets) {
  const named = (preset, work) => work.catch((error) => refuse(1, `${preset.name}: ${error.message}`));
  const all = await Promise.all(presets.map((preset) => named(preset, connected(preset))));
  await sleep(2_000);
  const later = (index) => sleep(index * 250).then(() => outage(presets[index], all[index]));
  return Promise.all(presets.map((preset, index) => named(preset, later(index))));
}

let failed = 0;
let waiting = presets;
// What the machine was too busy for is made again, alone.
for (let rounds = 0; waiting.length > 0 && rounds < 3; rounds += 1) {
  const results = [];
  if (rounds === 0) results.push(...(await round(waiting)));
  else for (const preset of waiting) results.push(...(await round([preset])));
  results.forEach(({ wrong, late, summary }, index) => {
    const { name, library, version } = waiting[index];
    const verdict = wrong.length > 0 ? "FAIL" : late.length > 0 ? "late" : "ok";
    console.log(`${verdict.padEnd(4)} ${name} (${library} ${version}): ${summary}`);
    for (const fault of [...wrong, ...late].slice(0, 5)) console.log(`     ${fault}`);
    if (wrong.length > 0) failed += 1;
  });
  waiting = waiting.filter((_, index) => results[index].wrong.length === 0 && results[index].late.length > 0);
}
failed += waiting.length;
console.log(`${presets.length - failed} of ${presets.length} presets are what their libraries do`);
process.exit(failed > 0 ? 1 : 0);
