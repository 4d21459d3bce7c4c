// The imports of the native ABI as docs/abi.md has them. Workers use jobhost.h,
// which is made of these. A module imports what it calls, and nothing else.

#pragma once
#include <stdint.h>

#ifdef __wasm__
#define JH_IMPORT_FROM(module, name) __attribute__((import_module(module), import_name(#name)))
#define JH_EXPORT(name) __attribute__((export_name(#name)))
#else // for editors, and tests on this machine
#define JH_IMPORT_FROM(module, name)
#define JH_EXPORT(name)
#endif
#define JH_IMPORT(name) JH_IMPORT_FROM("jobhost1", name)

// Generated from runtime/jobabi by "make imports": don't edit.
JH_IMPORT(input) int32_t jh_abi_input(void *buf, uint32_t cap);
JH_IMPORT(output) int32_t jh_abi_output(const void *data, uint32_t len);
JH_IMPORT(fail) int32_t jh_abi_fail(int32_t kind, const void *text, uint32_t len);
JH_IMPORT(info) int32_t jh_abi_info(const void *key, uint32_t klen, void *buf, uint32_t cap);
JH_IMPORT(emit) int32_t jh_abi_emit(const void *data, uint32_t len);
JH_IMPORT(submit) int32_t jh_abi_submit(const void *spec, uint32_t len, int32_t when);
JH_IMPORT(log) void jh_abi_log(int32_t level, const void *text, uint32_t len);
JH_IMPORT(log_level) int32_t jh_abi_log_level(void);
JH_IMPORT(metric) int32_t jh_abi_metric(int32_t kind, const void *name, uint32_t nlen);
JH_IMPORT(observe) int32_t jh_abi_observe(int32_t id, double value);
JH_IMPORT(progress) void jh_abi_progress(int64_t done, int64_t total);
JH_IMPORT(remaining) int64_t jh_abi_remaining(void);
JH_IMPORT(kv_get) int32_t jh_abi_kv_get(const void *key, uint32_t klen, void *buf, uint32_t cap);
JH_IMPORT(kv_version) int64_t jh_abi_kv_version(const void *key, uint32_t klen);
JH_IMPORT(kv_set) int32_t jh_abi_kv_set(const void *key, uint32_t klen, const void *value, uint32_t vlen, int64_t ttl);
JH_IMPORT(kv_del) int32_t jh_abi_kv_del(const void *key, uint32_t klen);
JH_IMPORT(kv_add) int64_t jh_abi_kv_add(const void *key, uint32_t klen, int64_t delta);
JH_IMPORT(kv_cas) int32_t jh_abi_kv_cas(const void *key, uint32_t klen, int64_t version, const void *value, uint32_t vlen);
JH_IMPORT(state_set) int32_t jh_abi_state_set(const void *tag, uint32_t tlen, int32_t status, const void *message, uint32_t mlen, const void *payload, uint32_t plen);
JH_IMPORT(state_get) int32_t jh_abi_state_get(int32_t task, const void *tag, uint32_t tlen, void *buf, uint32_t cap);
JH_IMPORT(state_watch) int32_t jh_abi_state_watch(int32_t task, const void *tag, uint32_t tlen);
JH_IMPORT(http) int32_t jh_abi_http(const void *request, uint32_t len);
JH_IMPORT(timer) int32_t jh_abi_timer(int64_t ms);
JH_IMPORT(wait) int32_t jh_abi_wait(const int32_t *handles, uint32_t n, int64_t timeout);
JH_IMPORT(read) int32_t jh_abi_read(int32_t handle, void *buf, uint32_t cap);
JH_IMPORT(recv) int32_t jh_abi_recv(void);
JH_IMPORT(drop) int32_t jh_abi_drop(int32_t handle);
JH_IMPORT(http_defer) int32_t jh_abi_http_defer(const void *request, uint32_t len, const void *entry, uint32_t elen, const void *args, uint32_t alen);
// End of what is generated.

// The one call of WASI that C without a libc needs: 0 = the bytes are random.
JH_IMPORT_FROM("wasi_snapshot_preview1", random_get) int32_t jh_abi_random_get(void *buf, uint32_t len);
