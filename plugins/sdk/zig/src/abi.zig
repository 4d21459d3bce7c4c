//! The imports of the native ABI as docs/abi.md has them. A module imports what it
//! calls, and nothing else.

const Ptr = [*]const u8;
const Buf = [*]u8;

// Generated from runtime/jobabi by "make imports": don't edit.
pub extern "jobhost1" fn output(data: Ptr, len: usize) i32;
pub extern "jobhost1" fn fail(kind: i32, text: Ptr, len: usize) i32;
pub extern "jobhost1" fn info(key: Ptr, klen: usize, buf: Buf, cap: usize) i32;
pub extern "jobhost1" fn emit(data: Ptr, len: usize) i32;
pub extern "jobhost1" fn submit(spec: Ptr, len: usize, when: i32) i32;
pub extern "jobhost1" fn log(level: i32, text: Ptr, len: usize) void;
pub extern "jobhost1" fn log_level() i32;
pub extern "jobhost1" fn metric(kind: i32, name: Ptr, nlen: usize) i32;
pub extern "jobhost1" fn observe(id: i32, value: f64) i32;
pub extern "jobhost1" fn progress(done: i64, total: i64) void;
pub extern "jobhost1" fn remaining() i64;
pub extern "jobhost1" fn kv_get(key: Ptr, klen: usize, buf: Buf, cap: usize) i32;
pub extern "jobhost1" fn kv_version(key: Ptr, klen: usize) i64;
pub extern "jobhost1" fn kv_set(key: Ptr, klen: usize, value: Ptr, vlen: usize, ttl: i64) i32;
pub extern "jobhost1" fn kv_del(key: Ptr, klen: usize) i32;
pub extern "jobhost1" fn kv_add(key: Ptr, klen: usize, delta: i64) i64;
pub extern "jobhost1" fn kv_cas(key: Ptr, klen: usize, version: i64, value: Ptr, vlen: usize) i32;
pub extern "jobhost1" fn state_set(tag: Ptr, tlen: usize, status: i32, message: Ptr, mlen: usize, payload: Ptr, plen: usize) i32;
pub extern "jobhost1" fn state_get(task: i32, tag: Ptr, tlen: usize, buf: Buf, cap: usize) i32;
pub extern "jobhost1" fn state_watch(task: i32, tag: Ptr, tlen: usize) i32;
pub extern "jobhost1" fn http(request: Ptr, len: usize) i32;
pub extern "jobhost1" fn timer(ms: i64) i32;
pub extern "jobhost1" fn wait(handles: [*]const i32, n: usize, timeout: i64) i32;
pub extern "jobhost1" fn read(handle: i32, buf: Buf, cap: usize) i32;
pub extern "jobhost1" fn recv() i32;
pub extern "jobhost1" fn drop(handle: i32) i32;
pub extern "jobhost1" fn http_defer(request: Ptr, len: usize, entry: Ptr, elen: usize, args: Ptr, alen: usize) i32;
// End of what is generated.

/// The one call of WASI that a worker needs: 0 = the bytes are random.
pub extern "wasi_snapshot_preview1" fn random_get(buf: Buf, len: usize) i32;
