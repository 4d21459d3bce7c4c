// What arrives at the host: each entry is a part of TestCalls.
import { after, counter, defer, fetch, gauge, histogram, inbox, kv, log, race, start, state, submit, submitNow } from "jobhost";

export default () => "";

export const object = () => ({ a: [1, null] });
export const nothing = () => null;
export const unserializable = () => ({ a: 1n });
export const text = () => new TextDecoder().decode(new TextEncoder().encode("größe \ud800"));
export function parts(job) {
  job.write("one ");
  job.write(new Uint8Array([116, 119, 111]));
  return new Uint16Array([0x2020]);
}
export const payload = (job) => job.json();
export const thrown = () => {
  throw { a: 1 };
};
export const rejects = async () => {
  await null;
  throw new RangeError("async");
};
export const context = () => {
  throw Object.assign(new Error("no quota"), { code: "quota" });
};

export const hang = () => new Promise(() => {});
export const thenable = () => ({ then: (resolve) => resolve("then") });
export async function timers() {
  const order = [];
  setTimeout((x) => order.push(x), 20, "b");
  setTimeout(() => order.push("a"), 1);
  clearTimeout(setTimeout(() => order.push("never"), 5));
  await after(40);
  return order.join();
}
export async function dropped() {
  const late = after(10000);
  late.drop();
  return late.catch((e) => e.code);
}
export const badURL = () => fetch("http://a b").catch((e) => e.name);
export async function unawaited() {
  Promise.reject(new Error("nobody looks"));
  return "done";
}
export function lines() {
  console.log("a", { b: 1 }, [2], "3\nnext");
  log.warn("one\nline");
}

export function reports() {
  state.started("a");
  state.set("a", -7, "x\ny", { b: 1 });
  state.error("a", new Error("oh"));
  state.warning("a", "w".repeat(5000));
  state.finished("a");
}

export async function follows() {
  const of = { job: "j2", task: 1, tag: "a" }, { status, message, payload } = state.get(of);
  const seen = [`${status} ${message} ${JSON.stringify(payload)}`];
  try {
    for await (const { state: s, replay, sentinel } of state.watch(of)) seen.push([s?.status, replay, !!sentinel].join(" "));
  } catch (e) {
    seen.push(e.message);
  }
  return seen.join("; ");
}

export const meets = async () => String((await state.synchronize("a", 2, 60_000)).status);

export async function fiber(job) {
  for await (const message of inbox()) job.emit(message.text().slice(0, 5) + message.bytes().length);
  return "end";
}

// One message, and then the rest in another loop.
export async function twice(job) {
  for await (const message of inbox()) {
    job.emit(message.text());
    break;
  }
  return fiber(job);
}

export async function family() {
  const ids = [
    submit({ worker: "w", payload: { a: 1 }, delay: 1500, tasks: 2, labels: { b: "", a: "x" } }),
    submitNow({ worker: "w", payload: new Uint8Array([0, 255]), runAt: new Date(0), contentType: "a/b", maxAttempts: 1 }),
  ];
  const child = start({ worker: "w", payload: "p", timeout: "5s" });
  return [...ids, child.id, (await child).state].join(" ");
}
export const misspelled = () => submit({ worker: "w", prio: "high" });
export const twoLines = () => submit({ worker: "w\nid: x" });

export function metrics() {
  counter("n", { b: 'x"\\\n' }).add(2);
  gauge("g").set(-1.5);
  histogram("h", { code: 200 }).observe(1);
}

export async function post() {
  const headers = { "X-A": ["1", "2"], b: "3" };
  const answers = await Promise.all([
    fetch("http://x/", { method: "POST", body: { n: 1 }, headers }),
    fetch("http://x/", { method: "PUT", body: new Uint8Array([255]) }),
  ]);
  return answers.map((r) => [r.status, r.ok, r.headers.get("A"), r.headers.getAll("a").length, r.text()].join(" ")).join("; ");
}
export const get = async (job) => (await fetch("http://x/" + job.text() + "?q")).check().json();

export async function mirrors() {
  const { index, value } = await race([fetch("http://slow/"), fetch("http://slower/"), after(2000, "late")]);
  return index + " " + (value.status ?? value);
}
export async function chain() {
  for (let i = 0; i < 5; i++) await after(1000);
  return "done";
}
export async function leaves() {
  fetch("http://slow/");
  return "left";
}
export const later = () => defer("http://x/?q", { method: "POST", body: "b", entry: "done", args: { o: 7 } });
export const sums = (job) => [kv.add("n", 2), kv.add("n", -(2n ** 62n)), kv.get("n")].join(" ");
