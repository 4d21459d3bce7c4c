import { answer, host } from "./core.js";

const escapes = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };

function metric(kind, name, labels) {
  const list = Object.entries(labels).map(([k, v]) => `${k}="${String(v).replace(/[\\"\n]/g, (c) => escapes[c])}"`);
  const full = list.length ? `${name}{${list.join(",")}}` : name;
  const id = answer("metric " + full, host.metric(kind, full));
  return (value) => {
    answer("metric " + full, host.observe(id, value));
  };
}

export const counter = (name, labels = {}) => ({ add: (n = 1) => metric(1, name, labels)(n) });
export const gauge = (name, labels = {}) => ({ set: (value) => metric(2, name, labels)(value) });
export const histogram = (name, labels = {}) => ({ observe: (value) => metric(3, name, labels)(value) });
