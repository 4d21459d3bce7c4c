'use strict';

const { toBytes } = require('./data');
const { HostError, Permanent, ResponseError, StatusError } = require('./errors');

/** An HTTP response, with any status. headers has the first value of each field, in lower case; all has all. */
class Response {
  constructor(status, all, body) {
    Object.assign(this, { status, all, body });
    this.headers = Object.fromEntries(Object.entries(all).map(([name, values]) => [name, values[0]]));
  }

  get ok() {
    return this.status >= 200 && this.status <= 299;
  }

  bytes() {
    return this.body;
  }

  text() {
    return this.body.toString();
  }

  json() {
    return JSON.parse(this.text());
  }

  /** Returns the response, or throws a StatusError from 400 on. */
  check() {
    if (this.error) throw this.error;
    if (this.status >= 400) throw new StatusError(this.status);
    return this;
  }
}

/** Method and URL for errors, without the query, in which there may be secrets. */
const what = (url, method = 'GET') => `${method} ${String(url).split('?')[0]}`;

/** A request as the host reads it. */
function requestText(url, { method = 'GET', headers = {}, body } = {}) {
  const lines = [`${method} ${url}`];
  for (const [name, values] of Object.entries(headers)) {
    if (name === '' || name.includes(':')) throw new HostError(-5, what(url, method), `header ${JSON.stringify(name)}`);
    for (const value of [values].flat()) lines.push(`${name}: ${value}`);
  }
  if (/\s/.test(method) || lines.some((line) => /[\r\n]/.test(line))) {
    throw new HostError(-5, what(url, method), 'a line break or a space where there can be none');
  }
  return Buffer.concat([Buffer.from(lines.join('\n') + '\n\n'), toBytes(body)]);
}

function parse(text) {
  const end = text.indexOf('\n\n');
  const [status, ...lines] = text.subarray(0, Math.max(end, 0)).toString().split('\n');
  if (end < 0 || !/^\d+$/.test(status)) return undefined;
  const all = {};
  for (const line of lines) {
    const at = line.indexOf(': ');
    (all[line.slice(0, at)] ??= []).push(line.slice(at + 2));
  }
  return new Response(Number(status), all, text.subarray(end + 2));
}

/** Reads a response as the host writes it; throws a ResponseError if there was none. */
function parseResponse(text, request) {
  const response = parse(text);
  if (!response) throw new HostError(-5, `read the response to ${request}`);
  if (response.status === 0) throw new ResponseError(request, response.headers.error, response.text());
  return response;
}

/** Reads the payload of a job that a response came as; throws Permanent if it is none. */
function parseReply(job) {
  const response = parse(job.bytes());
  const id = response?.headers['jobhost-request'];
  if (!id) throw new Permanent('the payload is no reply to a deferred request', { code: 'no_reply', category: 'validation' });
  const argBytes = Buffer.from(response.headers['jobhost-args'] ?? '', 'base64');
  if (response.status === 0) response.error = new ResponseError('', response.headers.error, response.text());
  for (const name of ['jobhost-request', 'jobhost-args']) {
    delete response.headers[name];
    delete response.all[name];
  }
  return { id, response, argBytes, args: argBytes.toString() };
}

module.exports = { parseReply, parseResponse, requestText, what };
