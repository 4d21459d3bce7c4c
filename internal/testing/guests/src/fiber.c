// A fiber: it publishes what it is sent, but for messages that say otherwise.
#include "talk.h"

static u8 box[64 * 1024], out[128 * 1024];
static char digits[24];
static i32 messages; // of this run

EXPORT(jh_buf) void *buf(u32 min) { return min <= sizeof box ? box : 0; }

static void emitNumber(i64 n) {
  u32 at = sizeof digits;
  u64 left = n < 0 ? -(u64)n : (u64)n;
  do digits[--at] = '0' + left % 10; while (left /= 10);
  if (n < 0) digits[--at] = '-';
  jh_emit(digits + at, sizeof digits - at);
}

static void work(u32 rounds) {
  for (volatile u32 i = 0; i < rounds; i++) {}
}

// large publishes 1 MiB of zeros, each of which is six bytes in JSON.
static void large(void) {
  static u8 *zeros;
  if (!zeros) zeros = (u8 *)(__builtin_wasm_memory_grow(0, 16) * 65536);
  jh_emit(zeros, 1 << 20);
}

// act does what a message asks for, and reports whether it asked for anything.
static int act(i32 n, u32 len) {
  if (SAYS(n, "count")) emitNumber(messages);
  else if (SAYS(n, "init")) jh_emit(box, len);
  else if (SAYS(n, "remaining")) emitNumber(jh_remaining());
  else if (BEGINS(n, "info ")) jh_emit(out, jh_info(heard + 5, n - 5, out, sizeof out));
  else if (BEGINS(n, "set ")) emitNumber(jh_kv_set(TEXT("key"), heard + 4, n - 4, 0));
  else if (SAYS(n, "get")) {
    i32 size = jh_kv_get(TEXT("key"), out, sizeof out);
    if (size < 0) emitNumber(size);
    else jh_emit(out, size);
  }
  else if (SAYS(n, "add")) emitNumber(jh_kv_add(TEXT("sum"), 1));
  else if (BEGINS(n, "submit ")) emitNumber(jh_submit(heard + 7, n - 7, 1));
  else if (BEGINS(n, "after ")) emitNumber(jh_submit(heard + 6, n - 6, 0));
  else if (BEGINS(n, "state ")) emitNumber(jh_state_set(TEXT("talk"), n - 6, heard + 6, n - 6, 0, 0));
  else if (BEGINS(n, "log ")) jh_log(0, heard + 4, n - 4), jh_emit(TEXT("logged"));
  else if (SAYS(n, "flood")) {
    for (i32 i = 0; i < 2000; i++) jh_log(0, out, 4000);
    jh_emit(TEXT("flooded"));
  }
  else if (BEGINS(n, "http ")) {  // emits the status, or an errno
    i32 handle = jh_http(heard + 5, n - 5), size = handle < 0 ? handle : jh_read(handle, out, sizeof out);
    if (size < 0) emitNumber(size);
    else jh_emit(out, 3);
    if (handle >= 0) jh_drop(handle);
  }
  else if (SAYS(n, "large")) large();
  else if (SAYS(n, "work")) work(10000000), jh_emit(TEXT("worked"));
  else return 0;
  return 1;
}

// fiber begins with "ready", if its input says so.
EXPORT(jh_run) i64 run(u32 len) {
  i32 inbox = jh_recv(), n = inbox;
  if (len == 5 && box[0] == 'r') jh_emit(box, len);
  while (n >= 0 && (n = hear(inbox)) >= 0) {
    messages++;
    if (!act(n, len) && !obey(n)) return result(TEXT("bye"));
  }
  return result(TEXT("told")); // it was interrupted
}

// stubborn takes no notice of interrupts, and waits for an hour.
EXPORT(stubborn) i64 stubborn(u32 len) {
  (void)len;
  jh_emit(TEXT("waiting"));
  for (;;) {
    i32 handle = jh_timer(3600000);
    jh_wait(&handle, 1, -1);
    jh_drop(handle);
  }
}
