// Ends by the exit code that is the payload, after writing to both streams.
#include "jobhost1.h"

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))
WASI(proc_exit) _Noreturn void proc_exit(u32 code);
WASI(fd_write) i32 fd_write(i32 fd, const void *iovs, u32 n, u32 *written);
WASI(poll_oneoff) i32 poll_oneoff(const void *in, void *out, u32 n, u32 *events);
WASI(random_get) i32 random_get(void *buf, u32 len);

static u8 box[1024];

EXPORT(jh_buf) void *buf(u32 min) { return min <= sizeof box ? box : 0; }

static void put(i32 fd, const void *ptr, u32 len) {
  struct { const void *ptr; u32 len; } iov = {ptr, len};
  u32 written;
  fd_write(fd, &iov, 1, &written);
}

EXPORT(jh_run) i64 run(u32 len) {
  u32 code = 0;
  for (u32 i = 0; i < len; i++) code = code * 10 + (box[i] - '0');
  proc_exit(code);
}

// Writes the payload to standard output and a line in two pieces to standard error.
EXPORT(streams) i64 streams(u32 len) {
  put(1, box, len);
  put(2, TEXT("half and "));
  put(2, TEXT("half\nopen end"));
  return 0;
}

EXPORT(flood) i64 flood(u32 len) {
  (void)len;
  for (u32 i = 0; i < 1000; i++) put(1, box, sizeof box);
  return 0;
}

// Sleeps for an hour, again and again.
EXPORT(sleep) i64 sleep_long(u32 len) {
  (void)len;
  static struct { u64 user; u8 tag, pad[7]; u32 clock, pad2; u64 timeout, precision; u32 flags, pad3; } in;
  static u8 out[32];
  u32 events;
  in.timeout = 3600ull * 1000 * 1000 * 1000;
  for (;;) poll_oneoff(&in, out, 1, &events);
}

EXPORT(random) i64 random_bytes(u32 len) {
  (void)len;
  random_get(box, 16);
  return result(box, 16);
}
