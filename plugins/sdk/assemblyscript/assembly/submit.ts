import * as host from "./host";
import { errnoText, Errno, Failure, must, raise } from "./failure";
import { toBytes, toText } from "./bytes";
import { Pending, read } from "./wait";

/**
 * What job is wanted. Only the worker is needed, which the manifest must name in the `submit` of this worker:
 *
 *     job.submit(new Spec("resize", "a.png").priority("high").label("customer", "7"));
 */
export class Spec {
  lines: string = "";
  payload: Uint8Array = new Uint8Array(0);

  constructor(readonly worker: string, payload: string = "") {
    this.option("worker", worker);
    this.payload = toBytes(payload);
  }

  /** Gives the job a payload of bytes. */
  bytes(payload: Uint8Array): Spec {
    this.payload = payload;
    return this;
  }

  /** Names the job. Otherwise it gets a name that is the same in each attempt of this task. */
  id(id: string): Spec { return this.option("id", id); }
  contentType(type: string): Spec { return this.option("content_type", type); }
  entry(entry: string): Spec { return this.option("entry", entry); }
  /** critical, high, normal, low or background. */
  priority(priority: string): Spec { return this.option("priority", priority); }
  /** Lets the job begin after so many milliseconds. */
  delay(ms: i64): Spec { return this.option("delay", ms.toString() + "ms"); }
  /** Lets the job begin at a time as of RFC 3339. */
  runAt(time: string): Spec { return this.option("run_at", time); }
  tasks(n: i32): Spec { return this.option("tasks", n.toString()); }
  maxAttempts(n: i32): Spec { return this.option("max_attempts", n.toString()); }
  /** Lets an attempt take so many milliseconds. */
  timeout(ms: i64): Spec { return this.option("timeout", ms.toString() + "ms"); }
  label(name: string, value: string): Spec { return this.option("label." + name, value + " "); } // keeps an empty value

  private option(name: string, value: string): Spec {
    const line = name + ": " + value;
    if (line.includes("\n") || line.includes("\r")) {
      raise(new Failure("submit: " + errnoText(Errno.Invalid) + ": a line break in " + name).permanent());
    }
    this.lines += line + "\n";
    return this;
  }
}

/** A job that this attempt has submitted. The job goes on when nobody waits. */
export class Child extends Pending {
  constructor(handle: i32, readonly id: string) { super(handle); }

  /** Waits for the end of the job and returns what is told of it, as JSON: job, worker, state, result and more. */
  ended(): string {
    const told = read("wait for job " + this.id, this.handle);
    return told ? toText(told) : "";
  }
}

export function submit(spec: Spec, when: i32): Child {
  const head = toBytes(spec.lines + "\n");
  const text = concat(head, spec.payload);
  const number = must("submit to " + spec.worker, host.submit(text.dataStart, text.length, when));
  return new Child(number, childID(number));
}

/** Returns the id of a job by its number. */
export function childID(number: i32): string {
  const key = toBytes("child." + number.toString());
  const id = new Uint8Array(512); // ids are shorter
  const n = must("submit", host.info(key.dataStart, key.length, id.dataStart, id.length));
  return toText(id.subarray(0, n));
}

/** Returns head and body as one. */
export function concat(head: Uint8Array, body: Uint8Array): Uint8Array {
  const whole = new Uint8Array(head.length + body.length);
  whole.set(head);
  whole.set(body, head.length);
  return whole;
}
