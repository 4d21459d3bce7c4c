import * as host from "./host";
import { Errno, errnoText, Failure, must, raise } from "./failure";

/** Something that a job waits for: a Call, a Timer, a Child, a Watch or an Inbox. */
export class Pending {
  constructor(readonly handle: i32) {}

  /** Gives it up: a request that is under way is cancelled, a job goes on. */
  drop(): void { host.drop(this.handle); }
}

/** Is ready when its time has come. */
export class Timer extends Pending {}

export function timer(ms: i64): Timer {
  return new Timer(must("make a timer", host.timer(ms)));
}

export function wait(pending: Pending[], timeout: i64): i32 {
  const handles = new StaticArray<i32>(pending.length);
  for (let i = 0; i < pending.length; i++) handles[i] = pending[i].handle;
  const n = host.wait(changetype<usize>(handles), handles.length, timeout);
  return n == -1 ? n : must("wait", n);
}

/** Waits for what comes of a handle and returns it whole; null = there is no more. */
export function read(what: string, handle: i32): Uint8Array | null {
  const size = host.read(handle, 0, 0);
  if (size == Errno.Closed) return null;
  const message = new Uint8Array(must(what, size));
  let done = 0;
  while (done < size) {
    const n = must(what, host.read(handle, message.dataStart + done, size - done));
    if (n == 0) raise(new Failure(what + ": " + errnoText(Errno.IO))); // it is shorter than the host said
    done += n;
  }
  return message;
}

/** What a fiber is sent, message by message. It may be waited for together with others. */
export class Inbox extends Pending {
  /** Waits for the next message, which may be empty; null = nobody can send any more. */
  next(): Uint8Array | null { return next("receive", this.handle); }
}

export function inbox(): Inbox {
  return new Inbox(must("receive", host.recv()));
}

/** Is `read` for handles with many messages. One that is empty is gone only after a read with room. */
export function next(what: string, handle: i32): Uint8Array | null {
  const message = read(what, handle);
  if (message && message.length == 0) {
    const room = new Uint8Array(1);
    must(what, host.read(handle, room.dataStart, 1));
  }
  return message;
}
