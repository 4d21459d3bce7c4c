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
    const table = tableSize(quickjs);
    const text = glue({ used, modules, entries, table });
    const places = text.match(/\$op_\w+/g).length; // at least as many as there are
    writeFileSync(at("glue.wat"), text);
    writeFileSync(at("quickjs.wasm"), growTable(quickjs, places));
    writeFileSync(at("roots.json"), JSON.stringify(["memory", "jh_buf", "jh_wake", "_initialize", ...entries].map((name, i) => ({ name: "root" + i, export: name, root: true }))));
    run("wasm-as", at("glue.wat"), "-o", at("glue.wasm"));
    run("wasm-merge", at("glue.wasm"), "env", at("quickjs.wasm"), "qjs", "--rename-export-conflicts", "-o", at("merged.wasm"));
    run("wasm-metadce", at("merged.wasm"), "-f", at("roots.json"), "-o", at("worker.wasm"));
    return readFileSync(at("worker.wasm"));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

// The size of the only table of a module.
function tableSize(wasm) {
  const s = tableSection(wasm);
  return s.min;
}

// The module with a table that has room for more functions at its end. QuickJS
// calls functions by their place there, and nothing may change it while the worker runs.
function growTable(wasm, more) {
  const s = tableSection(wasm);
  const body = Buffer.concat([s.before, leb(s.min + more), s.after]);
  return Buffer.concat([wasm.subarray(0, s.start), Buffer.of(4), leb(body.length), body, wasm.subarray(s.end)]);
}

function tableSection(wasm) {
  let at = 8;
  const number = () => {
    let n = 0, shift = 0, b;
    do {
      b = wasm[at++];
      n |= (b & 127) << shift;
      shift += 7;
    } while (b & 128);
    return n;
  };
  while (at < wasm.length) {
    const start = at, id = wasm[at++], size = number(), body = at, end = at + size;
    if (id === 4) {
      at += 3; // one table, of functions, with these limits
      if (wasm[body] !== 1 || wasm[body + 2] !== 0) break;
      const min = number();
      return { start, end, min, before: wasm.subarray(body, body + 3), after: wasm.subarray(at, end) };
    }
    at = end;
  }
  throw new Error("this quickjs.wasm has no table that can be larger; the SDK was made for quickjs-wasi 3.6.2");
}

function leb(n) {
  const bytes = [];
  do {
    bytes.push(n & 127 | (n > 127 ? 128 : 0));
    n >>>= 7;
  } while (n);
  return Buffer.from(bytes);
}
