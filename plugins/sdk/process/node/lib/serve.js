'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');

const { makeCertificate } = require('./certificate');
const { toBytes } = require('./data');
const { Failure, HostError, Snooze } = require('./errors');
const { Job } = require('./job');
const { Run, Sender } = require('./link');
const { health, service } = require('./protocol');

const PROTOCOL = 1;
const MAX_MESSAGE = 16 << 20;

/**
 * Does jobs until the host ends the process. handlers is a function, or an object of functions by entry, of which
 * default is that of jobs that name none. start is called once, before the first job.
 */
function serve(handlers, { start } = {}) {
  if (process.env.JOBHOST_PLUGIN !== 'worker') {
    const name = path.basename(process.argv[1] ?? 'this');
    console.error(`${name} is a worker for jobhost, which starts it: see its section of the manifest, with abi = "process"`);
    process.exit(2);
  }
  if (!(process.env.PLUGIN_PROTOCOL_VERSIONS ?? '1').split(',').includes(String(PROTOCOL))) {
    console.error(`this worker speaks version ${PROTOCOL} of the protocol, which the host doesn't`);
    process.exit(2);
  }
  // What goes wrong where nobody waits for it concerns a task that can't be told; the others go on.
  process.on('unhandledRejection', (e) => console.error(e));
  process.on('SIGINT', () => {}); // is for the host, which ends its processes
  const entries = new Map(typeof handlers === 'function' ? [['default', handlers]] : Object.entries(handlers));
  if (entries.size === 0) throw new Error('serve: there is no handler');
  new Program(entries, start).serve();
}

class Program {
  constructor(entries, start) {
    Object.assign(this, { entries, start, runs: new Map(), host: { config: {} }, drained: [] });
    // The default comes first; without one, the first stands for it.
    this.names = [...entries.keys()].sort((a, b) => (b === 'default') - (a === 'default') || (a < b ? -1 : 1));
  }

  serve() {
    const server = new grpc.Server({ 'grpc.max_receive_message_length': MAX_MESSAGE, 'grpc.max_send_message_length': MAX_MESSAGE });
    server.addService(service, {
      describe: (call, reply) => this.describe(call.request).then((r) => reply(null, r), (e) => {
        console.error(e);
        reply({ code: grpc.status.FAILED_PRECONDITION, details: e.message });
      }),
      drain: (call, reply) => this.drain(() => reply(null, {})),
      run: (stream) => this.run(stream),
    });
    server.addService(health, { check: (call, reply) => reply(null, Buffer.from([8, 1])) });

    // A folder of its own: the name must be new, and nobody else's.
    const socket = path.join(fs.mkdtempSync(path.join(process.env.PLUGIN_UNIX_SOCKET_DIR ?? os.tmpdir(), 'w')), 's');
    const trusted = process.env.PLUGIN_CLIENT_CERT;
    const own = trusted ? makeCertificate() : { der: Buffer.alloc(0) };
    const credentials = trusted
      ? grpc.ServerCredentials.createSsl(Buffer.from(trusted), [{ private_key: own.key, cert_chain: own.pem }], true)
      : grpc.ServerCredentials.createInsecure();
    server.bindAsync(`unix:${socket}`, credentials, (error) => {
      if (error) throw error;
      const greeting = [1, PROTOCOL, 'unix', socket, 'grpc', own.der.toString('base64').replace(/=+$/, '')];
      if (process.env.PLUGIN_MULTIPLEX_GRPC) greeting.push('false');
      process.stdout.write(greeting.join('|') + '\n');
    });
  }

  async describe(request) {
    if (request.protocol !== PROTOCOL) throw new Error(`this worker speaks version ${PROTOCOL} of the protocol`);
    this.host = { worker: request.worker, config: request.config, slots: request.slots, version: request.host };
    await this.start?.(this.host);
    return { protocol: PROTOCOL, sdk: `node ${process.version}`, entries: this.names };
  }

  drain(done) {
    if (this.runs.size === 0) done();
    else this.drained.push(done);
  }

  run(stream) {
    const sender = new Sender(stream);
    stream.on('data', (batch) => {
      for (const frame of batch.frames) this.take(frame, sender);
    });
    // The host has ended the stream, or is gone: nothing is left to do for anybody.
    for (const end of ['end', 'cancelled', 'close', 'error']) stream.on(end, () => process.exit(0));
  }

  take(frame, sender) {
    const key = String(frame.run);
    if (frame.task) {
      const run = new Run(frame.run, frame.task, sender);
      this.runs.set(key, run);
      this.do(run).then(([result, size]) => {
        this.runs.delete(key);
        run.end(result, size);
        if (this.runs.size === 0) for (const done of this.drained.splice(0)) done();
      });
      return;
    }
    const run = this.runs.get(key);
    if (!run) return; // it has ended
    if (frame.answer) run.answer(frame.answer);
    else if (frame.cancel) run.cancel();
    else if (frame.stop) run.stop();
    else if (frame.piece) {
      const whole = run.piece(frame.piece);
      if (whole) this.take(Object.assign(whole, { run: frame.run }), sender);
    }
  }

  /** Runs a task to its end, and returns its result and how large that is. */
  async do(run) {
    const name = run.task.entry || this.names[0];
    const entry = this.entries.get(name);
    if (!entry) {
      return failure(new Failure(`the worker has no entry ${JSON.stringify(name)}`, { code: 'no_entry', category: 'validation', permanent: true }));
    }
    const { handler = entry, stream = false } = entry;
    try {
      const job = new Job(run, this.host);
      if (!stream) await job.load_();
      const output = toBytes(await handler(job));
      return [{ output }, output.length];
    } catch (e) {
      if (e instanceof Snooze) return [{ snoozeMs: Math.max(Math.ceil(e.ms), 1) }, 0];
      if (e instanceof HostError && e.code === 'stopped' && (run.cancelled || run.over)) return [{ stopped: {} }, 0];
      return failure(e);
    }
  }
}

function failure(e) {
  const said = e instanceof Failure ? e : { code: e instanceof HostError ? e.code : e?.name === 'Error' ? '' : e?.name };
  const context = said.context === undefined ? '' : JSON.stringify(said.context);
  const f = {
    code: said.code ?? '', category: said.category ?? '', severity: said.severity ?? '', permanent: said.permanent ?? false,
    message: String(e?.message ?? e), context, stack: e instanceof Failure ? '' : String(e?.stack ?? ''),
  };
  return [{ failure: f }, 4 * (f.message.length + context.length + f.stack.length)];
}

module.exports = { serve };
