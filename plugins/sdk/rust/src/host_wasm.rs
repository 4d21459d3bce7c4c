//! The host, when built for wasm: its imports, each behind a safe function that
//! takes slices. Pointers are borrowed by the host for the time of a call.

// Generated from runtime/jobabi by "make imports": don't edit.

pub fn output(data: &[u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn output(data: *const u8, len: usize) -> i32;
    }
    unsafe { output(data.as_ptr(), data.len()) }
}

pub fn fail(kind: i32, text: &str) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn fail(kind: i32, text: *const u8, len: usize) -> i32;
    }
    unsafe { fail(kind, text.as_ptr(), text.len()) }
}

pub fn info(key: &str, buf: &mut [u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn info(key: *const u8, klen: usize, buf: *mut u8, cap: usize) -> i32;
    }
    unsafe { info(key.as_ptr(), key.len(), buf.as_mut_ptr(), buf.len()) }
}

pub fn emit(data: &[u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn emit(data: *const u8, len: usize) -> i32;
    }
    unsafe { emit(data.as_ptr(), data.len()) }
}

pub fn submit(spec: &[u8], when: i32) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn submit(spec: *const u8, len: usize, when: i32) -> i32;
    }
    unsafe { submit(spec.as_ptr(), spec.len(), when) }
}

pub fn log(level: i32, text: &str) {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn log(level: i32, text: *const u8, len: usize);
    }
    unsafe { log(level, text.as_ptr(), text.len()) }
}

pub fn log_level() -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn log_level() -> i32;
    }
    unsafe { log_level() }
}

pub fn metric(kind: i32, name: &str) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn metric(kind: i32, name: *const u8, nlen: usize) -> i32;
    }
    unsafe { metric(kind, name.as_ptr(), name.len()) }
}

pub fn observe(id: i32, value: f64) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn observe(id: i32, value: f64) -> i32;
    }
    unsafe { observe(id, value) }
}

pub fn progress(done: i64, total: i64) {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn progress(done: i64, total: i64);
    }
    unsafe { progress(done, total) }
}

pub fn remaining() -> i64 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn remaining() -> i64;
    }
    unsafe { remaining() }
}

pub fn kv_get(key: &str, buf: &mut [u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn kv_get(key: *const u8, klen: usize, buf: *mut u8, cap: usize) -> i32;
    }
    unsafe { kv_get(key.as_ptr(), key.len(), buf.as_mut_ptr(), buf.len()) }
}

pub fn kv_version(key: &str) -> i64 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn kv_version(key: *const u8, klen: usize) -> i64;
    }
    unsafe { kv_version(key.as_ptr(), key.len()) }
}

pub fn kv_set(key: &str, value: &[u8], ttl: i64) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn kv_set(key: *const u8, klen: usize, value: *const u8, vlen: usize, ttl: i64) -> i32;
    }
    unsafe { kv_set(key.as_ptr(), key.len(), value.as_ptr(), value.len(), ttl) }
}

pub fn kv_del(key: &str) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn kv_del(key: *const u8, klen: usize) -> i32;
    }
    unsafe { kv_del(key.as_ptr(), key.len()) }
}

pub fn kv_add(key: &str, delta: i64) -> i64 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn kv_add(key: *const u8, klen: usize, delta: i64) -> i64;
    }
    unsafe { kv_add(key.as_ptr(), key.len(), delta) }
}

pub fn kv_cas(key: &str, version: i64, value: &[u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn kv_cas(key: *const u8, klen: usize, version: i64, value: *const u8, vlen: usize) -> i32;
    }
    unsafe { kv_cas(key.as_ptr(), key.len(), version, value.as_ptr(), value.len()) }
}

pub fn state_set(tag: &str, status: i32, message: &str, payload: &[u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn state_set(
            tag: *const u8,
            tlen: usize,
            status: i32,
            message: *const u8,
            mlen: usize,
            payload: *const u8,
            plen: usize,
        ) -> i32;
    }
    unsafe {
        state_set(tag.as_ptr(), tag.len(), status, message.as_ptr(), message.len(), payload.as_ptr(), payload.len())
    }
}

pub fn state_get(task: i32, tag: &str, buf: &mut [u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn state_get(task: i32, tag: *const u8, tlen: usize, buf: *mut u8, cap: usize) -> i32;
    }
    unsafe { state_get(task, tag.as_ptr(), tag.len(), buf.as_mut_ptr(), buf.len()) }
}

pub fn state_watch(task: i32, tag: &str) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn state_watch(task: i32, tag: *const u8, tlen: usize) -> i32;
    }
    unsafe { state_watch(task, tag.as_ptr(), tag.len()) }
}

pub fn http(request: &[u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn http(request: *const u8, len: usize) -> i32;
    }
    unsafe { http(request.as_ptr(), request.len()) }
}

pub fn timer(ms: i64) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn timer(ms: i64) -> i32;
    }
    unsafe { timer(ms) }
}

pub fn wait(handles: &[i32], timeout: i64) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn wait(handles: *const i32, n: usize, timeout: i64) -> i32;
    }
    unsafe { wait(handles.as_ptr(), handles.len(), timeout) }
}

pub fn read(handle: i32, buf: &mut [u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn read(handle: i32, buf: *mut u8, cap: usize) -> i32;
    }
    unsafe { read(handle, buf.as_mut_ptr(), buf.len()) }
}

pub fn recv() -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn recv() -> i32;
    }
    unsafe { recv() }
}

pub fn drop(handle: i32) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn drop(handle: i32) -> i32;
    }
    unsafe { drop(handle) }
}

pub fn http_defer(request: &[u8], entry: &str, args: &[u8]) -> i32 {
    #[link(wasm_import_module = "jobhost1")]
    extern "C" {
        fn http_defer(
            request: *const u8,
            len: usize,
            entry: *const u8,
            elen: usize,
            args: *const u8,
            alen: usize,
        ) -> i32;
    }
    unsafe { http_defer(request.as_ptr(), request.len(), entry.as_ptr(), entry.len(), args.as_ptr(), args.len()) }
}

// End of what is generated.

pub fn random(p: &mut [u8]) {
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        fn random_get(p: *mut u8, n: usize) -> i32;
    }
    assert!(unsafe { random_get(p.as_mut_ptr(), p.len()) } == 0, "the host gave no random bytes");
}
