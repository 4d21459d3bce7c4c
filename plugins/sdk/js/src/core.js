// What every worker has: the job, the log, random numbers, and how a job runs.

import { Failure, Permanent, fail, show } from "./failure.js";
import { answer, host } from "./host.js";

export { Failure, Permanent, Snooze } from "./failure.js";
export { HostError, answer, host } from "./host.js";

const writer = (level) => (...values) => {
  if (host.log_level() <= level) host.log(level, values.map(show).join(" "));
};

export const log = { debug: writer(-4), info: writer(0), warn: writer(4), error: writer(8) };

// A call of console is as many lines as it prints elsewhere; one of log is one line.
const printer = (write) => (...values) => {
  for (const text of values.map(show).join(" ").split("\n")) write(text);
};
globalThis.console = {
  debug: printer(log.debug), trace: printer(log.debug), log: printer(log.info), info: printer(log.info),
  warn: printer(log.warn), error: printer(log.error),
};

export const encode = (text) => host.encode(String(text).toWellFormed());
export const decode = (bytes) => {
  const b = octets(bytes);
  return host.decode(b, 0, b.length);
};

// The bytes of a view or a buffer, without a copy.
export function octets(v) {
  if (v instanceof Uint8Array) return v;
  if (v instanceof ArrayBuffer) return new Uint8Array(v);
  if (ArrayBuffer.isView(v)) return new Uint8Array(v.buffer, v.byteOffset, v.byteLength);
  throw new TypeError("bytes are a Uint8Array, another view, or an ArrayBuffer, not " + show(v));
}

// What the host takes: text and bytes as they are, anything else as JSON.
export function data(v) {
  if (typeof v === "string" || v instanceof Uint8Array) return v;
  if (v === undefined || v === null) return "";
  if (v instanceof ArrayBuffer || ArrayBuffer.isView(v)) return octets(v);
  return JSON.stringify(v) ?? "";
}

// A head and a body, as text if both are.
export function join(head, body) {
  if (typeof body === "string") return head + body;
  const start = encode(head), all = new Uint8Array(start.length + body.length);
  all.set(start);
  all.set(body, start.length);
  return all;
}

export class Body {
  #bytes;
  constructor(bytes) {
    this.#bytes = bytes;
  }
  bytes() {
    return this.#bytes;
  }
  text() {
    return host.decode(this.#bytes, 0, this.#bytes.length);
  }
  json() {
    return JSON.parse(this.text());
  }
}

export const info = (key) => {
  const value = host.info(key);
  return value === -1 ? undefined : answer("read " + key.replace(".", " "), value);
};
export const config = (name) => info("config." + name);
export const secret = (name) => info("secret." + name);

class Job {
  #size;
  constructor(size) {
    this.#size = size;
  }
  bytes() {
    return host.input_bytes(this.#size);
  }
  text() {
    return host.input_text(this.#size);
  }
  json() {
    try {
      return JSON.parse(this.text());
    } catch (e) {
      throw new Permanent("the payload is no JSON: " + e.message, { code: "bad_input", category: "validation", cause: e });
    }
  }
  get id() { return info("job.id"); }
  get task() { return Number(info("job.task")); }
  get tasks() { return Number(info("job.tasks")); }
  get attempt() { return Number(info("job.attempt")); }
  get priority() { return info("job.priority"); }
  get worker() { return info("worker"); }
  get trace() { return info("trace"); }
  label(name) {
    return info("label." + name);
  }
  write(part) {
    answer("write", host.output(data(part)));
  }
  emit(message) {
    answer("emit", host.emit(data(message)));
  }
  progress(done, total = 0) {
    host.progress(done, total);
  }
  remaining() {
    const ms = host.remaining();
    return ms === -1 ? Infinity : Math.max(ms, 0);
  }
}

export function random(n) {
  if (!(n >= 0 && n <= 1 << 20)) throw new RangeError("random gives 0 to 1048576 bytes at a time");
  return host.random(n);
}

// Math.random of QuickJS is seeded while the worker is initialised, and would
// draw the same numbers in every job.
Math.random = host.math_random;

globalThis.crypto = {
  getRandomValues(view) {
    octets(view).set(random(view.byteLength));
    return view;
  },
  randomUUID() {
    const b = random(16);
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    const hex = Array.from(b, (x) => x.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  },
};

globalThis.TextEncoder = class TextEncoder {
  encoding = "utf-8";
  encode(text = "") {
    return encode(text);
  }
};
globalThis.TextDecoder = class TextDecoder {
  encoding = "utf-8";
  constructor(encoding = "utf-8") {
    if (!/^utf-?8$/i.test(encoding)) throw new RangeError("TextDecoder knows utf-8 alone, not " + encoding);
  }
  decode(bytes = new Uint8Array()) {
    return decode(bytes);
  }
};

const wakers = [];
export function onWake(f) {
  wakers.push(f);
}

// Waits until something is ready that a promise stands for, and settles it;
// false when there is none. The module that has handles sets it, and what it
// does at the end of a job.
let waitForOne = () => false, forget = () => {};
export function setWait(wait, end) {
  waitForOne = wait;
  forget = end;
}

let entries;
let settled; // a function that ends the job, when its handler has

const unhandled = new Map(); // promises that were rejected, with the reasons

function rejected(promise, reason, handled) {
  if (handled) unhandled.delete(promise);
  else unhandled.set(promise, reason);
}

function ended(result) {
  forget();
  if (unhandled.size > 0) {
    for (const reason of unhandled.values()) log.warn("nobody awaits a promise that was rejected: " + show(reason));
    unhandled.clear();
  }
  return result;
}

// Called by the glue for each job. True = not yet: promises are to be settled, then comes step.
function run(entry, size, woken) {
  settled = undefined;
  try {
    if (woken) for (const f of wakers) f();
    const result = entries[entry](new Job(size));
    if (typeof result?.then !== "function") return ended(output(result));
    result.then((v) => { settled = () => output(v); }, (e) => { settled = () => fail(e); });
    return true;
  } catch (e) {
    return ended(fail(e));
  }
}

function step() {
  try {
    if (settled) return ended(settled());
    if (waitForOne()) return true;
    throw new Failure("the handler waits for something that never comes", { code: "deadlock", category: "system" });
  } catch (e) {
    return ended(fail(e));
  }
}

function output(v) {
  return v === undefined || v === null ? undefined : data(v);
}

// Takes the exports of the worker, in the order of the module's.
export function start(exported, names) {
  entries = names.map((name) => {
    if (typeof exported[name] !== "function") throw new TypeError(`the export ${name} is no function: what a worker exports are its entries`);
    return exported[name];
  });
  host.start(run, step, rejected);
}
