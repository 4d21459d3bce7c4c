// The imports, as docs/abi.md has them. Whatever the classes of this package don't
// offer can be asked for here.

// Generated from runtime/jobabi by "make imports": don't edit.
// @ts-ignore: decorator
@external("jobhost1", "output") export declare function output(data: usize, len: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "fail") export declare function fail(kind: i32, text: usize, len: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "info") export declare function info(key: usize, klen: i32, buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "emit") export declare function emit(data: usize, len: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "submit") export declare function submit(spec: usize, len: i32, when: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "log") export declare function log(level: i32, text: usize, len: i32): void;
// @ts-ignore: decorator
@external("jobhost1", "log_level") export declare function log_level(): i32;
// @ts-ignore: decorator
@external("jobhost1", "metric") export declare function metric(kind: i32, name: usize, nlen: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "observe") export declare function observe(id: i32, value: f64): i32;
// @ts-ignore: decorator
@external("jobhost1", "progress") export declare function progress(done: i64, total: i64): void;
// @ts-ignore: decorator
@external("jobhost1", "remaining") export declare function remaining(): i64;
// @ts-ignore: decorator
@external("jobhost1", "kv_get") export declare function kv_get(key: usize, klen: i32, buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "kv_version") export declare function kv_version(key: usize, klen: i32): i64;
// @ts-ignore: decorator
@external("jobhost1", "kv_set") export declare function kv_set(key: usize, klen: i32, value: usize, vlen: i32, ttl: i64): i32;
// @ts-ignore: decorator
@external("jobhost1", "kv_del") export declare function kv_del(key: usize, klen: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "kv_add") export declare function kv_add(key: usize, klen: i32, delta: i64): i64;
// @ts-ignore: decorator
@external("jobhost1", "kv_cas") export declare function kv_cas(key: usize, klen: i32, version: i64, value: usize, vlen: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "state_set") export declare function state_set(tag: usize, tlen: i32, status: i32, message: usize, mlen: i32, payload: usize, plen: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "state_get") export declare function state_get(task: i32, tag: usize, tlen: i32, buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "state_watch") export declare function state_watch(task: i32, tag: usize, tlen: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "http") export declare function http(request: usize, len: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "timer") export declare function timer(ms: i64): i32;
// @ts-ignore: decorator
@external("jobhost1", "wait") export declare function wait(handles: usize, n: i32, timeout: i64): i32;
// @ts-ignore: decorator
@external("jobhost1", "read") export declare function read(handle: i32, buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "recv") export declare function recv(): i32;
// @ts-ignore: decorator
@external("jobhost1", "drop") export declare function drop(handle: i32): i32;
// @ts-ignore: decorator
@external("jobhost1", "http_defer") export declare function http_defer(request: usize, len: i32, entry: usize, elen: i32, args: usize, alen: i32): i32;
// End of what is generated.

// What WASI has and jobhost1 has not.

// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "random_get") export declare function random_get(ptr: usize, len: i32): i32;
// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "clock_time_get") export declare function clock_time_get(id: i32, precision: i64, time: usize): i32;
