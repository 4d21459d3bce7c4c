// Finds the modules that a worker is made of: its own files, and those parts
// of the SDK that it imports something of. QuickJS itself reads them, so that
// what it would not take is told now.

import { readFileSync } from "node:fs";
import path from "node:path";
import { hostFunctions, reserved } from "./glue.mjs";

// Where what `import … from "jobhost"` offers comes from. A worker has the
// host functions of the parts that it imports, and no others.
const parts = {
  "core.js": ["HostError", "Failure", "Permanent", "Snooze", "config", "secret", "log", "encode", "decode", "random", "onWake"],
  "kv.js": ["kv"],
  "http.js": ["fetch", "Headers", "Response", "ResponseError", "StatusError"],
  "defer.js": ["defer", "parseReply"],
  "handles.js": ["race"],
  "timers.js": ["after"],
  "jobs.js": ["submit", "submitNow"],
  "children.js": ["start"],
  "state.js": ["state"],
  "inbox.js": ["inbox"],
  "metrics.js": ["counter", "gauge", "histogram"],
};
const sources = new URL("../src/", import.meta.url);

/** BuildError is what the author of a worker can mend; it is shown without a stack. */
export class BuildError extends Error {}

/**
 * findModules reads a worker and what it imports. It returns its modules in
 * the order in which they are to be compiled, the names of its exports, and the
 * host functions that it can call.
 */
export async function findModules(file, { QuickJS, wasm }) {
  const root = path.dirname(path.resolve(file)), entry = path.basename(file);
  const worker = new Map(), edges = new Map();
  const vm = await QuickJS.create({
    wasm,
    moduleLoader: {
      normalize(base, specifier) {
        const name = resolve(base, specifier);
        edges.set(base, [...(edges.get(base) ?? []), name]);
        return name;
      },
      load(name) {
        if (name === "jobhost") return facade(Object.keys(parts));
        if (name.startsWith("jobhost:")) return sdkSource(name.slice(8));
        worker.set(name, read(root, name));
        return worker.get(name);
      },
    },
  });
  worker.set(entry, read(root, entry));
  const exports = exportsOf(vm, entry, worker.get(entry));
  if (!exports.includes("default")) {
    throw new BuildError(`${file} has no default export, which is what a job runs: export default (job) => …`);
  }
  const taken = exports.find((name) => reserved.includes(name));
  if (taken) throw new BuildError(`${file} exports ${taken}, which is no name for an entry; another would be: export { ${taken} as ${taken}_ }`);
  const used = usedParts([...worker.values()]);
  return assemble(entry, worker, edges, exports, used);
}

function resolve(base, specifier) {
  if (specifier === "jobhost" || specifier.startsWith("jobhost:")) return specifier;
  if (/^\.\.?\//.test(specifier)) return path.posix.join(path.posix.dirname(base), specifier);
  throw new BuildError(`${base} imports "${specifier}": a worker imports "jobhost", and files as in "./file.js". Packages are to be bundled ` +
    "before, such as by: esbuild --bundle --format=esm --external:jobhost");
}

function read(root, name) {
  let text;
  try {
    text = readFileSync(path.join(root, name), "utf8");
  } catch (e) {
    throw new BuildError(`read ${name}: ${e.code === "ENOENT" ? "there is no such file" : e.message}`);
  }
  if (/\.m?js$/.test(name)) return withoutAttributes(text);
  if (name.endsWith(".json")) return "export default " + text.trim() + ";";
  return "export default " + JSON.stringify(text) + ";"; // templates and other text
}

// The attribute in import … with { type: "json" } says what the file's name says already.
function withoutAttributes(text) {
  return text.replace(/(\bfrom\s*["'][^"'\n]*["']\s*)(with\s*\{[^}]*\})/g, (_, from, attributes) => from + attributes.replace(/[^\n]/g, " "));
}

function sdkSource(name) {
  return readFileSync(new URL(name, sources), "utf8").replaceAll(/from "\.\//g, 'from "jobhost:');
}

// The module "jobhost" with what some parts offer.
function facade(list) {
  return list.map((part) => `export { ${parts[part].join(", ")} } from "jobhost:${part}";`).join("\n");
}

// Compiles a module with all that it imports, without running it, and returns the names of its exports.
function exportsOf(vm, name, source) {
  const x = vm.exports, ctx = x.qjs_get_context_ptr();
  const code = vm.writeString(source), file = vm.writeString(name);
  const module = x.JS_Eval(ctx, code.ptr, code.len, file.ptr, 33);
  if (module >> 32n === 6n) {
    const e = vm.dump(vm.getException());
    throw new BuildError(`${e.name === "Error" ? "" : e.name + ": "}${e.message}\n${String(e.stack ?? "").trimEnd()}`.trimEnd());
  }
  const key = vm.writeString("exports");
  x.JS_SetPropertyStr(ctx, x.JS_GetGlobalObject(ctx), key.ptr, x.JS_GetModuleNamespace(ctx, Number(BigInt.asUintN(32, module))));
  return vm.dump(vm.evalCode('Reflect.ownKeys(exports).filter((k) => typeof k === "string")'));
}

// The parts of the SDK that sources name in their imports; all if one takes the whole of it.
function usedParts(texts) {
  const used = new Set(["core.js"]);
  for (const text of texts) {
    if (/\b(setTimeout|clearTimeout)\b/.test(text)) used.add("timers.js");
    let named = 0;
    for (const [, list] of text.matchAll(/\b(?:import|export)\s*\{([^}]*)\}\s*from\s*["']jobhost["']/g)) {
      named++;
      for (const item of list.split(",")) {
        const name = item.trim().split(/\s+/)[0];
        const part = Object.keys(parts).find((p) => parts[p].includes(name));
        if (part) used.add(part);
        else if (name) throw new BuildError(`"jobhost" has no ${name}; it has ${Object.values(parts).flat().sort().join(", ")}`);
      }
    }
    if ((text.match(/\b(?:from|import)\s*\(?\s*["']jobhost["']/g) ?? []).length > named) for (const part in parts) used.add(part);
  }
  return Object.keys(parts).filter((part) => used.has(part));
}

function assemble(entry, worker, edges, exports, used) {
  const main = `import { start } from "jobhost:core.js";
${used.includes("timers.js") ? 'import "jobhost:timers.js";\n' : ""}import * as worker from ${JSON.stringify(entry)};
start(worker, ${JSON.stringify(exports)});`;
  const source = (name) => {
    if (name === "jobhost:main") return main;
    if (name === "jobhost") return facade(used);
    return name.startsWith("jobhost:") ? sdkSource(name.slice(8)) : worker.get(name);
  };
  const imports = (name) => {
    if (!name.startsWith("jobhost")) return edges.get(name) ?? [];
    return [...source(name).matchAll(/(?:from|import) "([^"]+)"/g)].map(([, found]) => found);
  };
  const modules = [], done = new Set();
  const visit = (name, above) => {
    if (above.includes(name)) {
      throw new BuildError(`modules import each other in a circle: ${[...above.slice(above.indexOf(name)), name].join(" → ")}; ` +
        "put what they share into a module of its own");
    }
    if (done.has(name)) return;
    for (const next of imports(name)) visit(next, [...above, name]);
    done.add(name);
    modules.push({ name, source: source(name) });
  };
  visit("jobhost:main", []);
  const called = modules.filter((m) => m.name.startsWith("jobhost:"))
    .flatMap((m) => [...m.source.matchAll(/\bhost\.(\w+)/g)].map(([, name]) => name));
  return { modules, entries: exports.map((name) => name === "default" ? "jh_run" : name), used: hostFunctions.filter((name) => called.includes(name)) };
}
