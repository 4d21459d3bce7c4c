'use strict';

// A certificate for this process alone, by which the host knows it. Node signs, but makes no certificates; this
// is as much of their form (X.509 in DER) as it takes.

const crypto = require('node:crypto');

const oid = (hex) => Buffer.from(hex, 'hex');
const ECDSA_SHA256 = oid('06082a8648ce3d040302');
const COMMON_NAME = oid('0603550403');
const ALTERNATIVE_NAME = oid('0603551d11');
const BASIC_CONSTRAINTS = oid('0603551d13');
const KEY_USAGE = oid('0603551d0f');
const EXTENDED_USAGE = oid('0603551d25');
const SERVER_AUTH = oid('06082b06010505070301');
const CLIENT_AUTH = oid('06082b06010505070302');
const TRUE = oid('0101ff');

/** A value of a type, of its parts. */
function der(type, ...parts) {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const n = body.length;
  const length = n < 128 ? [n] : n < 256 ? [0x81, n] : [0x82, n >> 8, n & 255];
  return Buffer.concat([Buffer.from([type, ...length]), body]);
}

const sequence = (...parts) => der(0x30, ...parts);
const bytes = (...parts) => der(0x04, ...parts);
const time = (date) => der(0x17, date.toISOString().replace(/^..|[-:T]|\.\d+/g, ''));

/** Returns a key and a certificate for localhost as PEM, and the certificate as DER. */
function makeCertificate() {
  const { privateKey, publicKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const serial = crypto.randomBytes(16);
  serial[0] = 1 + (serial[0] & 0x7e); // positive, and not shorter than it says
  const name = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, 'localhost'))));
  const now = Date.now();
  const algorithm = sequence(ECDSA_SHA256);
  const signed = sequence(
    der(0xa0, der(0x02, [2])), // version 3
    der(0x02, serial),
    algorithm,
    name,
    sequence(time(new Date(now - 60_000)), time(new Date(now + 10 * 365 * 86_400_000))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(
      sequence(ALTERNATIVE_NAME, bytes(sequence(der(0x82, 'localhost')))),
      sequence(BASIC_CONSTRAINTS, TRUE, bytes(sequence(TRUE))),
      sequence(KEY_USAGE, TRUE, bytes(der(0x03, [2, 0x84]))), // digitalSignature, keyCertSign
      sequence(EXTENDED_USAGE, bytes(sequence(SERVER_AUTH, CLIENT_AUTH))),
    )),
  );
  const certificate = sequence(signed, algorithm, der(0x03, [0], crypto.sign('sha256', signed, privateKey)));
  const lines = certificate.toString('base64').match(/.{1,64}/g).join('\n');
  return {
    key: Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    pem: Buffer.from(`-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`),
    der: certificate,
  };
}

module.exports = { makeCertificate };
