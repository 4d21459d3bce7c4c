// The imports of the native ABI that the test guests use: see docs/abi.md.
#ifndef JOBHOST1_H
#define JOBHOST1_H

typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#define IMPORT(name) __attribute__((import_module("jobhost1"), import_name(#name)))
#define EXPORT(name) __attribute__((export_name(#name)))

// Generated from runtime/jobabi by "make imports": don't edit.
IMPORT(input) i32 jh_input(void *buf, u32 cap);
IMPORT(output) i32 jh_output(const void *data, u32 len);
IMPORT(fail) i32 jh_fail(i32 kind, const void *text, u32 len);
IMPORT(info) i32 jh_info(const void *key, u32 klen, void *buf, u32 cap);
IMPORT(emit) i32 jh_emit(const void *data, u32 len);
IMPORT(submit) i32 jh_submit(const void *spec, u32 len, i32 when);
IMPORT(log) void jh_log(i32 level, const void *text, u32 len);
IMPORT(log_level) i32 jh_log_level(void);
IMPORT(metric) i32 jh_metric(i32 kind, const void *name, u32 nlen);
IMPORT(observe) i32 jh_observe(i32 id, double value);
IMPORT(progress) void jh_progress(i64 done, i64 total);
IMPORT(remaining) i64 jh_remaining(void);
IMPORT(kv_get) i32 jh_kv_get(const void *key, u32 klen, void *buf, u32 cap);
IMPORT(kv_version) i64 jh_kv_version(const void *key, u32 klen);
IMPORT(kv_set) i32 jh_kv_set(const void *key, u32 klen, const void *value, u32 vlen, i64 ttl);
IMPORT(kv_del) i32 jh_kv_del(const void *key, u32 klen);
IMPORT(kv_add) i64 jh_kv_add(const void *key, u32 klen, i64 delta);
IMPORT(kv_cas) i32 jh_kv_cas(const void *key, u32 klen, i64 version, const void *value, u32 vlen);
IMPORT(state_set) i32 jh_state_set(const void *tag, u32 tlen, i32 status, const void *message, u32 mlen, const void *payload, u32 plen);
IMPORT(state_get) i32 jh_state_get(i32 task, const void *tag, u32 tlen, void *buf, u32 cap);
IMPORT(state_watch) i32 jh_state_watch(i32 task, const void *tag, u32 tlen);
IMPORT(http) i32 jh_http(const void *request, u32 len);
IMPORT(timer) i32 jh_timer(i64 ms);
IMPORT(wait) i32 jh_wait(const i32 *handles, u32 n, i64 timeout);
IMPORT(read) i32 jh_read(i32 handle, void *buf, u32 cap);
IMPORT(recv) i32 jh_recv(void);
IMPORT(drop) i32 jh_drop(i32 handle);
IMPORT(http_defer) i32 jh_http_defer(const void *request, u32 len, const void *entry, u32 elen, const void *args, u32 alen);
// End of what is generated.

#define RETRYABLE 1
#define PERMANENT 2
#define SNOOZE 3

// TEXT passes a literal as pointer and length.
#define TEXT(s) (s), (sizeof(s) - 1)

static inline i64 result(const void *ptr, u32 len) { return (i64)(((u64)(u32)ptr << 32) | len); }

#endif
