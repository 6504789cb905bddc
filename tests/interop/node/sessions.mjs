// A Socket.IO adapter whose connection state recovery survives the process: sessions and packets are lines of a file.
//
// The library stores a session only when its client leaves, which a killed process never sees; `remember` stores it as
// the client comes. BUG=lying plants a server that restores the session but not its packets; BUG=inclusive one that sends
// the packet of the client's own offset again.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { Adapter } from "socket.io-adapter";

const bug = process.env.BUG;

/** An adapter class over one file. */
export const diskAdapter = (file) =>
  class DiskAdapter extends Adapter {
    #sessions = new Map();
    #packets = [];
    #places = new Map();

    constructor(namespace) {
      super(namespace);
      if (!existsSync(file)) return;
      for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
        const { session, packet } = JSON.parse(line);
        if (session) this.#sessions.set(session.pid, session);
        if (packet) this.#keep(packet);
      }
    }

    #keep(packet) {
      this.#places.set(packet.at(-1), this.#packets.push(packet));
    }

    persistSession({ sid, pid, rooms, data }) {
      const session = { sid, pid, rooms: [...rooms], data };
      if (JSON.stringify(this.#sessions.get(pid)) === JSON.stringify(session)) return;
      this.#sessions.set(pid, session);
      appendFileSync(file, JSON.stringify({ session }) + "\n");
    }

    /** To be called with every socket as it connects. */
    remember(socket) {
      this.persistSession({ sid: socket.id, pid: socket.pid, rooms: socket.rooms, data: socket.data });
    }

    // The caller awaits this and then lets the socket in, all before the next turn of the event loop: nothing can be
    // published between. Rooms are not looked at, since these servers tell everybody everything.
    async restoreSession(pid, offset) {
      const session = this.#sessions.get(pid);
      const place = this.#places.get(offset);
      if (!session || place === undefined) return null;
      const first = bug === "inclusive" ? place - 1 : place;
      return { ...session, missedPackets: bug === "lying" ? [] : this.#packets.slice(first) };
    }

    // An event with nobody waiting for an answer gets an offset, which the client takes from the end of its arguments.
    broadcast(packet, options) {
      const EVENT = 2;
      if (packet.type === EVENT && packet.id === undefined && !options.flags?.volatile) {
        packet.data.push(`${this.#packets.length + 1}-${process.pid}`);
        appendFileSync(file, JSON.stringify({ packet: packet.data }) + "\n");
        this.#keep(packet.data);
      }
      super.broadcast(packet, options);
    }
  };
