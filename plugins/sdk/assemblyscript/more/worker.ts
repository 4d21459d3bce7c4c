// What the suite doesn't look at: streams of messages, replies, and what goes wrong.

import { act, Job, quote, Reply, Request, Response, run, Spec, toBytes } from "jobhost";
import { field, number, text, unquote } from "jobhost/assembly/json";
import { fromBase64 } from "jobhost/assembly/http";
export { jh_buf, jh_wake } from "jobhost";

// The generator is seeded when the module starts.
Math.random();

export function jh_run(len: i32): i64 { return run(len, (job: Job): string => Math.random().toString()); }

export function follow(len: i32): i64 {
  return run(len, (job: Job): string => {
    const s = job.getState(job.text, 1);
    job.emit(`${s.job} ${s.task} ${s.tag} ${s.status} ${quote(s.message)} ${s.payload} ${s.time} ${s.version}`);
    const watch = job.watchState(job.text, 1);
    for (let event = watch.next(); event; event = watch.next()) {
      const state = event.state;
      job.emit(state ? `${state.status} ${event.replay} ${state.message.length}` : `${event.replay} ${event.sentinel}`);
    }
    return "end";
  });
}

export function meet(len: i32): i64 {
  return run(len, (job: Job): string => job.synchronize("a", 2, 60_000).status.toString());
}

export function fiber(len: i32): i64 {
  return run(len, (job: Job): string => {
    const inbox = job.inbox;
    for (let message = inbox.next(); message; message = inbox.next()) job.emit(message);
    return "end";
  });
}

export function reply(len: i32): i64 {
  return run(len, (job: Job): string => {
    const reply = Reply.parse(job.input);
    if (!reply) return "none";
    return `${reply.id} ${String.UTF8.decode(reply.args.slice().buffer)} ${reply.response.error} ${reply.response.good().text}`;
  });
}

export function get(len: i32): i64 {
  return run(len, (job: Job): string => job.fetch(new Request(job.text, "PUT").header("a", "b").text("c")).good().text);
}

export function all(len: i32): i64 {
  return run(len, (job: Job): string => {
    const requests: Request[] = [];
    for (let i = 0; i < 5; i++) requests.push(new Request(`http://${i}/`, i == 2 ? "G T" : "GET"));
    return job.fetchAll(requests, 2).map<string>((r: Response): string => r.ok ? r.text : r.error).join(" ");
  });
}

export function first(len: i32): i64 {
  return run(len, (job: Job): string => {
    const requests = ["0", "1", "2", "3"].map<Request>((n: string): Request => new Request(`http://${n}/`, n == "3" ? "G T" : "GET"));
    return job.race(requests).good().text;
  });
}

export function submit(len: i32): i64 {
  return run(len, (job: Job): string => {
    const spec = new Spec("other", "p\n").id("i").delay(1500).tasks(2).label("l", "");
    const child = job.start(spec);
    return child.id + " " + job.submit(new Spec("other").label("x", job.text)) + " " + child.ended();
  });
}

export function metrics(len: i32): i64 {
  return act(len, (job: Job): void => {
    job.counter("seen", ["a", "\"\\\n", "b", ""]).add(2);
    job.gauge("depth").set(0.5);
    job.histogram("took").observe(1.5);
    console.warn("careful");
    trace("traced", 2, 1, 2.5);
  });
}

export function broken(len: i32): i64 {
  return run(len, (job: Job): string => {
    const list = [1, 2, 3];
    assert(job.text.length < 10, "too long");
    return list[job.text.length].toString();
  });
}

export function texts(len: i32): i64 {
  return run(len, (job: Job): string => {
    const samples = ["", "plain", "\"\\/\n\r\t\x01\x7f", "🟢 Ä", "{}[],:"];
    for (let i = 0; i < samples.length; i++) assert(unquote(quote(samples[i])) == samples[i], samples[i]);
    assert(unquote('"\\ud83d\\ude00\\u00e4\\b\\/"') == "😀ä\b/", "escapes");
    const json = ' {"a": 1,"b":{"c":[1,"}"],"d":"\\"}"} , "e":"x,y","f":-7, "g":[]}';
    assert(field(json, "b") == '{"c":[1,"}"],"d":"\\"}"}', "object");
    assert(text(json, "e") == "x,y" && number(json, "f") == -7 && field(json, "g") == "[]", "values");
    assert(field(json, "c") == "" && text(json, "c") == "" && number(json, "c") == 0, "nothing");
    assert(field("{}", "a") == "" && field("", "a") == "" && field('{"a', "a") == "", "no object");
    assert(String.UTF8.decode(fromBase64("YXJncw==").slice().buffer) == "args", "base64");
    assert(toBytes("\ud800").length == 3, "half of a character");
    return "ok";
  });
}

// Garbage is collected while jobs run.
export function waste(len: i32): i64 {
  return run(len, (job: Job): Uint8Array => {
    let last = job.input;
    for (let i = 0; i < 20; i++) last = job.input;
    return last;
  });
}
