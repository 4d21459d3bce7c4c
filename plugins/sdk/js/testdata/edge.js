// What workers do at the edges: each entry is a case of TestEdges.
import { kv, onWake } from "jobhost";
import page from "./page.html";
import answer from "./lib/answer.json" with { type: "json" };
import { double } from "./lib/double.js";

let woken = 0;
onWake(() => woken++);
const seed = Math.random();

export default () => "ok";
export const wakes = () => String(woken);
export const imports = () => page.trim() + double(answer.half);

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
export function draws() {
  const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(crypto.randomUUID());
  return [Math.random() !== seed, Math.random() !== Math.random(), uuid].join();
}
export const key = () => kv.get("k");
