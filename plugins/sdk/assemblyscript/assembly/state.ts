import * as host from "./host";
import { toBytes, toText } from "./bytes";
import { Errno, Failure, must, raise } from "./failure";
import { field, number, text } from "./json";
import { next, Pending, timer, wait } from "./wait";

export const StateStarted: i32 = 1;
export const StateFinished: i32 = i32.MAX_VALUE;

/** What a task of a job has reported under a tag. What nobody has reported has version 0 and is not started. */
export class State {
  job: string;
  task: i32;
  tag: string;
  /** 0 not started, below 0 an error, StateFinished; others are the worker's own. */
  status: i32;
  message: string;
  /** A JSON object; "" if there is none. */
  payload: string;
  /** When it was reported, by the host's clock, as of RFC 3339. */
  time: string;
  /** Counts the reports of a task under a tag, from 1. */
  version: i64;

  /** Reads a state as the host writes it. */
  constructor(json: string) {
    this.job = text(json, "job");
    this.task = <i32>number(json, "task");
    this.tag = text(json, "tag");
    this.status = <i32>number(json, "status");
    this.message = text(json, "message");
    this.payload = field(json, "payload");
    this.time = text(json, "timestamp");
    this.version = number(json, "version");
  }
}

/** What a Watch tells. */
export class StateEvent {
  /** A state that was there when the watch began, with replay, or a change. */
  state: State | null = null;
  replay: bool;
  /** All states that were there have been told; there is no state. */
  sentinel: bool;

  constructor(json: string) {
    this.replay = field(json, "replay") == "true";
    this.sentinel = field(json, "sentinel") == "true";
    if (!this.sentinel) this.state = new State(field(json, "state"));
  }
}

/** Tells first of the states that there are, oldest first, then that this was all, and then of each change. */
export class Watch extends Pending {
  /** Waits for the next event; null = there will be no more, as when the job was deleted. */
  next(): StateEvent | null {
    const message = next("watch states", this.handle);
    return message ? new StateEvent(toText(message)) : null;
  }
}

export function setState(tag: string, status: i32, message: string, payload: string): void {
  const t = toBytes(tag);
  const m = toBytes(message);
  const p = toBytes(payload);
  must("set state " + tag, host.state_set(t.dataStart, t.length, status, m.dataStart, m.length, p.dataStart, p.length));
}

export function getState(tag: string, task: i32): State {
  const t = toBytes(tag);
  let room = new Uint8Array(512);
  while (true) {
    const n = must("get state " + tag, host.state_get(task, t.dataStart, t.length, room.dataStart, room.length));
    if (n <= room.length) return new State(toText(room.subarray(0, n)));
    room = new Uint8Array(n);
  }
}

export function watchState(tag: string, task: i32): Watch {
  const t = toBytes(tag);
  return new Watch(must("watch state " + tag, host.state_watch(task, t.dataStart, t.length)));
}

export function synchronize(tag: string, target: i32, timeout: i64): State {
  const late = timer(timeout);
  let watch = watchState(tag, -1);
  while (true) {
    // Asked for after the watch has begun, so that no change is missed.
    const lowest = getState(tag, -1);
    if (lowest.status >= target) {
      watch.drop();
      late.drop();
      return lowest;
    }
    if (wait([watch, late], -1) == 1) {
      const text = `synchronize ${tag}: task ${lowest.task} is at ${lowest.status}: not in time`;
      raise(new Failure(text).code("timeout").category("timeout"));
    }
    if (host.read(watch.handle, 0, 0) == Errno.Limit) { // more changes than it holds: the next begins with what there is
      watch.drop();
      watch = watchState(tag, -1);
    } else if (!watch.next()) {
      must("watch state " + tag, Errno.Closed);
    }
  }
}
