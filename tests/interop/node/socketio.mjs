// A small event server on `socket.io`: "event" to everybody in the default namespace, POST /publish.
//
// RECOVERY=none: no connection state recovery. RECOVERY=memory: the library's own, which a restart wipes out; the server
// says so by a new session, so it is right to make every client reload. RECOVERY=disk: see sessions.mjs, with its bugs.

import { createServer } from "node:http";
import { Server } from "socket.io";
import { Log, listen, publisher } from "./log.mjs";
import { diskAdapter } from "./sessions.mjs";

const recovery = process.env.RECOVERY ?? "none";
const log = new Log();

const server = createServer(
  publisher((data) => {
    const event = log.append(data);
    io.emit("event", event);
    return event.id;
  }),
);

const io = new Server(server, {
  ...(recovery !== "none" && { connectionStateRecovery: { maxDisconnectionDuration: 120_000 } }),
  ...(recovery === "disk" && { adapter: diskAdapter(`${process.env.LOG}.sessions`) }),
});
if (recovery === "disk") io.on("connection", (socket) => io.of("/").adapter.remember(socket));

server.listen(listen);
