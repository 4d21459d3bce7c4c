// What the suite for SDKs calls: an entry for each thing that a worker may do.

import { act, Errno, Failure, Job, Level, Request, run, Spec } from "jobhost";
export { jh_buf } from "jobhost";

export function jh_run(len: i32): i64 {
  return run(len, (job: Job): Uint8Array => {
    const bytes = job.input;
    for (let i = 0; i < bytes.length; i++) {
      if (bytes[i] >= 97 && bytes[i] <= 122) bytes[i] -= 32;
    }
    return bytes;
  });
}

export function echo(len: i32): i64 { return run(len, (job: Job): Uint8Array => job.input); }

export function info(len: i32): i64 {
  return run(len, (job: Job): string => {
    const value = job.info(job.text);
    if (value) return value;
    return job.errno == Errno.Denied ? "denied" : "none";
  });
}

export function log(len: i32): i64 {
  return act(len, (job: Job): void => {
    job.log(job.text);
    job.log("debugging", Level.Debug);
  });
}

export function fail(len: i32): i64 {
  return act(len, (job: Job): void => {
    job.fail(new Failure(job.text).code("bad_input").category("validation").context("seen", true).permanent());
  });
}

export function retry(len: i32): i64 { return act(len, (job: Job): void => job.fail(new Failure(job.text))); }

export function snooze(len: i32): i64 { return act(len, (job: Job): void => job.snooze(1500)); }

export function panic(len: i32): i64 {
  return act(len, (job: Job): void => {
    throw new Error("boom");
  });
}

export function count(len: i32): i64 { return run(len, (job: Job): string => job.kv.add("count", 1).toString()); }

export function keep(len: i32): i64 {
  return run(len, (job: Job): Uint8Array => {
    const value = job.kv.get("k");
    if (value) return value;
    job.kv.set("k", job.input);
    return new Uint8Array(0);
  });
}

export function swap(len: i32): i64 {
  return run(len, (job: Job): string => {
    const version = job.kv.version("k");
    if (!job.kv.compareAndSet("k", version, job.input)) return "conflict";
    return job.kv.compareAndSet("k", 12345, job.input) ? "ok" : "ok conflict";
  });
}

export function fetch(len: i32): i64 {
  return run(len, (job: Job): string => {
    const response = job.get(job.text);
    if (response.status == 0) return "error: " + response.error + ": " + response.text;
    return response.status.toString() + " " + response.text;
  });
}

export function race(len: i32): i64 {
  return run(len, (job: Job): Uint8Array => {
    const urls = job.text.split(" ");
    const calls = [job.send(new Request(urls[0])), job.send(new Request(urls[1]))];
    const winner = job.wait([calls[0], calls[1]]);
    calls[1 - winner].drop();
    return calls[winner].response().good().body;
  });
}

export function timeout(len: i32): i64 {
  return run(len, (job: Job): string => {
    job.wait([job.after(10)]);
    return "late";
  });
}

export function child(len: i32): i64 {
  return run(len, (job: Job): string => job.submit(new Spec("other").bytes(job.input)));
}

export function spread(len: i32): i64 {
  return run(len, (job: Job): string => {
    job.progress(1, 2);
    job.counter("seen").add(1);
    job.emit(job.input);
    job.setState("half", 50, "half");
    return job.getState("half", job.task).status.toString();
  });
}

export function defer(len: i32): i64 {
  return act(len, (job: Job): void => {
    job.defer(new Request(job.text), "echo", "args");
  });
}

export function inbox(len: i32): i64 {
  return run(len, (job: Job): Uint8Array => {
    const message = job.inbox.next();
    return message ? message : new Uint8Array(0);
  });
}

export function draw(len: i32): i64 {
  return run(len, (job: Job): string => {
    const bytes = job.random(8);
    let hex = "";
    for (let i = 0; i < bytes.length; i++) hex += (bytes[i] < 16 ? "0" : "") + bytes[i].toString(16);
    return hex;
  });
}

let seen = 0;

export function fresh(len: i32): i64 { return run(len, (job: Job): string => (++seen).toString()); }
