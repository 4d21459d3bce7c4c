import * as host from "./host";
import { toBytes, toText } from "./bytes";
import { errnoText, Errno, Failure, must, raise } from "./failure";
import { childID, concat } from "./submit";
import { Pending, read } from "./wait";

/**
 * An HTTP request. The manifest must allow where it goes, and where that redirects to:
 *
 *     new Request("https://api.example.com/v1/prices", "POST").header("content-type", "application/json").text("{}")
 */
export class Request {
  private lines: string = "";
  private content: Uint8Array = new Uint8Array(0);
  private bad: bool;

  constructor(readonly url: string, readonly method: string = "GET") {
    this.bad = broken(url) || broken(method) || method.includes(" ");
  }

  /** Adds a field. The host sets Host, Accept-Encoding, the framing, and an Idempotency-Key unless there is one. */
  header(name: string, value: string): Request {
    this.bad = this.bad || broken(name) || broken(value) || name.includes(":");
    this.lines += name + ": " + value + "\n";
    return this;
  }

  /** Gives it a body of bytes. */
  body(content: Uint8Array): Request {
    this.content = content;
    return this;
  }

  /** Gives it a body that is a text. */
  text(content: string): Request { return this.body(toBytes(content)); }

  /** Names it in errors, without the query, in which there may be secrets. */
  get what(): string { return this.method + " " + this.url.split("?")[0]; }

  /** The request as the host reads it; null = a line of it would be two. */
  message(): Uint8Array | null {
    if (this.bad) return null;
    return concat(toBytes(this.method + " " + this.url + "\n" + this.lines + "\n"), this.content);
  }
}

function broken(text: string): bool { return text.includes("\n") || text.includes("\r"); }

/** A request on its way, and then its response. */
export class Call extends Pending {
  constructor(handle: i32, private what: string, readonly refused: Response | null = null) { super(handle); }

  /** Waits for the response. */
  response(): Response {
    if (this.refused) return this.refused!;
    const text = read(this.what, this.handle);
    this.drop();
    const response = text ? Response.read(this.what, text) : null;
    return response ? response : none(this.what, Errno.IO);
  }
}

/** An HTTP response, with any status, or the reason why there is none. */
export class Response {
  /** Such as 200; 0 = there is none. */
  status: i32 = 0;
  /** Why there is none, in a word of the ABI: denied, timeout, dns, connection, tls, …; "" if there is one. */
  error: string = "";
  /** Names, in lower case, and values in turn. */
  headers: string[] = [];
  /** It is whole and decoded; without a response a message for people. */
  body: Uint8Array = new Uint8Array(0);

  constructor(private what: string) {}

  get text(): string { return toText(this.body); }
  get ok(): bool { return this.status >= 200 && this.status <= 299; }

  /** The first value of a field, whose name is in lower case; null if it isn't there. */
  header(name: string): string | null {
    for (let i = 0; i < this.headers.length; i += 2) {
      if (this.headers[i] == name) return this.headers[i + 1];
    }
    return null;
  }

  /** Reports whether the same request may succeed later. */
  get retryable(): bool {
    const s = this.status;
    if (s != 0) return s >= 500 || s == 408 || s == 409 || s == 425 || s == 429;
    return ["denied", "invalid", "tls", "protocol", "response_too_large", "too_many", "recursive"].indexOf(this.error) < 0;
  }

  /**
   * Ends the attempt if there is no response, or one with a status of 400 or more: for good, unless another
   * attempt may end in another way. The code is such as http_404 or timeout.
   */
  good(): Response {
    if (this.status >= 100 && this.status < 400) return this;
    let failure: Failure;
    if (this.status == 0) {
      failure = new Failure(this.what + ": " + this.text).code(this.error).category(category(this.error));
    } else {
      failure = new Failure(this.what + ": the server answered " + this.status.toString())
        .code("http_" + this.status.toString()).category(this.retryable ? "network" : "business");
    }
    raise(this.retryable ? failure : failure.permanent());
    return this;
  }

  /** Reads a response as the host writes it; null = it is none. */
  static read(what: string, text: Uint8Array): Response | null {
    let end = 0;
    while (end + 1 < text.length && !(text[end] == 10 && text[end + 1] == 10)) end++;
    if (end + 1 >= text.length) return null;
    const lines = toText(text.subarray(0, end)).split("\n");
    if (!(text[0] >= 48 && text[0] <= 57)) return null;
    const r = new Response(what);
    r.status = <i32>parseInt(lines[0]);
    r.body = text.subarray(end + 2);
    for (let i = 1; i < lines.length; i++) {
      const colon = lines[i].indexOf(": ");
      r.headers.push(colon < 0 ? lines[i] : lines[i].substring(0, colon));
      r.headers.push(colon < 0 ? "" : lines[i].substring(colon + 2));
    }
    if (r.status == 0) {
      const reason = r.header("error");
      r.error = reason ? reason : "unknown";
    }
    return r;
  }
}

function category(error: string): string {
  if (error == "timeout") return "timeout";
  if (error == "denied" || error == "invalid") return "validation";
  if (error == "response_too_large" || error == "exhausted" || error == "rate_limited") return "resource";
  return error == "cancelled" || error == "unknown" ? "unknown" : "network";
}

/** Makes a response of what the host answered instead of sending. */
export function none(what: string, errno: i32): Response {
  const r = new Response(what);
  r.body = toBytes(errnoText(errno));
  r.error = "unknown";
  if (errno == Errno.Denied) r.error = "denied";
  if (errno == Errno.Invalid) r.error = "invalid";
  if (errno == Errno.Limit) r.error = "exhausted";
  if (errno == Errno.Stopped) r.error = "cancelled";
  return r;
}

export function send(request: Request): Call {
  const text = request.message();
  const n = text ? host.http(text.dataStart, text.length) : Errno.Invalid;
  return new Call(n, request.what, n < 0 ? none(request.what, n) : null);
}

export function defer(request: Request, entry: string, args: Uint8Array): string {
  const what = "defer " + request.what;
  const text = request.message();
  const e = toBytes(entry);
  if (!text) {
    must(what, Errno.Invalid);
    return "";
  }
  return childID(must(what, host.http_defer(text.dataStart, text.length, e.dataStart, e.length, args.dataStart, args.length)));
}

/** What a job is given whose request was deferred by another. */
export class Reply {
  constructor(readonly id: string, readonly args: Uint8Array, readonly response: Response) {}

  /** Reads the payload of such a job; null = it is none, as when somebody else submitted the job. */
  static parse(payload: Uint8Array): Reply | null {
    const response = Response.read("", payload);
    const id = response ? response.header("jobhost-request") : null;
    if (!response || !id) return null;
    const args = response.header("jobhost-args");
    return new Reply(id, fromBase64(args ? args : ""), response);
  }
}

/** Decodes base64 with padding. */
export function fromBase64(text: string): Uint8Array {
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const out = new Uint8Array(text.length / 4 * 3 + 3);
  let bits = 0, count = 0, n = 0;
  for (let i = 0; i < text.length && text.charAt(i) != "="; i++) {
    bits = bits << 6 | digits.indexOf(text.charAt(i));
    count += 6;
    if (count >= 8) {
      count -= 8;
      out[n++] = <u8>(bits >> count);
    }
  }
  return out.subarray(0, n);
}
