// NestJS: a gateway on platform-socket.io that tells everybody everything, with connection state recovery on disk: see
// sessions.mjs, with its bugs.

import { IoAdapter } from "@nestjs/platform-socket.io";
import { WebSocketGateway, WebSocketServer } from "@nestjs/websockets";
import { decorate, Feed, Publish, start } from "./nest.mjs";
import { diskAdapter } from "./sessions.mjs";

class RecoveringAdapter extends IoAdapter {
  createIOServer(port, options) {
    return super.createIOServer(port, {
      ...options,
      connectionStateRecovery: { maxDisconnectionDuration: 120_000 },
      adapter: diskAdapter(`${process.env.LOG}.sessions`),
    });
  }
}

class Gateway {
  constructor(feed) {
    feed.subscribe((event) => this.server.emit("event", event));
  }

  handleConnection(client) {
    this.server.of("/").adapter.remember(client);
  }
}
decorate(Gateway, { type: [WebSocketGateway()], inject: [Feed], properties: { server: [WebSocketServer()] } });

await start({ controllers: [Publish], providers: [Gateway, Feed], adapter: (app) => new RecoveringAdapter(app) });
