// What the NestJS servers have in common: a feed over the log, POST /publish, and the start.
// Decorators are applied as the TypeScript compiler would apply them, so that no build step is needed.

import "reflect-metadata";
import { Body, Controller, Module, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { __decorate, __param } from "tslib";
import { Log, listen } from "./log.mjs";

/** Applies decorators to a class: its own, those of methods, and those of methods' parameters. */
export function decorate(target, { type = [], inject = [], properties = {}, methods = {} }) {
  for (const [name, decorators] of Object.entries(properties)) __decorate(decorators, target.prototype, name, undefined);
  for (const [name, { on, parameters = [] }] of Object.entries(methods)) {
    const decorators = [...on, ...parameters.map((decorator, index) => __param(index, decorator))];
    __decorate(decorators, target.prototype, name, null);
  }
  Reflect.defineMetadata("design:paramtypes", inject, target);
  return __decorate(type, target);
}

/** The log and who listens to it. */
export class Feed {
  log = new Log();
  listeners = new Set();

  publish(data) {
    const event = this.log.append(data);
    for (const listener of this.listeners) listener(event);
    return event.id;
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export class Publish {
  constructor(feed) {
    this.feed = feed;
  }

  publish(data) {
    return { id: this.feed.publish(data) };
  }
}
decorate(Publish, {
  type: [Controller()],
  inject: [Feed],
  methods: { publish: { on: [Post("publish")], parameters: [Body()] } },
});

/** Starts an application of these classes; `adapter` makes the WebSocket adapter. */
export async function start({ controllers = [], providers = [], adapter, ready }) {
  class App {}
  decorate(App, { type: [Module({ controllers, providers })] });
  const app = await NestFactory.create(App, { logger: ["error", "warn"] });
  if (adapter) app.useWebSocketAdapter(adapter(app));
  await app.init();
  await ready?.(app);
  await app.listen(listen);
}
