// One entry for each way an attempt can go.
#include "talk.h"

static u8 box[64 * 1024];
static u8 scratch[64 * 1024];
static char digits[24];
static i32 runs; // survives from one attempt into the next

EXPORT(jh_buf) void *buf(u32 min) { return min <= sizeof box ? box : 0; }

// decimal writes n and returns the result to hand to the host.
static i64 decimal(i64 n) {
  char *end = digits + sizeof digits, *p = end;
  u64 u = n < 0 ? -(u64)n : (u64)n;
  do {
    *--p = (char)('0' + u % 10);
    u /= 10;
  } while (u);
  if (n < 0) *--p = '-';
  return result(p, (u32)(end - p));
}

// number reads the payload as a decimal number.
static u32 number(u32 len) {
  u32 n = 0;
  for (u32 i = 0; i < len && box[i] >= '0' && box[i] <= '9'; i++) n = n * 10 + (box[i] - '0');
  return n;
}

// Success.
EXPORT(jh_run) i64 run(u32 len) { (void)len; return result(TEXT("ok")); }
EXPORT(echo) i64 echo(u32 len) { return result(box, len); }
EXPORT(empty) i64 empty(u32 len) { (void)len; return 0; }
EXPORT(zero_length) i64 zero_length(u32 len) { (void)len; return result(box, 0); }
EXPORT(count) i64 count(u32 len) { (void)len; return decimal(++runs); }
EXPORT(pull) i64 pull(u32 len) {
  // The size first, then too little room, then enough.
  i32 n = jh_input(0, 0);
  if (n != (i32)len || (len > 0 && jh_input(scratch, len - 1) != n)) return result(TEXT("bad size"));
  n = jh_input(scratch, sizeof scratch);
  return result(scratch, (u32)n);
}
EXPORT(pieces) i64 pieces(u32 len) {
  jh_output(TEXT("one,"));
  jh_output(TEXT("two,"));
  (void)len;
  return result(TEXT("three"));
}

// plant leaves marks in memory, in memory that it grows, and in globals by way of
// count; look tells whether it finds one.
static u32 mark = 0x600d;
EXPORT(plant) i64 plant(u32 len) {
  (void)len;
  runs = 1000;
  mark = 0xbad;
  scratch[1000] = '!';
  i32 page = (i32)__builtin_wasm_memory_grow(0, 1);
  if (page >= 0) *(volatile u32 *)((u32)page << 16) = 0xbad;
  return 0;
}
extern u8 __heap_base;
EXPORT(look) i64 look(u32 len) {
  (void)len;
  i32 found = mark != 0x600d || scratch[1000] != 0;
  u32 end = (u32)__builtin_wasm_memory_size(0) << 16;
  for (u32 p = ((u32)&__heap_base + 7) & ~7u; p < end; p += 8) found |= *(volatile u64 *)p != 0;
  return found ? result(TEXT("found")) : result(TEXT("clean"));
}

// Failures that the guest declares; the payload is the text.
EXPORT(fail_retry) i64 fail_retry(u32 len) { jh_fail(RETRYABLE, box, len); return 0; }
EXPORT(fail_permanent) i64 fail_permanent(u32 len) { jh_fail(PERMANENT, box, len); return 0; }
EXPORT(snooze) i64 snooze(u32 len) { return decimal(jh_fail(SNOOZE, box, len)); }
EXPORT(fail_kind) i64 fail_kind(u32 len) { return decimal(jh_fail(99, box, len)); }
EXPORT(fail_trap) i64 fail_trap(u32 len) {
  jh_fail(PERMANENT, box, len);
  __builtin_trap();
}

// Traps. The volatiles keep the compiler from knowing.
static volatile i32 zero;
EXPORT(trap) i64 trap(u32 len) { (void)len; __builtin_trap(); }
EXPORT(div0) i64 div0(u32 len) { return (i32)len / zero; }
EXPORT(oob) i64 oob(u32 len) { return *(volatile u8 *)(0xfffffff0u + len); }
static i64 deeper(u32 n) { // reads zero after the call, so that it cannot become a loop
  i64 below = deeper(n + 1);
  return below + zero;
}
EXPORT(recurse) i64 recurse(u32 len) { return deeper(len); }
EXPORT(null_call) i64 null_call(u32 len) { return ((i64(*)(u32))(0x7fffffff + zero))(len); }
EXPORT(bad_pointer) i64 bad_pointer(u32 len) { return jh_emit((void *)0xffffffff, len + 1); }

// Never ends by itself.
EXPORT(spin) i64 spin(u32 len) { for (;;) zero = (i32)len; }
EXPORT(wait_cancel) i64 wait_cancel(u32 len) {
  (void)len;
  jh_emit(TEXT("waiting"));
  while (jh_remaining() != -3) {}
  return result(TEXT("stopped"));
}

// Results that are wrong.
EXPORT(big_result) i64 big_result(u32 len) { return result(scratch, number(len)); }
EXPORT(big_output) i64 big_output(u32 len) {
  for (u32 left = number(len); left > 0;) {
    u32 n = left < sizeof scratch ? left : sizeof scratch;
    jh_output(scratch, n);
    left -= n;
  }
  return 0;
}
EXPORT(bad_result) i64 bad_result(u32 len) { (void)len; return result((void *)0xfffffff0, 0x20); }

// Memory: grows by the payload's number of pages at once, returns the old size or −1.
EXPORT(grow) i64 grow(u32 len) { return decimal((i32)__builtin_wasm_memory_grow(0, number(len))); }
EXPORT(grow_trap) i64 grow_trap(u32 len) {
  while ((i32)__builtin_wasm_memory_grow(0, number(len)) >= 0) {}
  __builtin_trap();
}

// Calls.
EXPORT(log_echo) i64 log_echo(u32 len) { jh_log(0, box, len); return 0; }
EXPORT(log_levels) i64 log_levels(u32 len) {
  (void)len;
  jh_log(-4, TEXT("d"));
  jh_log(0, TEXT("i"));
  jh_log(4, TEXT("w"));
  jh_log(8, TEXT("e"));
  return decimal(jh_log_level());
}
EXPORT(log_flood) i64 log_flood(u32 len) {
  for (u32 i = number(len); i > 0; i--) jh_log(0, TEXT("a line of the flood"));
  return 0;
}
EXPORT(emit) i64 emit(u32 len) { return decimal(jh_emit(box, len)); }
EXPORT(emit_big) i64 emit_big(u32 len) { return decimal(jh_emit(scratch, number(len))); }
EXPORT(metric) i64 metric(u32 len) {
  i32 id = jh_metric(1, box, len);
  if (id < 0) return decimal(id);
  return decimal(jh_observe(id, 2.5));
}
EXPORT(progress) i64 progress(u32 len) {
  u32 n = number(len);
  for (u32 i = 1; i <= n; i++) jh_progress(i, n);
  return 0;
}
// The payload is the key.
EXPORT(info) i64 info(u32 len) {
  i32 n = jh_info(box, len, scratch, sizeof scratch);
  return n < 0 ? decimal(n) : result(scratch, (u32)n);
}
EXPORT(remaining) i64 remaining(u32 len) { (void)len; return decimal(jh_remaining()); }

// fiber publishes what it is sent until it is told to end: see talk.h.
EXPORT(fiber) i64 fiber(u32 len) {
  i32 inbox = jh_recv(), n = inbox;
  while (n >= 0 && (n = hear(inbox)) >= 0)
    if (!obey(n)) return result(box, len);
  return result(box, len);
}
