// The part of the native ABI that a worker in C can't do without; docs/abi.md
// has all of it. A worker exports:
//
//   jh_buf(least) -> where the host writes the input; called when it needs room
//                    for at least so many bytes, and again only for more
//   jh_run(len)   -> jh_result(…): does a job whose input has len bytes

#pragma once
#include <stdint.h>

#define JH_EXPORT(name) __attribute__((export_name(#name)))
#define JH_IMPORT(name) __attribute__((import_module("jobhost1"), import_name(#name)))

// jh_log writes a line to the job's log: -4 debug, 0 info, 4 warn, 8 error.
JH_IMPORT(log) void jh_log(int32_t level, const char *text, uint32_t len);

// jh_fail makes the attempt fail, whatever jh_run returns. The text is a message.
enum { JH_RETRYABLE = 1, JH_PERMANENT = 2, JH_SNOOZE = 3 };
JH_IMPORT(fail) int32_t jh_fail(int32_t kind, const char *text, uint32_t len);

// jh_result is what jh_run returns. The bytes must stay until the next call.
static inline uint64_t jh_result(const void *p, uint32_t len) {
  return (uint64_t)(uintptr_t)p << 32 | len;
}
