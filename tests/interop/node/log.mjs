// The event log of every Node server here: a file with a line an event, so that it survives the process. Ids count from 1.
// All of it is synchronous: whoever reads the log and subscribes in one turn of the event loop leaves no gap between.

import { appendFileSync, existsSync, readFileSync } from "node:fs";

export class Log {
  constructor(file = process.env.LOG) {
    this.file = file;
    this.events = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)) : [];
  }

  get last() {
    return this.events.length;
  }

  /** Stores an event before anybody hears of it. */
  append(data) {
    appendFileSync(this.file, JSON.stringify(data) + "\n");
    const event = { id: this.last + 1, data };
    this.events.push(data);
    return event;
  }

  since(id) {
    return this.events.slice(id).map((data, index) => ({ id: id + index + 1, data }));
  }
}

/** POST /publish for a bare http server: gives each event's JSON to `publish`, which answers its id. */
export function publisher(publish) {
  return (request, response) => {
    if (request.method !== "POST" || request.url !== "/publish") {
      response.writeHead(404).end();
      return;
    }
    let body = "";
    request.setEncoding("utf8").on("data", (part) => (body += part));
    request.on("end", () => {
      const id = publish(JSON.parse(body));
      response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify({ id }));
    });
  };
}

const { PORT, SOCKET } = process.env;
/** Where to listen: on herd's port, or on a socket file behind a proxy that has it. */
export const listen = { ...(SOCKET ? { path: SOCKET } : { host: "127.0.0.1", port: Number(PORT) }), backlog: 4096 };
