// The behaviours that every SDK is tested for.
import {
  HostError, Permanent, Snooze, after, config, counter, defer, fetch, inbox, kv, log, race, random, secret, state, submit,
} from "jobhost";

export default (job) => job.text().replace(/[a-z]+/g, (s) => s.toUpperCase());

export const echo = (job) => job.bytes();

export function info(job) {
  const [, kind, name] = job.text().match(/^(?:(config|secret|label)\.)?(.*)$/);
  try {
    switch (kind) {
      case "config": return config(name) ?? "none";
      case "secret": return secret(name) ?? "none";
      case "label": return job.label(name) ?? "none";
    }
    const key = name.replace(/^job\./, "");
    return String((["id", "task", "tasks", "attempt", "priority", "worker", "trace"].includes(key) ? job[key] : undefined) ?? "none");
  } catch (e) {
    if (e instanceof HostError && e.code === "denied") return "denied";
    throw e;
  }
}

export function log_(job) {
  log.info(job.text());
  console.debug("debugging");
}
export { log_ as log };

export function fail(job) {
  throw new Permanent(job.text(), { code: "bad_input", category: "validation", context: { seen: true } });
}

export function retry(job) {
  throw new Error(job.text());
}

export function snooze() {
  throw new Snooze(1500);
}

export function panic() {
  throw new TypeError("boom");
}

export const count = () => String(kv.add("count", 1));

export function keep(job) {
  const kept = kv.getBytes("k");
  if (kept === undefined) kv.set("k", job.bytes());
  return kept;
}

export function swap(job) {
  let done = kv.cas("k", kv.version("k"), job.bytes()) ? "ok" : "conflict";
  if (!kv.cas("k", 12345, job.bytes())) done += " conflict";
  return done;
}

export { get as fetch };
async function get(job) {
  try {
    const response = await fetch(job.text());
    return `${response.status} ${response.text()}`;
  } catch (e) {
    return "error: " + e.message;
  }
}

export { fastest as race };
async function fastest(job) {
  const { value } = await race(job.text().split(" ").map((url) => fetch(url)));
  return value.bytes();
}

export async function timeout() {
  await after(10);
  return "late";
}

export const child = (job) => submit({ worker: "other", payload: job.text() });

export function spread(job) {
  job.progress(1, 2);
  counter("seen").add(1);
  job.emit(job.bytes());
  state.set("half", 50, "half");
  return String(state.get({ task: job.task, tag: "half" }).status);
}

export { later as defer };
function later(job) {
  defer(job.text(), { entry: "echo", args: "args" });
}

export { first as inbox };
async function first() {
  const { value } = await inbox().next();
  return value?.bytes();
}

export const draw = () => Array.from(random(8), (b) => b.toString(16).padStart(2, "0")).join("");

let times = 0;
export const fresh = () => String(++times);
