'use strict';

const { toBytes } = require('./data');
const { Failure } = require('./errors');

const FINISHED = 2147483647;

/** How far the job's tasks are, for each other and for everyone. */
class States {
  constructor(job, run) {
    this.job = job;
    this.run = run;
  }

  async set(tag, status, message = '', payload = undefined) {
    const stateSet = { tag, status, message: Buffer.from(String(message)), payload: toBytes(payload) };
    await this.run.ask(`set state ${tag}`, { stateSet }, stateSet.message.length + stateSet.payload.length);
  }

  started(tag) {
    return this.set(tag, 1, '🟢 Started');
  }

  finished(tag) {
    return this.set(tag, FINISHED, '⚫ Finished');
  }

  error(tag, error) {
    return this.set(tag, -1, `🔴 ${error?.message ?? error}`.slice(0, 1000));
  }

  warning(tag, text) {
    return this.set(tag, -2, `🟡 ${text}`.slice(0, 1000));
  }

  /** The state that prevails: the one with the lowest status. */
  async get({ task = -1, tag = '', job } = {}) {
    const name = job === undefined ? tag : `${job}/${tag}`;
    const { data } = await this.run.ask(`get state ${name}`, { stateGet: { task, tag: name } });
    return JSON.parse(data.toString());
  }

  /** First the states that there are, with replay, then that this was all, then each change. */
  watch({ task = -1, tag = '', job } = {}) {
    const name = job === undefined ? tag : `${job}/${tag}`;
    return this.job.stream_(`watch state ${name}`, { stateWatch: { task, tag: name } }, (data) => ({ replay: false, ...JSON.parse(data.toString()) }));
  }

  /** Waits until all tasks have at least that status, for so many milliseconds. */
  async synchronize(tag, status, timeout = Infinity) {
    let watch = this.watch({ tag });
    const late = timeout === Infinity ? undefined : this.job.after(timeout, 'late');
    try {
      await watch.opened;
      for (;;) {
        const lowest = await this.get({ tag });
        if (lowest.status >= status) return lowest;
        const next = watch.next();
        try {
          if ((await Promise.race(late ? [next, late] : [next])) === 'late') {
            throw new Failure(`synchronize ${tag}: task ${lowest.task} is at ${lowest.status}: not in time`, { code: 'timeout', category: 'timeout' });
          }
        } catch (e) {
          if (e.code !== 'limit') throw e;
          watch.drop(); // more changes than it holds: the next begins with what there is
          watch = this.watch({ tag });
          await watch.opened;
        }
      }
    } finally {
      late?.drop();
      watch.drop();
    }
  }
}

module.exports = { FINISHED, States };
