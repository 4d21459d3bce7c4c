'use strict';

// Workers for jobhost in JavaScript, as processes:
//
//   serve((job) => 'hello, ' + job.text());

function load() {
  const { Failure, HostError, Permanent, ResponseError, Snooze, StatusError } = require('./lib/errors');
  const { parseReply } = require('./lib/http');
  const { FINISHED } = require('./lib/state');
  const { serve } = require('./lib/serve');
  return { FINISHED, Failure, HostError, Permanent, ResponseError, Snooze, StatusError, parseReply, serve };
}

try {
  module.exports = load();
} catch (e) {
  if (e.code !== 'MODULE_NOT_FOUND') throw e;
  // In one line, as the host tells it.
  console.error(`${e.message.split('\n')[0]}: npm install in ${__dirname}, or NODE_PATH in the worker's env`);
  process.exit(1);
}
