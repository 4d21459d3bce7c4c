#!/usr/bin/env -S node --preserve-symlinks-main
'use strict';

// Uses each part of the SDK, so that the suite of all SDKs can see it arrive at the host.

require = require('node:module').createRequire(process.cwd() + '/'); // modules are found from the worker's folder
const crypto = require('node:crypto');
const { HostError, Permanent, Snooze, serve } = require('..');

const about = (job) => ({ worker: job.worker, trace: job.trace, 'job.id': job.id, 'job.task': job.task, 'job.tasks': job.tasks, 'job.attempt': job.attempt, 'job.priority': job.priority });

async function info(job) {
  const [, group, name] = job.text().match(/^(?:(config|secret|label)\.)?(.*)$/);
  switch (group) {
    case 'config': return job.config[name] ?? 'none';
    case 'label': return job.label(name) ?? 'none';
    case 'secret':
      return job.secret(name).catch((e) => {
        if (e instanceof HostError && e.code === 'denied') return 'denied';
        throw e;
      });
  }
  return String((/^job\.|^worker$|^trace$/.test(name) ? about(job)[name] : undefined) ?? 'none');
}

async function keep(job) {
  const value = await job.kv.getBytes('k');
  if (value === undefined) await job.kv.set('k', job.bytes());
  return value;
}

async function swap(job) {
  const done = await job.kv.cas('k', await job.kv.version('k'), job.bytes()) ? 'ok' : 'no';
  return await job.kv.cas('k', 12345, '') ? done : `${done} conflict`;
}

async function fetch(job) {
  try {
    const response = await job.fetch(job.text());
    return `${response.status} ${response.text()}`;
  } catch (e) {
    return `error: ${e.message}`;
  }
}

async function spread(job) {
  job.progress(1, 2);
  await job.counter('seen').add(1);
  job.emit(job.bytes());
  await job.state.set('half', 50, 'half');
  return String((await job.state.get({ task: job.task, tag: 'half' })).status);
}

let calls = 0;
let meeting = [];
const meet = () => new Promise((resolve) => {
  meeting.push(resolve);
  if (meeting.length === 4) for (const go of meeting.splice(0)) go('True');
});

serve({
  default: (job) => Buffer.from(job.bytes().map((c) => (c >= 97 && c <= 122 ? c - 32 : c))),
  echo: (job) => job.bytes(),
  info,
  log: (job) => {
    job.log.info(job.text());
    job.log.debug('debugging');
  },
  fail: (job) => {
    throw new Permanent(job.text(), { code: 'bad_input', category: 'validation', context: { seen: true } });
  },
  retry: (job) => {
    throw new Error(job.text());
  },
  snooze: () => {
    throw new Snooze(1500);
  },
  panic: () => {
    throw new TypeError('boom');
  },
  count: async (job) => String(await job.kv.add('count')),
  keep,
  swap,
  draw: () => crypto.randomBytes(8).toString('hex'),
  fetch,
  race: async (job) => (await job.race(job.text().split(' ').map((url) => job.fetch(url)))).value.bytes(),
  timeout: (job) => job.after(10, 'late'),
  child: (job) => job.submit({ worker: 'other', payload: job.bytes() }),
  spread,
  defer: async (job) => {
    await job.defer(job.text(), { entry: 'echo', args: 'args' });
  },
  inbox: async (job) => (await job.inbox().next()).value.bytes(),

  // What follows is of processes only.
  noop: () => {},
  size: {
    stream: true,
    handler: async (job) => {
      let n = 0;
      for await (const part of job.stream()) {
        n += part.length;
        await job.write(part);
      }
      job.log.info(n);
    },
  },
  wait: async (job) => {
    try {
      return await job.after(3_600_000, 'the hour is over');
    } catch (e) {
      await job.after(10); // it can wait and ask again
      if (job.cancelled && job.remaining() === 0) await job.kv.set('told', '');
      throw e;
    }
  },
  fresh: () => String(++calls),
  meet,
  lines: () => {
    console.log('to the output');
    console.error('to the error output');
  },
});
