'use strict';

const { toBytes, toNumber } = require('./data');
const { Failure, HostError, Permanent } = require('./errors');
const { parseResponse, requestText, what } = require('./http');
const { States } = require('./state');

const MAX_PART = 1 << 20; // of what is read or written at once
const MAX_LINE = 128 << 10;
const LEVELS = { debug: -4, info: 0, warn: 4, error: 8 };

/** Bytes that came, with what can be read of them. */
class Body {
  constructor(data) {
    this.data = data;
  }

  bytes() {
    return this.data;
  }

  text() {
    return this.data.toString();
  }

  json() {
    return JSON.parse(this.text());
  }
}

/** The keys and values of the worker. */
class KV {
  constructor(run) {
    this.run = run;
  }

  async look(key) {
    try {
      return await this.run.ask(`get key ${key}`, { kvGet: { key: Buffer.from(key) } });
    } catch (e) {
      if (e.code === 'not_found') return undefined;
      throw e;
    }
  }

  async get(key) {
    return (await this.look(key))?.data.toString();
  }

  async getBytes(key) {
    return (await this.look(key))?.data;
  }

  async set(key, value, { ttl = 0 } = {}) {
    const bytes = toBytes(value);
    await this.run.ask(`set key ${key}`, { kvSet: { key: Buffer.from(key), value: bytes, ttlMs: Math.ceil(ttl) } }, bytes.length);
  }

  async delete(key) {
    await this.run.ask(`delete key ${key}`, { kvDelete: { key: Buffer.from(key) } });
  }

  async add(key, delta = 1) {
    const answer = await this.run.ask(`add to key ${key}`, { kvAdd: { key: Buffer.from(key), delta: long(delta) } });
    return toNumber(answer.number);
  }

  async version(key) {
    const answer = await this.look(key);
    return answer ? toNumber(answer.number) : 0;
  }

  async cas(key, version, value) {
    const bytes = toBytes(value);
    const kvCompareAndSet = { key: Buffer.from(key), version: long(version), value: bytes };
    try {
      await this.run.ask(`compare and set key ${key}`, { kvCompareAndSet }, bytes.length);
      return true;
    } catch (e) {
      if (e.code === 'conflict') return false;
      throw e;
    }
  }
}

/** A number as the protocol's library takes it. */
function long(n) {
  if (typeof n === 'number') return n;
  return { low: Number(BigInt.asIntN(32, n)), high: Number(BigInt.asIntN(32, n >> 32n)), unsigned: false };
}

/** The attempt that runs, and its payload. */
class Job extends Body {
  constructor(run, host) {
    const { task } = run;
    super(toBytes(task.input.length > 0 ? task.input : '')); // the library has an array for no bytes
    this.run = run;
    this.id = task.job;
    this.task = task.index;
    for (const name of ['tasks', 'attempt', 'priority', 'worker', 'trace', 'labels']) this[name] = task[name];
    this.size = Math.max(Number(task.inputBytes), task.input.length);
    this.config = host.config;
    this.kv = new KV(run);
    this.state = new States(this, run);
    this.log = Object.fromEntries(Object.entries(LEVELS).map(([name, level]) => [name, (...values) => this.line_(level, values)]));
  }

  /** Whether the job was cancelled: end soon. */
  get cancelled() {
    return this.run.cancelled;
  }

  /** Is aborted when the job is cancelled, and when the attempt is past its deadline. */
  get signal() {
    return this.run.controller.signal;
  }

  json() {
    try {
      return super.json();
    } catch (e) {
      throw new Permanent(`the payload is no JSON: ${e.message}`, { code: 'no_json', category: 'validation' });
    }
  }

  /** The payload piece by piece, once; for entries that were registered with stream. */
  async *stream() {
    if (this.data.length >= this.size) {
      if (this.size > 0) yield this.data;
      return;
    }
    for (;;) {
      const { data } = await this.run.ask('read the payload', { readInput: { max: MAX_PART } });
      if (data.length === 0) return;
      yield data;
    }
  }

  /** Fetches a payload that didn't come with the task. */
  async load_() {
    if (this.data.length >= this.size) return;
    const parts = [];
    for await (const part of this.stream()) parts.push(part);
    this.data = Buffer.concat(parts);
  }

  label(name) {
    return Object.hasOwn(this.labels, name) ? this.labels[name] : undefined;
  }

  async secret(name) {
    return (await this.run.ask(`read secret ${name}`, { info: { key: `secret.${name}` } })).data.toString();
  }

  async write(part) {
    const bytes = toBytes(part);
    for (let i = 0; i < bytes.length; i += MAX_PART) {
      const data = bytes.subarray(i, i + MAX_PART);
      await this.run.ask('write the result', { output: { data } }, data.length);
    }
  }

  line_(level, values) {
    if (level < this.run.task.logLevel) return;
    const text = values.map((v) => (typeof v === 'string' ? v : v instanceof Error ? v.stack : JSON.stringify(v) ?? String(v))).join(' ');
    const line = Buffer.from(text).subarray(0, MAX_LINE);
    this.run.post({ log: { level, line } }, line.length);
  }

  emit(message) {
    const data = toBytes(message);
    const limit = Number(this.run.task.outputLimit);
    if (limit > 0 && data.length > limit) throw new HostError(-4, 'emit');
    this.run.post({ emit: { data } }, data.length);
  }

  progress(done, total = 0) {
    this.run.report({ done, total });
  }

  /** Milliseconds until the deadline; Infinity = there is none, 0 = stop now. */
  remaining() {
    return this.run.cancelled || this.run.over ? 0 : Math.max(this.run.deadline - performance.now(), 0);
  }

  /** Submits a job when this one has succeeded, exactly once. The promise is of its id. */
  async submit(spec) {
    return (await this.submit_(spec, 0)).id;
  }

  /** Submits a job at once, whatever becomes of this one. */
  async submitNow(spec) {
    return (await this.submit_(spec, 1)).id;
  }

  /** submitNow for those who wait: of the job's id, and of what became of it, as callbacks get it. */
  async start(spec) {
    const { id, number } = await this.submit_(spec, 1);
    return { id, ended: this.operation_(`wait for job ${id}`, Promise.resolve(number), (data) => JSON.parse(data.toString())) };
  }

  async submit_({ worker, payload, labels = {}, ...options }, when) {
    const lines = [['worker', worker]];
    const names = { contentType: 'content_type', runAt: 'run_at', maxAttempts: 'max_attempts' };
    for (const [name, value] of Object.entries(options)) {
      if (value === undefined || value === '') continue;
      const ms = typeof value === 'number' && (name === 'delay' || name === 'timeout');
      lines.push([names[name] ?? name, ms ? `${value}ms` : value instanceof Date ? value.toISOString() : value]);
    }
    for (const [name, value] of Object.entries(labels)) lines.push([`label.${name}`, `${value} `]); // a space keeps an empty value
    if (lines.some(([name, value]) => /[\r\n:]/.test(name) || /[\r\n]/.test(value))) {
      throw new HostError(-5, `submit to ${worker}`, 'an option has a line break');
    }
    const spec = Buffer.concat([Buffer.from(lines.map(([name, value]) => `${name}: ${value}\n`).join('') + '\n'), toBytes(payload)]);
    const answer = await this.run.ask(`submit to ${worker}`, { submit: { spec, when } }, spec.length);
    return { id: answer.data.toString(), number: Number(answer.number) };
  }

  counter(name, labels) {
    return this.metric_(1, name, labels, 'add');
  }

  gauge(name, labels) {
    return this.metric_(2, name, labels, 'set');
  }

  histogram(name, labels) {
    return this.metric_(3, name, labels, 'observe');
  }

  metric_(kind, name, labels = {}, verb) {
    const quoted = (value) => String(value).replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n');
    const inside = Object.entries(labels).map(([key, value]) => `${key}="${quoted(value)}"`).join();
    const full = inside ? `${name}{${inside}}` : name;
    const defined = this.run.ask(`define metric ${full}`, { metric: { kind, name: full } }).catch((e) => {
      if (e.code !== 'denied') throw e; // a host that keeps none, such as that of jobhost exec, is told nothing
    });
    defined.catch(() => {}); // told when it is used
    return {
      [verb]: async (value = 1) => {
        const answer = await defined;
        if (answer) await this.run.ask(`observe ${full}`, { observe: { id: Number(answer.number), value } });
      },
    };
  }

  /** Sends a request where the manifest lets the worker go. */
  fetch(url, init = {}) {
    const request = what(url, init.method);
    const text = requestText(url, init);
    const handle = this.run.ask(request, { http: { request: text } }, text.length).then((a) => Number(a.number));
    return this.operation_(request, handle, (data) => parseResponse(data, request));
  }

  /** Has the host send a request when this job has succeeded. The promise is of the id by which the reply names it. */
  async defer(url, { entry = '', args, ...init } = {}) {
    const request = `defer ${what(url, init.method)}`;
    const httpDefer = { request: requestText(url, init), entry, args: toBytes(args) };
    const { number } = await this.run.ask(request, { httpDefer }, httpDefer.request.length + httpDefer.args.length);
    return (await this.run.ask(request, { info: { key: `child.${number}` } })).data.toString();
  }

  /** A promise of value after so many milliseconds. */
  after(ms, value) {
    const handle = this.run.ask('make a timer', { timer: { ms: Math.max(Math.ceil(ms), 0) } }).then((a) => Number(a.number));
    return this.operation_('wait for a timer', handle, () => value);
  }

  /** The first of several; the others are dropped. */
  async race(operations) {
    const all = [...operations];
    try {
      return await Promise.race(all.map(async (operation, index) => ({ index, value: await operation })));
    } finally {
      for (const operation of all) operation.drop?.();
    }
  }

  /** A promise of what comes of a handle, that can be dropped. */
  operation_(what_, handle, read) {
    let done = false;
    let drop;
    const dropped = new Promise((_, reject) => {
      drop = () => {
        if (done) return;
        done = true;
        handle.then((number) => this.run.over || this.run.post({ drop: { handle: number } }), () => {});
        reject(new HostError(-7, what_, 'it was dropped'));
      };
    });
    const message = handle.then(async (number) => {
      const parts = [];
      do parts.push((await this.read_(what_, number)).data); while (parts.at(-1).length === MAX_PART);
      if (!done) this.run.post({ drop: { handle: number } });
      done = true;
      return read(parts.length === 1 ? parts[0] : Buffer.concat(parts));
    });
    const operation = Promise.race([message, dropped]);
    operation.catch(() => {}); // whoever awaits it is told
    return Object.assign(operation, { drop });
  }

  read_(what_, handle) {
    return this.run.ask(what_, { read: { handle, max: MAX_PART } });
  }

  /** Messages of a handle with many. */
  stream_(what_, call, read) {
    const opened = this.run.ask(what_, call).then((a) => Number(a.number));
    opened.catch(() => {});
    const stream = {
      opened,
      next: async () => {
        try {
          return { done: false, value: read((await this.read_(what_, await opened)).data) };
        } catch (e) {
          if (e.code === 'closed') return { done: true, value: undefined };
          throw e;
        }
      },
      return: async () => {
        stream.drop();
        return { done: true, value: undefined };
      },
      drop: () => void opened.then((number) => this.run.over || this.run.post({ drop: { handle: number } }), () => {}),
      [Symbol.asyncIterator]: () => stream,
    };
    return stream;
  }

  /** What a fiber is sent. Leaving a loop over it doesn't end it. */
  inbox() {
    const stream = this.stream_('receive', { receive: {} }, (data) => new Body(data));
    stream.drop = () => {};
    return stream;
  }
}

module.exports = { Failure, Job };
