// NestJS: a gateway on platform-ws. A client sends "resume" first, with or without a lastEventId; the answer is what it
// missed, then "caught-up", then live events.
// BUG=overtake plants a server that goes live first and replays piece by piece, so that live events overtake the replay.

import { WsAdapter } from "@nestjs/platform-ws";
import { ConnectedSocket, MessageBody, SubscribeMessage, WebSocketGateway } from "@nestjs/websockets";
import { setTimeout as sleep } from "node:timers/promises";
import { decorate, Feed, Publish, start } from "./nest.mjs";

const bug = process.env.BUG;
const send = (client, event, data) => client.send(JSON.stringify({ event, data }));

class Gateway {
  live = new Set();

  constructor(feed) {
    this.log = feed.log;
    feed.subscribe((event) => {
      for (const client of this.live) send(client, "event", event);
    });
  }

  async resume(request, client) {
    const after = request?.lastEventId;
    const missed = after ? this.log.since(Number(after)) : [];
    const lastEventId = String(this.log.last);
    this.live.add(client);
    for (const event of missed) {
      if (bug === "overtake") await sleep(20);
      send(client, "event", event);
    }
    return { event: "caught-up", data: { lastEventId } };
  }

  handleDisconnect(client) {
    this.live.delete(client);
  }
}
decorate(Gateway, {
  type: [WebSocketGateway({ path: "/live" })],
  inject: [Feed],
  methods: { resume: { on: [SubscribeMessage("resume")], parameters: [MessageBody(), ConnectedSocket()] } },
});

await start({ controllers: [Publish], providers: [Gateway, Feed], adapter: (app) => new WsAdapter(app) });
