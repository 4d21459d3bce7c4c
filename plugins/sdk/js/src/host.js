// The calls of the host, as the glue gives them.

export const host = globalThis.__jobhost;
delete globalThis.__jobhost;

const errnos = {
  1: ["not_found", "not found"], 2: ["denied", "not granted"], 3: ["stopped", "cancelled or past the deadline"],
  4: ["limit", "over the limit"], 5: ["invalid", "invalid argument"], 6: ["io", "I/O error"], 7: ["closed", "closed"],
  8: ["conflict", "conflict"],
};

export class HostError extends Error {
  constructor(what, errno) {
    const [code, text] = errnos[-errno] ?? ["unknown", "errno " + errno];
    super(what + ": " + text);
    this.code = code;
    this.errno = errno;
  }
}
HostError.prototype.name = "HostError";

// Returns the answer of a call unless it is an errno.
export function answer(what, n) {
  if (typeof n === "number" && n < 0) throw new HostError(what, n);
  return n;
}
