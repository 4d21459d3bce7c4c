import { decode } from "./core.js";
import { childID, send } from "./jobs.js";
import { operation, read } from "./handles.js";

// Submits a job at once. The promise is of what became of it.
export function start(spec) {
  const n = send(spec, 1);
  const child = operation(n, (handle) => JSON.parse(decode(read("wait for the job", handle))));
  child.id = childID(n);
  return child;
}
