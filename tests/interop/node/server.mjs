// A small event server on Node's `ws`, written for herd's tests: GET /live?after=<id> as a WebSocket, POST /publish.
// The log is a file with a line an event, so that it survives the process. BUG=inclusive plants the classic off by one:
// a replay that begins with the cursor's own event.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { WebSocketServer } from "ws";

const port = Number(process.env.PORT);
const file = process.env.LOG;
const bug = process.env.BUG ?? "";

const log = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
const frame = (id) => `{"id":${id},"type":"event","data":${log[id - 1]}}`;

const sockets = new WebSocketServer({ noServer: true });

const server = createServer((request, response) => {
  if (request.method !== "POST" || request.url !== "/publish") {
    response.writeHead(404).end();
    return;
  }
  let body = "";
  request.on("data", (part) => (body += part));
  request.on("end", () => {
    const event = JSON.stringify(JSON.parse(body));
    appendFileSync(file, event + "\n");
    log.push(event);
    const text = frame(log.length);
    for (const socket of sockets.clients) socket.send(text);
    response.writeHead(201, { "content-type": "application/json" }).end(`{"id":${log.length}}`);
  });
});

server.on("upgrade", (request, socket, head) => {
  const after = new URL(request.url, "http://localhost").searchParams.get("after");
  sockets.handleUpgrade(request, socket, head, (client) => {
    if (!after) return;
    // One turn of the event loop: nothing can be published between the replay and the subscription.
    const first = Number(after) + (bug === "inclusive" ? 0 : 1);
    for (let id = first; id <= log.length; id++) client.send(frame(id));
  });
});

process.on("SIGTERM", () => {
  for (const client of sockets.clients) client.close(1012, "restart");
  setTimeout(() => process.exit(0), 200);
});

server.listen({ port, host: "127.0.0.1", backlog: 4096 });
