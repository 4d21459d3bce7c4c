'use strict';

/** Bytes of a result, payload or message: text, bytes, nothing, or what JSON can write. */
function toBytes(value) {
  if (value === undefined || value === null) return Buffer.alloc(0);
  if (typeof value === 'string') return Buffer.from(value);
  if (Buffer.isBuffer(value)) return value;
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return Buffer.from(value);
  return Buffer.from(JSON.stringify(value));
}

/** A 64-bit number of the protocol: a number if it can be one, else a BigInt. */
function toNumber(long) {
  if (typeof long === 'number') return long;
  const exact = BigInt(long.toString());
  const plain = Number(exact);
  return Number.isSafeInteger(plain) ? plain : exact;
}

module.exports = { toBytes, toNumber };
