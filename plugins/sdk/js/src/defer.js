import { Permanent, answer, data, decode, host, info } from "./core.js";
import { parseResponse, requestName, requestText } from "./message.js";

export function defer(url, { entry = "", args = "", ...init } = {}) {
  const name = "defer " + requestName(url, init);
  return info("child." + answer(name, host.http_defer(requestText(url, init), entry, data(args))));
}

export function parseReply(job) {
  let response;
  try {
    response = parseResponse(job.bytes(), "");
  } catch {
    // told below
  }
  const id = response?.headers.get("jobhost-request");
  if (!id) throw new Permanent("the payload is no reply to a deferred request", { code: "bad_input", category: "validation" });
  const binary = atob(response.headers.get("jobhost-args") ?? "");
  response.headers.delete("jobhost-request");
  response.headers.delete("jobhost-args");
  const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  return { id, response, args: decode(bytes), argBytes: bytes };
}
