'use strict';

// The numbers are those of docs/abi.md.
const ERRNOS = {
  '-1': ['not_found', 'not found'],
  '-2': ['denied', 'not granted'],
  '-3': ['stopped', 'cancelled or past the deadline'],
  '-4': ['limit', 'over the limit'],
  '-5': ['invalid', 'invalid argument'],
  '-6': ['io', 'I/O error'],
  '-7': ['closed', 'closed'],
  '-8': ['conflict', 'conflict'],
};

/** The host's refusal of a call. */
class HostError extends Error {
  constructor(errno, what, detail) {
    const [code, words] = ERRNOS[errno] ?? ['unknown', `errno ${errno}`];
    super(`${what}: ${words}${detail ? ` (${detail})` : ''}`);
    this.name = 'HostError';
    this.errno = errno;
    this.code = code;
  }
}

/** An error with what people and retry policies want to know of it. */
class Failure extends Error {
  constructor(message, { code, category, severity, context, permanent = false, cause } = {}) {
    super(message instanceof Error ? message.message : message, { cause: cause ?? (message instanceof Error ? message : undefined) });
    this.name = this.constructor.name;
    Object.assign(this, { code, category, severity, context, permanent });
  }
}

/** Thrown by a handler that no further attempt will help. */
class Permanent extends Failure {
  constructor(message, details) {
    super(message, { ...details, permanent: true });
  }
}

/** Thrown by a handler to run again after so many milliseconds; the attempt doesn't count. */
class Snooze extends Error {
  constructor(ms) {
    super(`snooze for ${ms} ms`);
    this.name = 'Snooze';
    this.ms = ms;
  }
}

/** A response that says no. */
class StatusError extends Failure {
  constructor(status) {
    const permanent = status < 500 && ![408, 409, 425, 429].includes(status);
    super(`the server answered ${status}`, { code: `http_${status}`, category: permanent ? 'business' : 'network', permanent });
    this.status = status;
  }
}

const LASTING = ['denied', 'invalid', 'tls', 'protocol', 'response_too_large', 'too_many', 'recursive'];
const CATEGORIES = {
  denied: 'validation', invalid: 'validation', timeout: 'timeout', dns: 'network', connection: 'network', tls: 'network',
  protocol: 'network', response_too_large: 'resource', too_many: 'network', recursive: 'network', breaker_open: 'network',
  rate_limited: 'resource', exhausted: 'resource',
};

/** There was no response; reason is the word of docs/abi.md. */
class ResponseError extends Failure {
  constructor(request, reason, message) {
    const text = message || reason;
    super(request ? `${request}: ${text}` : text, {
      code: reason, category: CATEGORIES[reason] ?? 'unknown', permanent: LASTING.includes(reason),
    });
    this.reason = reason;
  }
}

module.exports = { Failure, HostError, Permanent, ResponseError, Snooze, StatusError };
