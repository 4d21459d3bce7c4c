// The glue between QuickJS and the host, as WebAssembly text: the exports of
// the ABI, and the functions that the JavaScript side of the SDK calls.

import { cfunction, reading, runtime, waits } from "./runtime.mjs";

// Each host function by its arguments and its result.
//
//   b  bytes or text: pointer and length     i  i32     l  i64     d  f64
//   h  handles, as bytes: pointer and count
//
// Results: i, l, none; t and r are answers of the kind fill-or-size, which
// become text and bytes, or the errno.
const signatures = {
  // Generated from runtime/jobabi by "make imports": don't edit.
  output: "b:i",
  fail: "ib:i",
  info: "b:t",
  emit: "b:i",
  submit: "bi:i",
  log: "ib:",
  log_level: ":i",
  metric: "ib:i",
  observe: "id:i",
  progress: "ll:",
  remaining: ":l",
  kv_get: "b:r",
  kv_version: "b:l",
  kv_set: "bbl:i",
  kv_del: "b:i",
  kv_add: "bl:l",
  kv_cas: "blb:i",
  state_set: "bibb:i",
  state_get: "ib:t",
  state_watch: "ib:i",
  http: "b:i",
  timer: "l:i",
  wait: "hl:i",
  recv: ":i",
  drop: "i:i",
  http_defer: "bbb:i",
  // End of what is generated.
};

// What is not there in the table above, since it is no plain call of the host.
const special = ["decode", "encode", "input_text", "input_bytes", "random", "math_random", "start"];

const wasmTypes = { b: "i32 i32", h: "i32 i32", i: "i32", l: "i64", d: "f64" };
const readers = { i: "$int", l: "$long", d: "$double" };

/** reserved are exports that mean something to the host, or link the glue with QuickJS. */
export const reserved = ["memory", "jh_run", "jh_buf", "jh_wake", "_initialize", "_start", "host_get_timezone_offset", "host_interrupt",
  "host_promise_rejection", "host_module_normalize", "host_module_load", "host_call", "fd_close", "fd_fdstat_get", "fd_seek", "fd_write"];

/** hostFunctions are the names that the SDK's own sources may use as host.NAME. */
export const hostFunctions = [...Object.keys(signatures), "read", ...special];

/**
 * glue returns the module as text, and how many functions it puts into QuickJS's table.
 * used: names of host functions; modules: {name, source} in the order in which
 * they are to be compiled, the last one is run; entries: the exports;
 * table: the size of QuickJS's table, after which the functions' places are.
 */
export function glue({ used, modules, entries, table }) {
  const natives = [...new Set([...used, ...special])];
  // These three are the glue's own: it reports what breaks off a job or the start.
  const imported = new Set([...natives.filter((n) => n in signatures || n === "read"), "log", "fail"]);
  const strings = blob();
  const install = natives.map((name, i) => {
    const at = strings.add(name);
    return `(drop (call $JS_SetPropertyStr (local.get $ctx) (local.get $host) ${rel(at)}
      (call $JS_NewCFunction2 (local.get $ctx) (i32.const ${table + i}) ${rel(at)} (i32.const ${arity(name)}) (i32.const 0) (i32.const 0))))`;
  });
  const load = modules.map(({ name, source }, i) => {
    const text = strings.add(source), file = strings.add(name), last = i === modules.length - 1;
    return `(local.set $v (call $JS_Eval (local.get $ctx) ${rel(text)} (i32.const ${text.length}) ${rel(file)} (i32.const ${last ? 1 : 33})))
    (if (call $broken (local.get $v)) (then (call $die (call $JS_GetException (local.get $ctx)))))`;
  });
  const hostName = strings.add("__jobhost");
  strings.add("stack");
  strings.add(waits);
  const text = `(module
${imports(imported)}
(memory (import "qjs" "memory") 1)
(table (import "qjs" "__indirect_function_table") ${table + natives.length} funcref)
(elem (i32.const ${table}) func ${natives.map((n) => "$op_" + n).join(" ")})
(data $strings "${strings.text()}")
${runtime((text) => rel(strings.at(text)))}
${natives.filter((n) => n in signatures).map(operation).join("\n")}
${used.includes("read") ? reading : ""}
(func (export "_initialize") (local $ctx i32) (local $host i64) (local $v i64) (local $s i32)
  (call $_initialize)
  (if (call $qjs_init) (then (unreachable)))
  (global.set $rt (call $qjs_get_runtime_ptr))
  (global.set $ctx (local.tee $ctx (call $qjs_get_context_ptr)))
  (call $qjs_set_max_stack_size (i32.const ${768 << 10}))
  (global.set $tmp (call $need (i32.const 64)))
  (call $room (i32.const 4096))
  (local.set $s (call $need (i32.const ${strings.size()})))
  (memory.init $strings (local.get $s) (i32.const 0) (i32.const ${strings.size()}))
  (global.set $strings (local.get $s))
  (local.set $host (call $JS_NewObject (local.get $ctx)))
  ${install.join("\n  ")}
  (local.set $v (call $JS_GetGlobalObject (local.get $ctx)))
  (drop (call $JS_SetPropertyStr (local.get $ctx) (local.get $v) ${rel(hostName)} (local.get $host)))
  (call $JS_FreeValue (local.get $ctx) (local.get $v))
  ${load.join("\n  ")}
  (call $drain)
  (call $started (local.get $v))
  (call $JS_FreeValue (local.get $ctx) (local.get $v))
  (call $free (global.get $strings))
  (call $qjs_run_gc)
  ;; A job should neither collect garbage nor make the memory grow: both would
  ;; have to be undone after it.
  (call $qjs_set_gc_threshold (i32.const ${8 << 20}))
  (call $free (call $malloc (i32.const ${4 << 20}))))
${entries.map((name, i) => `(func (export ${quote(name)}) (param i32) (result i64) (call $enter (i32.const ${i}) (local.get 0)))`).join("\n")}
)
`;
  return { text, functions: natives.length };
}

function imports(used) {
  const fromQuickJS = {
    _initialize: "", qjs_init: ":i32", qjs_get_runtime_ptr: ":i32", qjs_get_context_ptr: ":i32", qjs_run_gc: "",
    qjs_set_promise_rejection_handler: "i32", qjs_free_value: "i32", qjs_set_max_stack_size: "i32", qjs_set_gc_threshold: "i32", malloc: "i32:i32", free: "i32",
    JS_NewCFunction2: "i32 i32 i32 i32 i32 i32:i64", JS_NewObject: "i32:i64", JS_GetGlobalObject: "i32:i64",
    JS_SetPropertyStr: "i32 i64 i32 i64:i32", JS_GetPropertyStr: "i32 i64 i32:i64", JS_Eval: "i32 i32 i32 i32 i32:i64",
    JS_Call: "i32 i64 i64 i32 i32:i64", JS_DupValue: "i32 i64:i64", JS_FreeValue: "i32 i64",
    JS_ToCStringLen2: "i32 i32 i64 i32:i32", JS_FreeCString: "i32 i32", JS_NewStringLen: "i32 i32 i32:i64",
    JS_NewUint8ArrayCopy: "i32 i32 i32:i64", JS_GetUint8Array: "i32 i32 i64:i32", JS_NewNumber: "i32 f64:i64",
    JS_NewBigInt64: "i32 i64:i64", JS_ToInt32: "i32 i32 i64:i32", JS_ToInt64Ext: "i32 i32 i64:i32",
    JS_ToFloat64: "i32 i32 i64:i32", JS_ExecutePendingJob: "i32 i32:i32", JS_GetException: "i32:i64",
    JS_PromiseState: "i32 i64:i32", JS_PromiseResult: "i32 i64:i64",
  };
  const line = (module, name, id, type) => {
    const [params, result] = type.split(":");
    return `(import "${module}" "${name}" (func ${id}${params ? ` (param ${params})` : ""}${result ? ` (result ${result})` : ""}))`;
  };
  const lines = Object.entries(fromQuickJS).map(([name, type]) => line("qjs", name, "$" + name, type));
  for (const name of used) {
    const type = name === "read" ? "i32 i32 i32:i32" : hostType(signatures[name]);
    lines.push(line("jobhost1", name, "$jh_" + name, type));
  }
  lines.push(line("wasi_snapshot_preview1", "random_get", "$random_get", "i32 i32:i32"));
  return lines.join("\n");
}

function hostType(signature) {
  const [args, result] = signature.split(":");
  const params = [...args].map((a) => wasmTypes[a]);
  if (result === "t" || result === "r") params.push("i32 i32");
  return params.join(" ") + ":" + ({ "": "", l: "i64" }[result] ?? "i32");
}

function arity(name) {
  return name in signatures ? signatures[name].indexOf(":") : { decode: 3, start: 3, math_random: 0 }[name] ?? 1;
}

// A function that JavaScript calls: it takes the arguments apart, calls the host and makes a value of the answer.
function operation(name) {
  const [args, result] = signatures[name].split(":");
  const locals = [], before = [], pass = [], after = [];
  [...args].forEach((kind, i) => {
    const value = `(i64.load offset=${8 * i} (local.get $argv))`;
    if (kind === "b" || kind === "h") {
      locals.push(`(local $p${i} i32) (local $n${i} i32) (local $o${i} i32)`);
      before.push(`(local.set $p${i} (call $bytes ${value}))
  (if (i32.eq (local.get $p${i}) (i32.const -1)) (then (return (global.get $EXCEPTION))))
  (local.set $n${i} (global.get $len)) (local.set $o${i} (global.get $own))`);
      pass.push(`(local.get $p${i}) ${kind === "h" ? `(i32.shr_u (local.get $n${i}) (i32.const 2))` : `(local.get $n${i})`}`);
      after.push(`(call $release (local.get $o${i}))`);
    } else {
      pass.push(`(call ${readers[kind]} ${value})`);
    }
  });
  const call = (more = "") => `(call $jh_${name} ${pass.join(" ")}${more})`;
  let body;
  if (result === "t" || result === "r") {
    locals.push("(local $r i32)");
    body = `(block $done (loop $again
    (br_if $done (i32.le_s (local.tee $r ${call(" (global.get $buf) (global.get $cap)")}) (global.get $cap)))
    (call $room (local.get $r)) (br $again)))
  ${after.join(" ")}
  (if (i32.lt_s (local.get $r) (i32.const 0)) (then (return (call $number (local.get $r)))))
  (call $${result === "t" ? "JS_NewStringLen" : "JS_NewUint8ArrayCopy"} (local.get $ctx) (global.get $buf) (local.get $r))`;
  } else if (result === "") {
    body = `${call()} ${after.join(" ")} (global.get $UNDEFINED)`;
  } else {
    const [type, make] = result === "l" ? ["i64", "$fromlong"] : ["i32", "$number"];
    locals.push(`(local $r ${type})`);
    body = `(local.set $r ${call()}) ${after.join(" ")} (call ${make} (local.get $r))`;
  }
  return `(func $op_${name} ${cfunction} ${locals.join(" ")}\n  ${before.join("\n  ")}\n  ${body})`;
}

// Where something is in the strings, as an expression.
function rel({ offset }) {
  return `(i32.add (global.get $strings) (i32.const ${offset}))`;
}

// The strings of the module, each with a zero byte at its end, as QuickJS wants them.
function blob() {
  const parts = [], known = new Map();
  let size = 0;
  const add = (text) => {
    const bytes = Buffer.from(text);
    const place = { offset: size, length: bytes.length };
    parts.push(bytes, Buffer.of(0));
    size += bytes.length + 1;
    known.set(text, place);
    return place;
  };
  return {
    add, at: (text) => known.get(text), size: () => size,
    text: () => escape(Buffer.concat(parts)),
  };
}

function escape(bytes) {
  let out = "";
  for (const b of bytes) {
    out += b >= 0x20 && b < 0x7f && b !== 0x22 && b !== 0x5c ? String.fromCharCode(b) : "\\" + b.toString(16).padStart(2, "0");
  }
  return out;
}

function quote(name) {
  return `"${escape(Buffer.from(name))}"`;
}
