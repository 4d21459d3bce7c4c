'use strict';

const protobuf = require('protobufjs');

// What make-protocol.js makes of protocol/worker.proto: as a module it is part of whatever a worker is bundled to.
const root = protobuf.Root.fromJSON(require('./worker.json'));
const type = (name) => root.lookupType(`jobhost.worker.v1.${name}`);

const method = (name, request, response, stream) => ({
  path: `/jobhost.worker.v1.Worker/${name}`,
  requestStream: stream,
  responseStream: stream,
  requestSerialize: (m) => type(request).encode(m).finish(),
  requestDeserialize: (b) => type(request).decode(b),
  responseSerialize: (m) => type(response).encode(m).finish(),
  responseDeserialize: (b) => type(response).decode(b),
});

const service = {
  describe: method('Describe', 'DescribeRequest', 'DescribeResponse', false),
  drain: method('Drain', 'DrainRequest', 'DrainResponse', false),
  run: method('Run', 'ToWorker', 'ToHost', true),
};

// grpc.health.v1.Health, of which there is one answer: serving.
const health = {
  check: {
    path: '/grpc.health.v1.Health/Check',
    requestStream: false,
    responseStream: false,
    requestSerialize: (b) => b,
    requestDeserialize: (b) => b,
    responseSerialize: (b) => b,
    responseDeserialize: (b) => b,
  },
};

module.exports = { HostFrame: type('HostFrame'), WorkerFrame: type('WorkerFrame'), health, service };
