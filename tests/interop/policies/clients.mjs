// One client of a library per port, in one process: clients.mjs LIBRARY PORT...
//
// It notes when the library itself dials and when that attempt or connection ends, by Node's own channel for client
// sockets: a closed port can't tell anybody when it was tried. It also notes how late its event loop is, since a timer
// can't fire while the loop is busy. Nothing here knows of policies.
//
// stdout: "ready CLIENT" when a client is connected, "dead CLIENT" when it has given up; after stdin's end one line of
// JSON: {"version", "events": [[client, "dial" | "connected" | "end" | "ready" | "dead", ms]], "busy": [[from, to]]}.

import diagnostics from "node:diagnostics_channel";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { WebSocket } from "ws";

const require = createRequire(import.meta.url);

/** Connects a client to a port; calls `ready` at every connection and `dead` if it gives up. */
const connect = {
  async "socket.io-client"(port, ready) {
    const { io } = await import("socket.io-client");
    const socket = io(`http://127.0.0.1:${port}`);
    socket.on("connect", () => {
      const { engine } = socket.io;
      if (engine.transport.name === "websocket") ready();
      else engine.once("upgrade", ready);
    });
  },

  async phoenix(port, ready) {
    const { Socket } = await import("phoenix");
    const socket = new Socket(`ws://127.0.0.1:${port}/socket`, { transport: WebSocket });
    socket.onOpen(ready);
    socket.connect();
  },

  async "reconnecting-websocket"(port, ready) {
    // It draws its base once, when it is loaded: every client is a page of its own.
    delete require.cache[require.resolve("reconnecting-websocket")];
    const ReconnectingWebSocket = require("reconnecting-websocket");
    new ReconnectingWebSocket(`ws://127.0.0.1:${port}`, [], { WebSocket }).addEventListener("open", ready);
  },

  "graphql-ws": (port, ready, dead) => graphql(port, ready, dead, {}),
  "graphql-ws, shouldRetry: () => true": (port, ready, dead) => graphql(port, ready, dead, { shouldRetry: () => true }),

  async centrifuge(port, ready, dead) {
    const { Centrifuge } = await import("centrifuge");
    const client = new Centrifuge(`ws://127.0.0.1:${port}`, { websocket: WebSocket });
    client.on("connected", ready).on("disconnected", dead).connect();
  },

  async "@microsoft/signalr, withAutomaticReconnect()"(port, ready, dead) {
    const { HubConnectionBuilder, LogLevel } = await import("@microsoft/signalr");
    const hub = new HubConnectionBuilder()
      .withUrl(`http://127.0.0.1:${port}/hub`)
      .withAutomaticReconnect()
      .configureLogging(LogLevel.None)
      .build();
    hub.onreconnected(ready);
    hub.onclose(dead);
    await hub.start();
    ready();
  },

  async mqtt(port, ready) {
    const { default: mqtt } = await import("mqtt");
    mqtt.connect(`mqtt://127.0.0.1:${port}`).on("connect", ready).on("error", () => {});
  },
};

async function graphql(port, ready, dead, options) {
  const { createClient } = await import("graphql-ws");
  const url = `ws://127.0.0.1:${port}`;
  const client = createClient({ url, webSocketImpl: WebSocket, on: { connected: ready }, ...options });
  client.subscribe({ query: "subscription { never }" }, { next() {}, error: dead, complete: dead });
}

const [library, ...ports] = process.argv.slice(2);
const events = [];
const note = (port, what, at = performance.now()) => events.push([ports.indexOf(String(port)), what, at]);

diagnostics.subscribe("net.client.socket", ({ socket }) => {
  const dialled = performance.now();
  let port;
  socket.once("connectionAttempt", (_, to) => note((port = to), "dial", dialled));
  socket.once("connect", () => note(port, "connected"));
  // Whichever comes first: a library may act on either.
  let over = false;
  const end = () => {
    if (!over) note(port, "end");
    over = true;
  };
  socket.once("error", end).once("close", end);
});

const PERIOD = 10;
const busy = [];
let before = performance.now();
const tick = () => {
  const now = performance.now();
  if (now - before > PERIOD + 5) busy.push([before, now]);
  before = now;
  setTimeout(tick, PERIOD);
};
tick();

const tell = (what, port) => () => {
  note(port, what);
  process.stdout.write(`${what} ${ports.indexOf(port)}\n`);
};
for (const port of ports) connect[library](port, tell("ready", port), tell("dead", port));

/** The version that is installed, of this file's own package folder. */
function version() {
  const name = library.split(",")[0];
  const found = require.resolve.paths(name).map((folder) => `${folder}/${name}/package.json`).find(existsSync);
  return JSON.parse(readFileSync(found, "utf8")).version;
}

process.stdin.resume().on("end", () => {
  const record = JSON.stringify({ version: version(), events, busy });
  process.stdout.write(`${record}\n`, () => process.exit(0));
});
