// What answers the clients of each library: the least that makes them feel connected, real servers where that is easy.
// Each entry gives a function that takes over an accepted TCP connection. Nothing here knows of gates, cuts or delays.

import { createServer } from "node:http";
import { WebSocketServer } from "ws";

/** A WebSocket server on connections that somebody else accepts; `welcome` gets each WebSocket. */
function websocket(welcome = () => {}, options = {}, answer = (_, response) => response.writeHead(404).end()) {
  const http = createServer(answer);
  const server = new WebSocketServer({ server: http, ...options });
  server.on("connection", welcome);
  return { server, take: (connection) => http.emit("connection", connection) };
}

const bare = async () => websocket().take;

async function graphql() {
  const { buildSchema } = await import("graphql");
  const { useServer } = await import("graphql-ws/use/ws");
  const { handleProtocols } = await import("graphql-ws");
  const schema = buildSchema("type Query { now: Int } type Subscription { never: Int }");
  const never = { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), return: async () => ({ done: true }) }) };
  const { server, take } = websocket(undefined, { handleProtocols });
  useServer({ schema, roots: { subscription: { never: () => never } } }, server);
  return take;
}

export const servers = {
  "reconnecting-websocket": bare,
  phoenix: bare,
  websockets: bare,
  "graphql-ws": graphql,

  async "socket.io-client"() {
    const { Server } = await import("socket.io");
    const http = createServer();
    new Server(http);
    return (connection) => http.emit("connection", connection);
  },

  async centrifuge() {
    return websocket((socket) =>
      socket.on("message", (frame) => {
        for (const line of frame.toString().split("\n").filter(Boolean)) {
          const { id, connect } = JSON.parse(line);
          if (connect) socket.send(JSON.stringify({ id, connect: { client: String(id), version: "0" } }));
        }
      }),
    ).take;
  },

  async "@microsoft/signalr"() {
    const end = "\x1e";
    const negotiated = JSON.stringify({
      negotiateVersion: 1,
      connectionId: "1",
      connectionToken: "1",
      availableTransports: [{ transport: "WebSockets", transferFormats: ["Text"] }],
    });
    const hub = (socket) => {
      socket.once("message", () => socket.send("{}" + end));
      // Without a word for 30 s the client takes the server for dead.
      const beat = setInterval(() => socket.send('{"type":6}' + end), 10_000);
      socket.on("close", () => clearInterval(beat));
    };
    return websocket(hub, {}, (_, response) => response.end(negotiated)).take;
  },

  async mqtt() {
    const { Aedes } = await import("aedes");
    const broker = await Aedes.createBroker();
    return (connection) => broker.handle(connection);
  },
};
