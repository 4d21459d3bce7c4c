// What workers do at the edges: each entry is a case of TestEdges.
import { after, fetch, log, onWake, race } from "jobhost";
import page from "./page.html";
import { double } from "./lib/double.js";

let woken = 0;
onWake(() => woken++);
const seed = Math.random();

export default () => "ok";
export const wakes = () => String(woken);
export const imports = () => page.trim() + double(21);

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
export const large = () => "x".repeat(1 + (1 << 20));

export function deep() {
  const f = (n) => n + f(n + 1);
  return f(0);
}
export function hoard() {
  const all = [];
  for (;;) all.push(new Uint8Array(1 << 20));
}
export function grow() {
  const all = [];
  for (let i = 0; i < 100000; i++) all.push({ i });
  return String(all.length);
}
export const thrown = () => {
  throw { a: 1 };
};
export const later = async () => {
  await null;
  throw new RangeError("async");
};
export const context = () => {
  throw Object.assign(new Error("no quota"), { code: "quota" });
};

export const hang = () => new Promise(() => {});
export const thenable = () => ({ then: (resolve) => resolve("then") });
export async function overlap() {
  const begin = Date.now();
  await Promise.all([1, 2, 3, 4].map(() => after(50)));
  return String(Date.now() - begin < 150);
}
export async function timers() {
  const order = [];
  setTimeout((x) => order.push(x), 20, "b");
  setTimeout(() => order.push("a"), 1);
  clearTimeout(setTimeout(() => order.push("never"), 5));
  await after(40);
  return order.join();
}
export const fastest = async () => (await race([after(10000, "slow"), after(1, "fast")])).value;
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
  console.log("a", { b: 1 }, [2], 3n);
  log.warn("one\nline");
}

export const draws = () => [Math.random() !== seed, Math.random() !== Math.random()].join();
export const uuid = () => String(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(crypto.randomUUID()));
