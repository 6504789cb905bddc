// A small event server on Node's `ws`: GET /live?after=<id> as a WebSocket, POST /publish.
// BUG=inclusive plants the classic off by one: a replay that begins with the cursor's own event.

import { createServer } from "node:http";
import { WebSocketServer } from "ws";
import { Log, listen, publisher } from "./log.mjs";

const bug = process.env.BUG;
const log = new Log();
const sockets = new WebSocketServer({ noServer: true });
const frame = ({ id, data }) => JSON.stringify({ id, type: "event", data });

const server = createServer(
  publisher((data) => {
    const event = log.append(data);
    const text = frame(event);
    for (const socket of sockets.clients) socket.send(text);
    return event.id;
  }),
);

server.on("upgrade", (request, socket, head) => {
  const after = new URL(request.url, "http://localhost").searchParams.get("after");
  sockets.handleUpgrade(request, socket, head, (client) => {
    if (!after) return;
    // One turn of the event loop: nothing can be published between the replay and the subscription.
    const from = Number(after) - (bug === "inclusive" ? 1 : 0);
    for (const event of log.since(from)) client.send(frame(event));
  });
});

process.on("SIGTERM", () => {
  for (const client of sockets.clients) client.close(1012, "restart");
  setTimeout(() => process.exit(0), 200);
});

server.listen(listen);
