// NestJS: `@Sse` with Last-Event-ID.
// BUG=gap plants the gap at the handoff: the log is read, then something is awaited, and only then the live part begins.

import { Controller, Headers, Sse } from "@nestjs/common";
import { Observable } from "rxjs";
import { decorate, Feed, Publish, start } from "./nest.mjs";

const bug = process.env.BUG;
const message = ({ id, data }) => ({ id: String(id), type: "event", data });

class Events {
  constructor(feed) {
    this.feed = feed;
  }

  events(lastEventId) {
    return new Observable((subscriber) => {
      const send = (event) => subscriber.next(message(event));
      let leave = () => {};
      const subscribe = () => !subscriber.closed && (leave = this.feed.subscribe(send));
      if (lastEventId) this.feed.log.since(Number(lastEventId)).forEach(send);
      if (bug === "gap") setTimeout(subscribe, 200);
      else subscribe();
      return () => leave();
    });
  }
}
decorate(Events, {
  type: [Controller()],
  inject: [Feed],
  methods: { events: { on: [Sse("events")], parameters: [Headers("last-event-id")] } },
});

await start({ controllers: [Events, Publish], providers: [Feed] });
