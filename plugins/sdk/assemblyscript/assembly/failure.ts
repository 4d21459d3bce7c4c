import * as host from "./host";
import { quote, toBytes } from "./bytes";

/** Why the host could not do what was asked; the numbers are those of the ABI. */
export namespace Errno {
  export const NotFound: i32 = -1;
  /** It is not granted in the manifest. */
  export const Denied: i32 = -2;
  /** The attempt is cancelled or past its deadline. */
  export const Stopped: i32 = -3;
  export const Limit: i32 = -4;
  /** An argument makes no sense. */
  export const Invalid: i32 = -5;
  export const IO: i32 = -6;
  export const Closed: i32 = -7;
  export const Conflict: i32 = -8;
}

/** Says an errno in a few words. */
export function errnoText(errno: i32): string {
  switch (errno) {
    case Errno.NotFound: return "not found";
    case Errno.Denied: return "not granted";
    case Errno.Stopped: return "cancelled or past the deadline";
    case Errno.Limit: return "over the limit";
    case Errno.Invalid: return "invalid argument";
    case Errno.IO: return "I/O error";
    case Errno.Closed: return "closed";
    case Errno.Conflict: return "conflict";
  }
  return "errno " + errno.toString();
}

// The kinds of failure as the ABI numbers them.
const RETRYABLE: i32 = 1;
const PERMANENT: i32 = 2;
const SNOOZE: i32 = 3;

// The host keeps no more than this of a failure.
const maxMessage = 4 << 10;
const maxContext = 16 << 10;

/**
 * How an attempt ends that doesn't succeed, for `job.fail`:
 *
 *     job.fail(new Failure("no quota left").code("quota").category("resource").context("account", 7).permanent());
 */
export class Failure {
  private kind: i32 = RETRYABLE;
  private fields: string = "";
  private details: string = "";

  /** Another attempt may cure it, unless it is marked otherwise. */
  constructor(private message: string) {}

  /** Marks it as one that no further attempt will cure. */
  permanent(): Failure {
    this.kind = PERMANENT;
    return this;
  }

  /** Names it for programs: 1 to 64 of A-Z a-z 0-9 . _ - */
  code(code: string): Failure { return this.field("code", code); }

  /** Says what it means: validation, timeout, network, resource, business, system or unknown. */
  category(category: string): Failure { return this.field("category", category); }

  /** Says how loudly to tell people: critical, error, warning or info. */
  severity(severity: string): Failure { return this.field("severity", severity); }

  /** Adds a text, a number or a boolean that is kept with the failure, up to 16 KiB in all. */
  context<T>(key: string, value: T): Failure {
    if (this.details.length > 0) this.details += ",";
    this.details += quote(key) + ":";
    if (isString<T>()) this.details += quote(<string>value);
    else if (isBoolean<T>()) this.details += value ? "true" : "false";
    else this.details += value.toString();
    return this;
  }

  private field(name: string, value: string): Failure {
    this.fields += ',"' + name + '":' + quote(value.substring(0, maxMessage));
    return this;
  }

  /** Says to the host that the attempt ends like this. */
  tell(): void {
    let text = '{"message":' + quote(this.message.substring(0, maxMessage)) + this.fields;
    if (this.details.length > maxContext) text += ',"context":{"omitted":"it is over the limit"}';
    else if (this.details.length > 0) text += ',"context":{' + this.details + "}";
    tell(this.kind, text + "}");
  }
}

function tell(kind: i32, text: string): void {
  const bytes = toBytes(text);
  host.fail(kind, bytes.dataStart, bytes.length);
}

/** Ends the attempt, which runs again after so many milliseconds and doesn't count. */
export function snooze(ms: i64): void {
  tell(SNOOZE, '{"after_ms":' + max<i64>(ms, 1).toString() + "}");
}

/** Ends the attempt here, with the sandbox, as `throw` does, but as the failure says. */
export function raise(failure: Failure): void {
  failure.tell();
  unreachable();
}

/** Ends the attempt if a call was answered by an errno; otherwise it returns the answer. */
export function must(what: string, answer: i32): i32 {
  if (answer < 0) raise(new Failure(what + ": " + errnoText(answer)));
  return answer;
}

/** Is what `throw`, `assert` and broken bounds end in: asc is told so by asconfig.json. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  const place = toBytes("aborted at " + (file ? file : "?") + ":" + line.toString() + ":" + column.toString());
  host.log(8, place.dataStart, place.length);
  const text = "panic: " + (message ? message : "");
  raise(new Failure(text).code("panic").category("system").severity("critical"));
}
