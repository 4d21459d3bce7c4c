'use strict';

const { HostError } = require('./errors');
const { HostFrame, WorkerFrame } = require('./protocol');

const MAX_BATCH = 1 << 20; // bytes of a batch to which nothing is added
const MAX_FRAME = 2 << 20; // of a frame that isn't cut into pieces
const MAX_WAITING = 64 << 20; // a program that doesn't wait for anything is refused more
const MAX_WHOLE = 80 << 20;
const NOTHING = Buffer.alloc(0);

/** Sends frames to the host in batches. */
class Sender {
  constructor(stream) {
    this.stream = stream;
    this.waiting = [];
    this.bytes = 0;
    this.sending = false;
    stream.on('drain', () => this.flush());
  }

  /** Sends a frame of about size bytes after those that were sent before. */
  send(frame, size) {
    if (this.bytes > MAX_WAITING) throw new HostError(-4, 'send to the host', 'too much waits: await what can be awaited');
    for (const [part, n] of size <= MAX_FRAME ? [[frame, size]] : pieces(frame)) {
      this.waiting.push([part, n]);
      this.bytes += n;
    }
    if (this.sending) return;
    this.sending = true;
    setImmediate(() => this.flush()); // so that what comes meanwhile goes with it
  }

  flush() {
    while (this.waiting.length > 0) {
      let n = 0;
      let size = 0;
      while (n < this.waiting.length && (n === 0 || size + this.waiting[n][1] <= MAX_BATCH)) size += this.waiting[n++][1];
      const frames = this.waiting.splice(0, n).map(([frame]) => frame);
      this.bytes -= size;
      if (!this.stream.write({ frames })) return; // until it drains
    }
    this.sending = false;
  }
}

function* pieces(frame) {
  const data = WorkerFrame.encode(frame).finish();
  for (let i = 0; i < data.length; i += MAX_FRAME / 2) {
    const part = data.subarray(i, i + MAX_FRAME / 2);
    yield [{ run: frame.run, piece: { data: part, last: i + part.length === data.length } }, part.length];
  }
}

/** One attempt at a task. */
class Run {
  constructor(number, task, sender) {
    Object.assign(this, { number, task, sender, cancelled: false, over: false });
    const left = Number(task.timeoutUs);
    this.deadline = left ? performance.now() + left / 1000 : Infinity;
    this.calls = new Map();
    this.last = 0;
    this.parts = [];
    this.controller = new AbortController();
    this.told = -Infinity; // when the last progress was
    this.later = undefined; // progress that was not told yet
  }

  /** Tells progress, ten times a second and the last one. */
  report(progress) {
    const now = performance.now();
    this.later = now - this.told < 100 ? progress : undefined;
    if (this.later) return;
    this.told = now;
    this.post({ progress });
  }

  /** Asks the host for something without waiting; size is what its bytes take. */
  post(call, size = 0) {
    this.sender.send({ run: this.number, call }, size + 256);
  }

  /** Asks the host for something. The promise is of its answer, or rejected with the HostError of its errno. */
  ask(what, call, size = 0) {
    return new Promise((resolve, reject) => {
      if (this.over) throw new HostError(-3, what);
      const id = ++this.last;
      this.post({ ...call, id }, size);
      this.calls.set(id, { what, resolve, reject });
    });
  }

  answer(answer) {
    const call = this.calls.get(answer.call);
    this.calls.delete(answer.call);
    if (answer.data.length === 0) answer.data = NOTHING; // the library has an array there
    if (answer.errno < 0) call?.reject(new HostError(answer.errno, call.what, answer.error));
    else call?.resolve(answer);
  }

  cancel() {
    this.cancelled = true;
    this.controller.abort(new HostError(-3, 'the job was cancelled'));
  }

  /** Ends all that waits for the host, now and later. */
  stop() {
    this.over = true;
    for (const { what, reject } of this.calls.values()) reject(new HostError(-3, what));
    this.calls.clear();
    this.controller.abort(new HostError(-3, 'the attempt was stopped'));
  }

  end(result, size) {
    if (this.later) this.post({ progress: this.later });
    this.over = true;
    for (const { what, reject } of this.calls.values()) reject(new HostError(-7, what, 'the handler has ended'));
    this.calls.clear();
    this.sender.send({ run: this.number, result }, size + 256);
  }

  /** Puts a frame together; undefined = it isn't whole yet. */
  piece(piece) {
    this.parts.push(piece.data);
    if (this.parts.reduce((n, part) => n + part.length, 0) > MAX_WHOLE) throw new Error('a frame in pieces is larger than 80 MiB');
    if (!piece.last) return undefined;
    const whole = HostFrame.decode(Buffer.concat(this.parts));
    this.parts = [];
    return whole;
  }
}

module.exports = { Run, Sender };
