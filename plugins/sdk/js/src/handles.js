// Promises for what takes time: each stands for a handle of the host. When no
// promise can be settled by JavaScript alone, the host waits for all handles together.

import { HostError, answer, host, setWait } from "./core.js";

const waiting = new Map(); // handle → how its promise is settled

export class Operation extends Promise {
  // What then and await make are ordinary promises.
  static get [Symbol.species]() {
    return Promise;
  }
  drop() {
    const entry = waiting.get(this.handle);
    if (entry?.promise !== this) return; // settled, or never begun
    waiting.delete(this.handle);
    if (!entry.stays) host.drop(this.handle);
    this.then(undefined, () => {}); // nobody need look
    entry.reject(new HostError("dropped", -7));
  }
}

// A promise of what take reads of a handle when it is ready. A handle that
// stays has more messages; others are dropped then.
export function operation(handle, take, stays = false) {
  const entry = { take, stays };
  const promise = new Operation((resolve, reject) => Object.assign(entry, { resolve, reject }));
  promise.handle = handle;
  entry.promise = promise;
  waiting.set(handle, entry);
  return promise;
}

export function isWaiting(handle) {
  return waiting.has(handle);
}

// All of what came of a handle.
export function read(what, handle) {
  return answer(what, host.read(handle));
}

setWait(() => {
  if (waiting.size === 0) return false;
  const handles = Int32Array.from(waiting.keys());
  const i = host.wait(new Uint8Array(handles.buffer), -1);
  if (i < 0) { // stopped: all that is awaited ends like this
    const entries = [...waiting.values()];
    waiting.clear();
    for (const { reject } of entries) reject(new HostError("wait", i));
    return true;
  }
  const { take, stays, resolve, reject } = waiting.get(handles[i]);
  waiting.delete(handles[i]);
  try {
    resolve(take(handles[i]));
  } catch (e) {
    reject(e);
  }
  if (!stays) host.drop(handles[i]);
  return true;
}, () => waiting.clear()); // the host drops all handles then

// The first of several; the others are dropped.
export async function race(operations) {
  const all = [...operations];
  try {
    return await Promise.race(all.map((o, index) => o.then((value) => ({ index, value }))));
  } finally {
    for (const o of all) o.drop?.();
  }
}

// A handle with many messages. Unless it is the only one of its kind, a loop over it that is left gives it up.
export class Stream {
  #what;
  #handle;
  #message;
  #once;
  constructor(what, handle, message, once = true) {
    this.#what = what;
    this.#handle = answer(what, handle);
    this.#message = message;
    this.#once = once;
  }
  next() {
    if (isWaiting(this.#handle)) throw new Error(this.#what + ": next is awaited already");
    return operation(this.#handle, (handle) => {
      const bytes = host.read(handle);
      if (bytes === -7) return { done: true, value: undefined };
      return { done: false, value: this.#message(answer(this.#what, bytes)) };
    }, true);
  }
  drop() {
    host.drop(this.#handle);
  }
  [Symbol.asyncIterator]() {
    return this;
  }
  return() {
    if (this.#once) this.drop();
    return Promise.resolve({ done: true, value: undefined });
  }
}
