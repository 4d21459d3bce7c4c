// Makes one module of QuickJS and the glue, with Binaryen's tools.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { glue } from "./glue.mjs";

// What QuickJS was compiled with, and the host knows too.
const features = ["bulk-memory", "bulk-memory-opt", "nontrapping-float-to-int", "sign-ext", "mutable-globals",
  "reference-types", "multivalue", "extended-const", "call-indirect-overlong"].map((f) => "--enable-" + f);

/** link returns the bytes of a worker. binaryen: the folder of its programs. */
export function link({ modules, entries, used, quickjs, binaryen }) {
  const dir = mkdtempSync(path.join(tmpdir(), "jobhost-js-"));
  const at = (name) => path.join(dir, name);
  const run = (program, ...args) => {
    try {
      execFileSync(process.execPath, [path.join(binaryen, program), ...features, ...args], { stdio: ["ignore", "ignore", "pipe"] });
    } catch (e) {
      throw new Error(`${program}: ${e.stderr}`);
    }
  };
  try {
    const { text, functions } = glue({ used, modules, entries, table: tableSize(quickjs) });
    writeFileSync(at("glue.wat"), text);
    writeFileSync(at("quickjs.wasm"), withoutStreams(growTable(quickjs, functions)));
    run("wasm-as", at("glue.wat"), "-o", at("glue.wasm"));
    run("wasm-merge", at("glue.wasm"), "env", at("quickjs.wasm"), "qjs", "--rename-export-conflicts", "-o", at("worker.wasm"));
    return keepExports(readFileSync(at("worker.wasm")), ["memory", "jh_buf", "jh_wake", "_initialize", ...entries]);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

// The size of the only table of a module.
function tableSize(wasm) {
  const r = reader(wasm, section(wasm, 4).body);
  if (r.number() !== 1 || r.number() !== 0x70 || r.number() !== 0) {
    throw new Error("this quickjs.wasm has no table of functions that may be larger; the SDK was made for quickjs-wasi 3.6.2");
  }
  return r.number();
}

// The module with a table that has room for more functions at its end. QuickJS
// calls functions by their place there, and nothing may change it while the worker runs.
function growTable(wasm, more) {
  return replace(wasm, 4, Buffer.of(1, 0x70, 0), leb(tableSize(wasm) + more));
}

// The module with the glue's fd_write and its like in place of the host's:
// QuickJS prints nothing, and what a worker imports is what it is seen to be able to do.
function withoutStreams(wasm) {
  const { body, end } = section(wasm, 2), parts = [], r = reader(wasm, body);
  parts.push(leb(r.number()));
  while (r.at() < end) {
    const start = r.at();
    r.bytes(r.number());
    const field = r.at(), name = r.bytes(r.number()).toString();
    const [kind] = r.bytes(1);
    if (kind !== 0) throw new Error("this quickjs.wasm imports more than functions; the SDK was made for quickjs-wasi 3.6.2");
    r.number();
    parts.push(...name.startsWith("fd_") ? [Buffer.of(3), Buffer.from("env"), wasm.subarray(field, r.at())] : [wasm.subarray(start, r.at())]);
  }
  return replace(wasm, 2, ...parts);
}

// The module without other exports: a job could name them as entries.
function keepExports(wasm, names) {
  const kept = [], r = reader(wasm, section(wasm, 7).body);
  for (let n = r.number(); n > 0; n--) {
    const start = r.at();
    const name = r.bytes(r.number()).toString();
    r.bytes(1);
    r.number();
    if (names.includes(name)) kept.push(wasm.subarray(start, r.at()));
  }
  return replace(wasm, 7, leb(kept.length), ...kept);
}

// Where a section is.
function section(wasm, wanted) {
  const r = reader(wasm, 8);
  for (;;) {
    const start = r.at(), [id] = r.bytes(1), size = r.number(), body = r.at();
    r.bytes(size);
    if (id === wanted) return { start, body, end: r.at() };
  }
}

function replace(wasm, id, ...parts) {
  const { start, end } = section(wasm, id), body = Buffer.concat(parts);
  return Buffer.concat([wasm.subarray(0, start), Buffer.of(id), leb(body.length), body, wasm.subarray(end)]);
}

function reader(wasm, at) {
  const bytes = (n) => {
    if (at + n > wasm.length) throw new Error("a module ends within a section, or lacks one");
    return wasm.subarray(at, at += n);
  };
  const number = () => {
    for (let n = 0, shift = 0; ; shift += 7) {
      const [b] = bytes(1);
      n += (b & 127) * 2 ** shift;
      if (b < 128) return n;
    }
  };
  return { at: () => at, bytes, number };
}

function leb(n) {
  const bytes = [];
  do {
    bytes.push(n & 127 | (n > 127 ? 128 : 0));
    n >>>= 7;
  } while (n);
  return Buffer.from(bytes);
}
