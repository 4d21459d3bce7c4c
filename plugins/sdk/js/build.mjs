#!/usr/bin/env node
// jobhost-js makes a worker of a JavaScript module: one .wasm of QuickJS, the
// SDK and the module with what it imports.

import { createRequire } from "node:module";
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { BuildError, findModules } from "./lib/modules.mjs";
import { link } from "./lib/link.mjs";

const usage = `usage: jobhost-js WORKER.js [-o WORKER.wasm]`;

/** build returns the bytes of the worker in a file. */
export async function build(file) {
  const quickjs = readFileSync(find("quickjs-wasi/quickjs.wasm", "quickjs-wasi"));
  const { QuickJS } = await import(pathToFileURL(find("quickjs-wasi", "quickjs-wasi")));
  return link({ ...await findModules(file, { QuickJS, wasm: quickjs }), quickjs, binaryen: binaryen() });
}

// A file of a package: of this one's dependencies, of the current folder's, of
// NODE_PATH, or where `make toolchains` of the repository installs them.
function find(name, needed) {
  const cache = process.env.XDG_CACHE_HOME || path.join(homedir(), ".cache");
  const toolchains = process.env.JOBHOST_TOOLCHAINS || path.join(cache, "jobhost", "toolchains");
  for (const from of [fileURLToPath(import.meta.url), path.resolve("package.json"), path.join(toolchains, "package.json")]) {
    try {
      return createRequire(from).resolve(name);
    } catch {
      // the next place
    }
  }
  throw new BuildError(`the npm package ${needed} is not installed: npm install ${needed}`);
}

// The folder of Binaryen's programs.
function binaryen() {
  let dir = path.dirname(find("binaryen", "binaryen"));
  while (!existsSync(path.join(dir, "bin", "wasm-merge"))) {
    if (dir === path.dirname(dir)) throw new BuildError("the npm package binaryen has no wasm-merge: npm install binaryen");
    dir = path.dirname(dir);
  }
  return path.join(dir, "bin");
}

async function main(args) {
  const out = args.indexOf("-o");
  const output = out >= 0 ? args.splice(out, 2)[1] : undefined;
  if (args.length !== 1 || args[0].startsWith("-") || out >= 0 && !output) {
    console.error(usage);
    return 2;
  }
  try {
    const wasm = await build(args[0]);
    writeFileSync(output ?? args[0].replace(/\.m?js$/, "") + ".wasm", wasm);
    return 0;
  } catch (e) {
    console.error("jobhost-js: " + (e instanceof BuildError ? e.message : e.stack));
    return 1;
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  process.exitCode = await main(process.argv.slice(2));
}
