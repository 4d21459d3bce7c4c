import { answer, data, host, info, join } from "./core.js";

const options = {
  worker: "worker", id: "id", contentType: "content_type", entry: "entry", priority: "priority", delay: "delay",
  runAt: "run_at", tasks: "tasks", maxAttempts: "max_attempts", timeout: "timeout",
};

// The spec as the host reads it: a line for each option, an empty line, the payload.
function specText({ payload, labels = {}, ...spec }) {
  let head = "";
  const option = (name, value) => {
    if (/[\r\n]/.test(name + value) || name.includes(":")) throw new TypeError(`submit: ${name} must be one line`);
    head += `${name}: ${value}\n`;
  };
  for (const [key, value] of Object.entries(spec)) {
    if (!(key in options)) throw new TypeError(`submit: there is no option ${key}; there are ${Object.keys(options).join(", ")}, labels and payload`);
    if (value === undefined) continue;
    const time = (key === "delay" || key === "timeout") && typeof value === "number";
    option(options[key], time ? value + "ms" : value instanceof Date ? value.toISOString() : value);
  }
  for (const [name, value] of Object.entries(labels)) option("label." + name, value + " "); // a space keeps an empty value
  return join(head + "\n", data(payload));
}

export function send(spec, when) {
  return answer("submit to " + spec.worker, host.submit(specText(spec), when));
}

export const childID = (n) => info("child." + n);

export const submit = (spec) => childID(send(spec, 0));
export const submitNow = (spec) => childID(send(spec, 1));
