import { Failure, HostError, answer, decode, host } from "./core.js";
import { Stream } from "./handles.js";
import { after } from "./timers.js";

const finished = 2147483647;

// A message is at most 4 KiB; a character is at most 3 bytes for each of its units.
const short = (text) => text.length > 1360 ? text.slice(0, 1359) + "…" : text;
const place = ({ task = -1, tag = "", job } = {}) => [task, job === undefined ? tag : job + "/" + tag];
const watchText = (bytes) => JSON.parse(decode(bytes));

export const state = {
  FINISHED: finished,
  set(tag, status, message = "", payload) {
    answer("set state " + tag, host.state_set(tag, status, message, payload === undefined ? "" : JSON.stringify(payload)));
  },
  started: (tag) => state.set(tag, 1, "🟢 Started"),
  finished: (tag) => state.set(tag, finished, "⚫ Finished"),
  error: (tag, e) => state.set(tag, -1, short("🔴 " + (e?.message ?? e))),
  warning: (tag, text) => state.set(tag, -2, short("🟡 " + text)),
  get(query) {
    const [task, tag] = place(query);
    return JSON.parse(answer("get state " + tag, host.state_get(task, tag)));
  },
  watch(query) {
    const [task, tag] = place(query);
    return new Stream("watch state " + tag, host.state_watch(task, tag), watchText);
  },
  async synchronize(tag, status, timeout = Infinity) {
    const late = timeout === Infinity ? undefined : after(timeout, "late");
    let watch = state.watch({ tag });
    try {
      for (;;) {
        // Asked for after the watch has begun, so that no change is missed.
        const lowest = state.get({ tag });
        if (lowest.status >= status) return lowest;
        const next = watch.next();
        const first = await Promise.race(late ? [next, late] : [next]).catch((e) => e);
        if (first === "late") {
          next.drop();
          const text = `synchronize ${tag}: task ${lowest.task} is at ${lowest.status}`;
          throw new Failure(lowest.message ? `${text} (${lowest.message})` : text, { code: "timeout", category: "timeout" });
        }
        if (first.done) throw new HostError("watch state " + tag, -7); // the job was deleted
        if (first.code === "limit") { // more changes than it holds: the next begins with what there is
          watch.drop();
          watch = state.watch({ tag });
        } else if (first instanceof Error) {
          throw first;
        }
      }
    } finally {
      watch.drop();
      late?.drop();
    }
  },
};
