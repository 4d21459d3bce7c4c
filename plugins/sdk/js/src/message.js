// HTTP messages: the text of requests, and what came.

import { Body, Failure, data, decode, join } from "./core.js";

export class Headers {
  #fields = new Map();
  constructor(init = {}) {
    for (const [name, value] of init[Symbol.iterator] ? init : Object.entries(init)) {
      for (const v of Array.isArray(value) ? value : [value]) this.append(name, v);
    }
  }
  append(name, value) {
    const key = String(name).toLowerCase();
    if (/[\r\n:]/.test(key) || /[\r\n]/.test(value)) throw new TypeError(`the field ${name} must be one line`);
    this.#fields.set(key, [...this.getAll(key), String(value)]);
  }
  get(name) {
    return this.#fields.get(name.toLowerCase())?.join(", ") ?? null;
  }
  getAll(name) {
    return this.#fields.get(name.toLowerCase()) ?? [];
  }
  has(name) {
    return this.#fields.has(name.toLowerCase());
  }
  delete(name) {
    this.#fields.delete(name.toLowerCase());
  }
  *[Symbol.iterator]() {
    for (const [name, values] of this.#fields) for (const value of values) yield [name, value];
  }
}

const categories = {
  timeout: "timeout", denied: "validation", invalid: "validation", response_too_large: "resource", exhausted: "resource",
  rate_limited: "resource", dns: "network", connection: "network", tls: "network", protocol: "network", too_many: "network",
  recursive: "network", breaker_open: "network",
};
const final = ["denied", "invalid", "tls", "protocol", "response_too_large", "too_many", "recursive"];

export class ResponseError extends Failure {
  constructor(reason, message, request) {
    super((request ? request + ": " : "") + (message || reason), { code: reason, category: categories[reason], permanent: final.includes(reason) });
    this.reason = reason;
  }
}
ResponseError.prototype.name = "ResponseError";

export class StatusError extends Failure {
  constructor(status) {
    const again = status >= 500 || [408, 409, 425, 429].includes(status);
    super("the server answered " + status, { code: "http_" + status, category: again ? "network" : "business", permanent: !again });
    this.status = status;
  }
}
StatusError.prototype.name = "StatusError";

export class Response extends Body {
  constructor(status, headers, bytes, request) {
    super(bytes);
    Object.assign(this, { status, headers, request });
  }
  get ok() {
    return this.status >= 200 && this.status < 300;
  }
  check() {
    if (this.status === 0) throw new ResponseError(this.headers.get("error") ?? "unknown", this.text(), this.request);
    if (this.status >= 400) throw new StatusError(this.status);
    return this;
  }
}

export function requestText(url, { method = "GET", headers, body } = {}) {
  if (/[\s]/.test(method + url)) throw new TypeError("method and URL must be without spaces: " + method + " " + url);
  const fields = new Headers(headers);
  const json = typeof body === "object" && body !== null && !(body instanceof ArrayBuffer) && !ArrayBuffer.isView(body);
  if (json && !fields.has("content-type")) fields.append("content-type", "application/json");
  let head = `${method} ${url}\n`;
  for (const [name, value] of fields) head += `${name}: ${value}\n`;
  return join(head + "\n", data(body));
}

// Method and URL without its query, for errors.
export const requestName = (url, { method = "GET" } = {}) => method + " " + String(url).split("?")[0];

export function parseResponse(bytes, request) {
  let end = bytes.indexOf(10);
  while (end >= 0 && bytes[end + 1] !== 10) end = bytes.indexOf(10, end + 1);
  if (end < 0) throw new Failure("what came is no response", { code: "protocol", category: "network", permanent: true });
  const [status, ...fields] = decode(bytes.subarray(0, end)).split("\n");
  const headers = new Headers(fields.map((f) => [f.slice(0, f.indexOf(":")), f.slice(f.indexOf(":") + 1).trim()]));
  return new Response(Number(status), headers, bytes.subarray(end + 2), request);
}
