// Errors, and how a job ends that throws them.

import { HostError, host } from "./host.js";

export class Failure extends Error {
  constructor(message, { code, category, severity, context, permanent = false, cause } = {}) {
    super(message instanceof Error ? message.message : message, { cause: cause ?? (message instanceof Error ? message : undefined) });
    Object.assign(this, { code, category, severity, context, permanent });
  }
}
Failure.prototype.name = "Failure";

export class Permanent extends Failure {
  constructor(message, details = {}) {
    super(message, { ...details, permanent: true });
  }
}
Permanent.prototype.name = "Permanent";

export class Snooze extends Error {
  constructor(time) {
    super("snooze for " + (typeof time === "number" ? time + " ms" : time));
    this.time = time;
  }
}
Snooze.prototype.name = "Snooze";

// How a job ends that threw e.
export function fail(e) {
  if (e instanceof Snooze) {
    const { time } = e;
    host.fail(3, JSON.stringify(typeof time === "number" ? { after_ms: Math.max(1, Math.ceil(time)) } : { snooze: String(time) }));
    return;
  }
  const failure = e instanceof Failure ? e : ordinary(e);
  const { message, code, category, severity, context, permanent } = failure;
  host.fail(permanent ? 2 : 1, JSON.stringify({ message: String(message).slice(0, 4096), code, category, severity, context: fitting(context) }));
}

// An error that nobody made for the purpose: a bug, or one of a library.
function ordinary(e) {
  if (!(e instanceof Error)) return { message: "thrown: " + show(e) };
  if (e.name === "InternalError" && e.message === "out of memory") return { message: "out of memory", code: "out_of_memory", category: "resource" };
  const message = e.name === "Error" || e instanceof HostError ? e.message : e.name + ": " + e.message;
  const bug = e instanceof TypeError || e instanceof ReferenceError || e instanceof RangeError || e instanceof SyntaxError;
  const code = typeof e.code === "string" && /^[\w.-]{1,64}$/.test(e.code) ? e.code : bug ? "exception" : undefined;
  return { message, code, category: bug ? "system" : undefined, context: { stack: trace(e), cause: e.cause && show(e.cause) } };
}

// The host keeps no more than 16 KiB of a context, and wants JSON.
function fitting(context) {
  if (context === undefined) return undefined;
  try {
    const size = JSON.stringify(context).length;
    return size > 16000 ? { omitted: `about ${size} bytes are over the limit of 16 KiB` } : context;
  } catch (e) {
    return { omitted: e.message };
  }
}

function trace(e) {
  return String(e.stack ?? "").trim().slice(0, 4096);
}

// What console prints of a value.
export function show(v) {
  if (typeof v === "string") return v;
  if (v instanceof Error) return `${v.name}: ${v.message}\n${trace(v)}`.trimEnd();
  if (typeof v === "object" && v !== null || typeof v === "function") {
    try {
      return JSON.stringify(v, (_, x) => typeof x === "bigint" ? String(x) : x) ?? String(v);
    } catch {
      return Object.prototype.toString.call(v);
    }
  }
  return String(v);
}
