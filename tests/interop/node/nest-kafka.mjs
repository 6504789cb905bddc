// NestJS: a Socket.IO gateway fed by a Kafka topic. An event's id is its offset. A client sends "resume" first: with a
// lastEventId it gets what it missed, without one the last 100; then "caught-up", then live events. An id that the
// gateway can't resume from is answered by "resume-error", and only what is new follows.
//
// RETAIN=n keeps the last n events only, so that every resume is refused. BUG=latest plants a gateway that reads the topic
// from its end when it starts, and takes any cursor for one that it knows.

import { IoAdapter } from "@nestjs/platform-socket.io";
import { ConnectedSocket, MessageBody, SubscribeMessage, WebSocketGateway, WebSocketServer } from "@nestjs/websockets";
import { Kafka, logLevel } from "kafkajs";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { decorate, start } from "./nest.mjs";

const topic = process.env.TOPIC;
const RECENT = 100;
const bug = process.env.BUG;
const retain = Number(process.env.RETAIN ?? Infinity);

class Gateway {
  /** The newest events of the topic, without a hole; the next one has the offset `next`. */
  history = [];
  next = 0;

  receive(offset, data) {
    // Kafka may bring again what was not committed yet.
    if (offset < this.next) return;
    const event = { id: String(offset), data };
    this.history.push(event);
    this.next = offset + 1;
    if (this.history.length > retain) this.history.shift();
    this.server.to("live").emit("event", event);
  }

  /** What follows an id; none where that can't be known. */
  getEventsSince(id) {
    const missed = this.next - 1 - Number(id);
    if (missed < 0 || missed > this.history.length) return bug === "latest" ? [] : undefined;
    return this.history.slice(this.history.length - missed);
  }

  // One turn of the event loop: nothing can arrive from the topic between the replay and the subscription.
  resume(request, client) {
    const after = request?.lastEventId ?? "";
    const events = after === "" ? this.history.slice(-RECENT) : this.getEventsSince(after);
    if (events) for (const event of events) client.emit("event", event);
    else client.emit("resume-error", { reason: "unknown-id", lastEventId: after });
    client.join("live");
    if (events) client.emit("caught-up", { lastEventId: String(this.next - 1) });
  }
}
decorate(Gateway, {
  type: [WebSocketGateway()],
  properties: { server: [WebSocketServer()] },
  methods: { resume: { on: [SubscribeMessage("resume")], parameters: [MessageBody(), ConnectedSocket()] } },
});

/** Feeds the gateway and returns once it holds all that the topic held at the beginning. */
async function consume(app) {
  const gateway = app.get(Gateway);
  const kafka = new Kafka({ brokers: [process.env.KAFKA], logLevel: logLevel.ERROR });
  // A group of its own for each process: every gateway needs every event, and no dead member holds up the next one.
  const consumer = kafka.consumer({ groupId: randomUUID(), maxWaitTimeInMs: 50 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: bug !== "latest" });
  const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
  await consumer.run({
    eachMessage: async ({ message }) => gateway.receive(Number(message.offset), JSON.parse(message.value.toString())),
  });
  await joined;
  const admin = kafka.admin();
  await admin.connect();
  const offsets = await admin.fetchTopicOffsets(topic);
  await admin.disconnect();
  const end = Number(offsets.find(({ partition }) => partition === 0).high);
  while (bug !== "latest" && gateway.next < end) await sleep(10);
}

await start({ providers: [Gateway], adapter: (app) => new IoAdapter(app), ready: consume });
