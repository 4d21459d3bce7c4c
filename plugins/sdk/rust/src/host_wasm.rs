//! The host, when built for wasm: its imports, each behind a safe function that
//! takes slices. Pointers are borrowed by the host for the time of a call.

/// The imports as docs/abi.md has them.
mod sys {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        // Generated from runtime/jobabi by "make imports": don't edit.
        pub fn output(data: *const u8, len: usize) -> i32;
        pub fn fail(kind: i32, text: *const u8, len: usize) -> i32;
        pub fn info(key: *const u8, klen: usize, buf: *mut u8, cap: usize) -> i32;
        pub fn emit(data: *const u8, len: usize) -> i32;
        pub fn submit(spec: *const u8, len: usize, when: i32) -> i32;
        pub fn log(level: i32, text: *const u8, len: usize);
        pub fn log_level() -> i32;
        pub fn metric(kind: i32, name: *const u8, nlen: usize) -> i32;
        pub fn observe(id: i32, value: f64) -> i32;
        pub fn progress(done: i64, total: i64);
        pub fn remaining() -> i64;
        pub fn kv_get(key: *const u8, klen: usize, buf: *mut u8, cap: usize) -> i32;
        pub fn kv_version(key: *const u8, klen: usize) -> i64;
        pub fn kv_set(key: *const u8, klen: usize, value: *const u8, vlen: usize, ttl: i64) -> i32;
        pub fn kv_del(key: *const u8, klen: usize) -> i32;
        pub fn kv_add(key: *const u8, klen: usize, delta: i64) -> i64;
        pub fn kv_cas(key: *const u8, klen: usize, version: i64, value: *const u8, vlen: usize) -> i32;
        pub fn state_set(
            tag: *const u8,
            tlen: usize,
            status: i32,
            message: *const u8,
            mlen: usize,
            payload: *const u8,
            plen: usize,
        ) -> i32;
        pub fn state_get(task: i32, tag: *const u8, tlen: usize, buf: *mut u8, cap: usize) -> i32;
        pub fn state_watch(task: i32, tag: *const u8, tlen: usize) -> i32;
        pub fn http(request: *const u8, len: usize) -> i32;
        pub fn timer(ms: i64) -> i32;
        pub fn wait(handles: *const i32, n: usize, timeout: i64) -> i32;
        pub fn read(handle: i32, buf: *mut u8, cap: usize) -> i32;
        pub fn recv() -> i32;
        pub fn drop(handle: i32) -> i32;
        pub fn http_defer(
            request: *const u8,
            len: usize,
            entry: *const u8,
            elen: usize,
            args: *const u8,
            alen: usize,
        ) -> i32;
        // End of what is generated.
    }

    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        pub fn random_get(p: *mut u8, n: usize) -> i32;
    }
}

pub fn output(p: &[u8]) -> i32 {
    unsafe { sys::output(p.as_ptr(), p.len()) }
}

pub fn fail(kind: i32, text: &str) {
    unsafe { sys::fail(kind, text.as_ptr(), text.len()) };
}

pub fn info(key: &str, room: &mut [u8]) -> i32 {
    unsafe { sys::info(key.as_ptr(), key.len(), room.as_mut_ptr(), room.len()) }
}

pub fn emit(p: &[u8]) -> i32 {
    unsafe { sys::emit(p.as_ptr(), p.len()) }
}

pub fn log(level: i32, text: &str) {
    unsafe { sys::log(level, text.as_ptr(), text.len()) }
}

pub fn log_level() -> i32 {
    unsafe { sys::log_level() }
}

pub fn metric(kind: i32, name: &str) -> i32 {
    unsafe { sys::metric(kind, name.as_ptr(), name.len()) }
}

pub fn observe(id: i32, value: f64) -> i32 {
    unsafe { sys::observe(id, value) }
}

pub fn progress(done: i64, total: i64) {
    unsafe { sys::progress(done, total) }
}

pub fn remaining() -> i64 {
    unsafe { sys::remaining() }
}

pub fn submit(spec: &[u8], when: i32) -> i32 {
    unsafe { sys::submit(spec.as_ptr(), spec.len(), when) }
}

pub fn kv_get(key: &str, room: &mut [u8]) -> i32 {
    unsafe { sys::kv_get(key.as_ptr(), key.len(), room.as_mut_ptr(), room.len()) }
}

pub fn kv_version(key: &str) -> i64 {
    unsafe { sys::kv_version(key.as_ptr(), key.len()) }
}

pub fn kv_set(key: &str, value: &[u8], ttl: i64) -> i32 {
    unsafe { sys::kv_set(key.as_ptr(), key.len(), value.as_ptr(), value.len(), ttl) }
}

pub fn kv_del(key: &str) -> i32 {
    unsafe { sys::kv_del(key.as_ptr(), key.len()) }
}

pub fn kv_add(key: &str, delta: i64) -> i64 {
    unsafe { sys::kv_add(key.as_ptr(), key.len(), delta) }
}

pub fn kv_cas(key: &str, version: i64, value: &[u8]) -> i32 {
    unsafe { sys::kv_cas(key.as_ptr(), key.len(), version, value.as_ptr(), value.len()) }
}

pub fn http(request: &[u8]) -> i32 {
    unsafe { sys::http(request.as_ptr(), request.len()) }
}

pub fn timer(ms: i64) -> i32 {
    unsafe { sys::timer(ms) }
}

/// The numbers are handed over as they are: wasm is little-endian, as the host reads them.
pub fn wait(handles: &[i32], timeout: i64) -> i32 {
    unsafe { sys::wait(handles.as_ptr(), handles.len(), timeout) }
}

pub fn read(handle: i32, room: &mut [u8]) -> i32 {
    unsafe { sys::read(handle, room.as_mut_ptr(), room.len()) }
}

pub fn drop(handle: i32) {
    unsafe { sys::drop(handle) };
}

pub fn http_defer(request: &[u8], entry: &str, args: &[u8]) -> i32 {
    unsafe { sys::http_defer(request.as_ptr(), request.len(), entry.as_ptr(), entry.len(), args.as_ptr(), args.len()) }
}

pub fn state_set(tag: &str, status: i32, message: &str, payload: &str) -> i32 {
    unsafe {
        sys::state_set(
            tag.as_ptr(),
            tag.len(),
            status,
            message.as_ptr(),
            message.len(),
            payload.as_ptr(),
            payload.len(),
        )
    }
}

pub fn state_get(task: i32, tag: &str, room: &mut [u8]) -> i32 {
    unsafe { sys::state_get(task, tag.as_ptr(), tag.len(), room.as_mut_ptr(), room.len()) }
}

pub fn state_watch(task: i32, tag: &str) -> i32 {
    unsafe { sys::state_watch(task, tag.as_ptr(), tag.len()) }
}

pub fn recv() -> i32 {
    unsafe { sys::recv() }
}

pub fn random(p: &mut [u8]) {
    assert!(unsafe { sys::random_get(p.as_mut_ptr(), p.len()) } == 0, "the host gave no random bytes");
}
