import { none, Call, Request, Response, send } from "./http";
import { Pending, wait } from "./wait";

/** Sends requests, at most so many at a time, and returns the answers in their order. */
export function fetchAll(requests: Request[], atOnce: i32): Response[] {
  const answers = requests.map<Response>((request: Request): Response => new Response(request.what));
  const calls: Call[] = []; // under way
  const indices: i32[] = []; // of their requests
  let sent = 0;
  while (sent < requests.length || calls.length > 0) {
    while (sent < requests.length && calls.length < max(atOnce, 1)) {
      const call = send(requests[sent]);
      const refused = call.refused;
      if (refused && refused.error == "exhausted" && calls.length > 0) { // no more than the host lets be under way
        atOnce = calls.length;
        break;
      }
      if (refused) {
        answers[sent] = refused;
      } else {
        calls.push(call);
        indices.push(sent);
      }
      sent++;
    }
    if (calls.length == 0) break; // the last ones were refused
    const n = wait(calls.map<Pending>((call: Call): Pending => call), -1);
    answers[indices[n]] = calls[n].response();
    calls.splice(n, 1);
    indices.splice(n, 1);
  }
  return answers;
}

/** Sends all requests at once and returns the first good response, or a bad one if there is none. */
export function race(requests: Request[]): Response {
  const calls = requests.map<Call>((request: Request): Call => send(request));
  let last = none("race", -5);
  while (calls.length > 0) {
    let n = 0; // those that were refused come first
    while (n < calls.length && !calls[n].refused) n++;
    if (n == calls.length) n = wait(calls.map<Pending>((call: Call): Pending => call), -1);
    last = calls.splice(n, 1)[0].response();
    if (last.status >= 100 && last.status < 400) break;
  }
  for (let i = 0; i < calls.length; i++) {
    if (!calls[i].refused) calls[i].drop();
  }
  return last;
}
