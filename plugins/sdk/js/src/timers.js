import { answer, host } from "./core.js";
import { operation } from "./handles.js";

export function after(ms, value) {
  return operation(answer("after", host.timer(Math.max(0, Math.ceil(ms)))), () => value);
}

globalThis.setTimeout = (f, ms = 0, ...args) => {
  const timer = after(ms);
  timer.then(() => f(...args), () => {});
  return timer;
};
globalThis.clearTimeout = (timer) => timer?.drop();
