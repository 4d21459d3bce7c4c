'use strict';

// The parts of the SDK that need no host.

const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const path = require('node:path');
const test = require('node:test');
const protobuf = require('protobufjs');

const { makeCertificate } = require('../lib/certificate');
const { toBytes, toNumber } = require('../lib/data');
const { StatusError } = require('../lib/errors');
const { parseReply, parseResponse, requestText } = require('../lib/http');
const { Run, Sender } = require('../lib/link');
const { HostFrame, WorkerFrame } = require('../lib/protocol');

test('the protocol is that of the description', () => {
  const described = protobuf.loadSync(path.join(__dirname, '../../protocol/worker.proto'));
  assert.deepEqual(require('../lib/worker.json'), JSON.parse(JSON.stringify(described.toJSON())), 'make protocol');
});

test('a certificate is one', () => {
  for (let i = 0; i < 20; i++) {
    const own = makeCertificate();
    const certificate = new crypto.X509Certificate(own.pem);
    assert.ok(certificate.raw.equals(own.der));
    assert.ok(certificate.verify(certificate.publicKey));
    assert.ok(certificate.checkPrivateKey(crypto.createPrivateKey(own.key)));
    assert.equal(certificate.checkHost('localhost'), 'localhost');
    assert.ok(certificate.ca);
    assert.ok(new Date(certificate.validFrom) < new Date() && new Date(certificate.validTo) > new Date());
  }
});

test('requests', () => {
  const text = requestText('http://site/', { method: 'POST', headers: { accept: ['a', 'b'], x: 1 }, body: { name: 'größe' } });
  assert.equal(text.toString(), 'POST http://site/\naccept: a\naccept: b\nx: 1\n\n{"name":"größe"}');
  for (const [url, init] of [['u\nx: y', {}], ['u', { method: 'G T' }], ['u', { headers: { a: 'b\nc' } }], ['u', { headers: { 'a:': 'b' } }]]) {
    assert.throws(() => requestText(url, init), { code: 'invalid' });
  }
});

test('responses', () => {
  const response = parseResponse(Buffer.from('404\na: b: c\na: d\n\nno\n\nsuch page'));
  assert.deepEqual([response.status, response.headers, response.all, response.text()], [404, { a: 'b: c' }, { a: ['b: c', 'd'] }, 'no\n\nsuch page']);
  assert.throws(() => response.check(), { code: 'http_404', permanent: true });
  assert.equal(new StatusError(503).permanent, false);
  assert.throws(() => parseResponse(Buffer.from('nonsense')), { code: 'invalid' });
  const none = { reason: 'denied', category: 'validation', permanent: true, message: 'GET u: you may not' };
  assert.throws(() => parseResponse(Buffer.from('0\nerror: denied\n\nyou may not'), 'GET u'), none);
});

test('replies', () => {
  const job = (text) => ({ bytes: () => Buffer.from(text) });
  const reply = parseReply(job(`201\njobhost-request: r1\njobhost-args: ${btoa('order 7')}\nx: y\n\nbody`));
  assert.deepEqual([reply.id, reply.args, reply.response.headers], ['r1', 'order 7', { x: 'y' }]);
  assert.throws(() => parseReply(job('0\njobhost-request: r1\nerror: dns\n\n')).response.check(), { reason: 'dns' });
  assert.throws(() => parseReply(job('200\n\n')), { permanent: true });
});

test('data and numbers', () => {
  for (const [value, want] of [[undefined, ''], [null, ''], ['ß', 'ß'], [new Uint16Array([0x6161]).subarray(0, 1), 'aa'], [{ a: [1] }, '{"a":[1]}']]) {
    assert.equal(toBytes(value).toString(), want);
  }
  const { number } = HostFrame.decode(HostFrame.encode({ answer: { number: 7 } }).finish()).answer;
  assert.equal(toNumber(number), 7);
});

test('large frames go in pieces and come together', () => {
  const sent = [];
  const sender = new Sender({ on() {}, write: ({ frames }) => sent.push(...frames) });
  const run = new Run(7, { timeoutUs: 0 }, sender);
  const output = crypto.randomBytes(5 << 20);
  run.post({ emit: { data: Buffer.from('small') } }, 5);
  run.end({ output }, output.length);
  sender.flush();
  assert.equal(sent[0].call.emit.data.toString(), 'small');
  assert.deepEqual(sent.slice(1).map((f) => f.piece.last), [...Array(sent.length - 2).fill(false), true]);
  const whole = WorkerFrame.decode(Buffer.concat(sent.slice(1).map((f) => f.piece.data)));
  assert.ok(output.equals(whole.result.output));

  const data = HostFrame.encode({ run: 7, answer: { call: 3, data: Buffer.alloc(1000) } }).finish();
  assert.equal(run.piece({ data: data.subarray(0, 100), last: false }), undefined);
  assert.equal(run.piece({ data: data.subarray(100), last: true }).answer.call, 3);
});
