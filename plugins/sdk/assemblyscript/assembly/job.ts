import * as host from "./host";
import { fetchAll, race } from "./batch";
import { toBytes, toText } from "./bytes";
import { Errno, Failure, must, snooze } from "./failure";
import { Call, defer, Request, Response, send } from "./http";
import { KV } from "./kv";
import { Counter, Gauge, Histogram, metric } from "./metrics";
import { getState, setState, State, StateFinished, StateStarted, synchronize, Watch, watchState } from "./state";
import { Child, Spec, submit } from "./submit";
import { Inbox, inbox, Pending, Timer, timer, wait } from "./wait";

/** How much a line of the log matters. */
export namespace Level {
  export const Debug: i32 = -4;
  export const Info: i32 = 0;
  export const Warn: i32 = 4;
  export const Error: i32 = 8;
}

// Where the host writes the input. It is made when the module starts, so that a sandbox that is
// put back to its beginning has it still, and grows with the largest input.
let room: i32 = 64 << 10;
let box: usize = heap.alloc(<usize>room);
const current = new Job();

/** Is called by the host, when it needs room for an input of `least` bytes. */
export function jh_buf(least: i32): usize {
  if (<u32>least > <u32>room) {
    heap.free(box);
    // A quarter more than is needed: sizes that rise slowly shouldn't leave a dead mailbox each.
    room = least + least / 4;
    box = heap.alloc(<usize>room);
  }
  return box;
}

/**
 * Runs a handler for an entry of the worker, which returns a text or a Uint8Array:
 *
 *     export function jh_run(len: i32): i64 { return run(len, hello); }
 */
export function run<T>(len: i32, handler: (job: Job) => T): i64 {
  current.size = len;
  const bytes = toBytes(handler(current));
  // The host copies them before anything else runs here.
  return bytes.length == 0 ? 0 : (<i64>bytes.dataStart << 32) | <i64>bytes.length;
}

/** Is `run` for handlers that return nothing. */
export function act(len: i32, handler: (job: Job) => void): i64 {
  current.size = len;
  handler(current);
  return 0;
}

/** The attempt under way and all that it may ask of the host. There is one. */
export class Job {
  /** The keys and values of the worker. */
  readonly kv: KV = new KV();
  size: i32 = 0;

  /** A copy of the payload. */
  get input(): Uint8Array {
    const bytes = new Uint8Array(this.size);
    memory.copy(bytes.dataStart, box, <usize>this.size);
    return bytes;
  }

  /** The payload as a text. */
  get text(): string { return String.UTF8.decodeUnsafe(box, <usize>this.size); }

  /** Appends a text or bytes to the result, before what the handler returns. */
  write<T>(data: T): void {
    const bytes = toBytes(data);
    must("write the result", host.output(bytes.dataStart, bytes.length));
  }

  /** Publishes a text or bytes to whoever watches the job, at once, whatever becomes of the attempt. */
  emit<T>(data: T): void {
    const bytes = toBytes(data);
    must("emit", host.emit(bytes.dataStart, bytes.length));
  }

  /** Makes the attempt fail, whatever the handler returns after it. */
  fail(failure: Failure): void { failure.tell(); }

  /** Makes the attempt run again after so many milliseconds; it doesn't count. */
  snooze(ms: i64): void { snooze(ms); }

  /** Writes a line to the job's log. Lines below the worker's level are dropped. */
  log(text: string, level: i32 = Level.Info): void {
    const bytes = toBytes(text);
    host.log(level, bytes.dataStart, bytes.length);
  }

  /** Reports whether lines of this level are kept, to spare oneself the making of others. */
  logs(level: i32): bool { return level >= host.log_level(); }

  /** Says how far the attempt is, in units of the worker's choice; total 0 = unknown. */
  progress(done: i64, total: i64): void { host.progress(done, total); }

  /**
   * The milliseconds that are left: i64.MAX_VALUE without a deadline, 0 when the attempt is cancelled or
   * late. Handlers that run for long ask now and then, and return early on 0.
   */
  get remaining(): i64 {
    const ms = host.remaining();
    return ms == -1 ? i64.MAX_VALUE : max<i64>(ms, 0);
  }

  get id(): string { return this.known("job.id"); }
  /** Which of the job's partitions this is, from 0. */
  get task(): i32 { return <i32>parseInt(this.known("job.task")); }
  get tasks(): i32 { return <i32>parseInt(this.known("job.tasks")); }
  /** Which attempt this is, from 1. */
  get attempt(): i32 { return <i32>parseInt(this.known("job.attempt")); }
  get priority(): string { return this.known("job.priority"); }
  get worker(): string { return this.known("worker"); }
  /** The id of the workflow that the job is a step of, or "". */
  get trace(): string { return this.known("trace"); }

  /** A value of the worker's config in the manifest; null if there is none. */
  config(key: string): string | null { return this.info("config." + key); }
  /** A label of the job; null if there is none. */
  label(key: string): string | null { return this.info("label." + key); }
  /** A secret that the manifest grants the worker; null if it doesn't, whether there is one or not. */
  secret(name: string): string | null { return this.info("secret." + name); }

  /**
   * What the host knows by a key of the ABI, such as `job.id`. null = there is nothing, or it is not
   * granted: `errno` says which.
   */
  info(key: string): string | null {
    const k = toBytes(key);
    let value = new Uint8Array(256);
    while (true) {
      const n = host.info(k.dataStart, k.length, value.dataStart, value.length);
      this.errno = min(n, 0);
      if (n == Errno.NotFound || n == Errno.Denied) return null;
      must("read " + key, n);
      if (n <= value.length) return toText(value.subarray(0, n));
      value = new Uint8Array(n);
    }
  }

  /** Why `info` returned null. */
  errno: i32 = 0;

  private known(key: string): string {
    const value = this.info(key);
    return value ? value : "";
  }

  /**
   * Random bytes that differ from job to job: the host is asked each time. They are good for keys and
   * tokens too.
   */
  random(size: i32): Uint8Array {
    const bytes = new Uint8Array(size);
    assert(host.random_get(bytes.dataStart, size) == 0, "the host gave no random bytes");
    return bytes;
  }

  /**
   * A counter of the worker's own. labels are names and values in turn:
   *
   *     job.counter("requests", ["class", "5xx"]).add(1);
   *
   * A metric that the host refuses, as when there are too many, counts nothing.
   */
  counter(name: string, labels: string[] = []): Counter { return new Counter(metric(1, name, labels)); }
  gauge(name: string, labels: string[] = []): Gauge { return new Gauge(metric(2, name, labels)); }
  histogram(name: string, labels: string[] = []): Histogram { return new Histogram(metric(3, name, labels)); }

  /** Submits a job when this one has succeeded, exactly once, and returns its id. */
  submit(spec: Spec): string { return submit(spec, 0).id; }
  /** Submits a job at once and durably, whatever becomes of this one; it may be waited for. */
  start(spec: Spec): Child { return submit(spec, 1); }

  /** Sends a request and waits for its response. There is always one: see `Response.error`. */
  fetch(request: Request): Response { return send(request).response(); }
  /** Is `fetch` for an URL. */
  get(url: string): Response { return send(new Request(url)).response(); }
  /** Sends requests, at most so many at a time, and returns the answers in their order. */
  fetchAll(requests: Request[], atOnce: i32 = 64): Response[] { return fetchAll(requests, atOnce); }
  /** Sends all requests at once and returns the first good response, or a bad one if there is none. The others are dropped. */
  race(requests: Request[]): Response { return race(requests); }
  /** Begins a request and returns at once. */
  send(request: Request): Call { return send(request); }
  /**
   * Hands a request to the host, which sends it when this job has succeeded, durably and at least once. The
   * response comes as a new job of this worker, for `entry` (empty = the worker's own); there `Reply.parse`
   * reads it. args, a text or bytes of up to 64 KiB, come with it. Returns the id by which the reply names it.
   */
  defer<T>(request: Request, entry: string, args: T): string { return defer(request, entry, toBytes(args)); }

  /**
   * Waits until one of the pending is ready and returns its index, for at most so many milliseconds: 0 only
   * looks, -1 waits as long as the attempt may run. -1 = none was ready in time. Nothing is given up:
   * whoever wants the first one only drops the others.
   */
  wait(pending: Pending[], timeout: i64 = -1): i32 { return wait(pending, timeout); }
  /** A timer that is ready after so many milliseconds. */
  after(ms: i64): Timer { return timer(ms); }
  /** What the fiber is sent; jobs are sent nothing. */
  get inbox(): Inbox { return inbox(); }

  /**
   * Reports how far this task is, durably and at once, whatever becomes of the attempt: 0 not started, below
   * 0 an error, StateFinished; others are the worker's own. payload is a JSON object, or empty.
   */
  setState(tag: string, status: i32, message: string = "", payload: string = ""): void { setState(tag, status, message, payload); }
  setStarted(tag: string): void { setState(tag, StateStarted, "🟢 Started", ""); }
  setFinished(tag: string): void { setState(tag, StateFinished, "⚫ Finished", ""); }
  setError(tag: string, text: string): void { setState(tag, -1, "🔴 " + text, ""); }
  setWarning(tag: string, text: string): void { setState(tag, -2, "🟡 " + text, ""); }
  /**
   * The state that prevails under a tag, of a task or of all (-1): the one with the lowest status, so that a
   * job is as far as its slowest task. A tag such as "JOB/TAG" is another job's, if the manifest grants it.
   */
  getState(tag: string, task: i32 = -1): State { return getState(tag, task); }
  /**
   * Waits at a barrier: until every task of the job has reported at least the status `target` under a tag. It
   * returns the lowest state then. A worker whose tasks wait for each other needs a slot for each. If the time,
   * in milliseconds, is up, the attempt fails with who has not come.
   */
  synchronize(tag: string, target: i32, timeout: i64): State { return synchronize(tag, target, timeout); }
  /** Begins to follow states. */
  watchState(tag: string, task: i32 = -1): Watch { return watchState(tag, task); }
}
