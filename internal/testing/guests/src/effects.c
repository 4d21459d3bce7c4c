// Entries that change keys and values, and submit jobs. Most take "KEY=VALUE",
// and return what the call answered as a number, or the value that was got.
#include "jobhost1.h"

static u8 box[128 * 1024], out[64 * 1024];
static char digits[24];

EXPORT(jh_buf) void *buf(u32 min) { return min <= sizeof box ? box : 0; }

static i64 number(i64 n) {
  u32 at = sizeof digits;
  u64 rest = n < 0 ? -(u64)n : (u64)n;
  do digits[--at] = '0' + rest % 10; while (rest /= 10);
  if (n < 0) digits[--at] = '-';
  return result(digits + at, sizeof digits - at);
}

// split finds where the value begins.
static u32 split(u32 len, u32 *klen) {
  for (u32 i = 0; i < len; i++)
    if (box[i] == '=') {
      *klen = i;
      return i + 1;
    }
  *klen = len;
  return len;
}

static i64 value(u32 klen) {
  i32 n = jh_kv_get(box, klen, out, sizeof out);
  return n < 0 ? number(n) : result(out, n);
}

EXPORT(get) i64 get(u32 len) { return value(len); }
EXPORT(version) i64 version(u32 len) { return number(jh_kv_version(box, len)); }
EXPORT(del) i64 del(u32 len) { return number(jh_kv_del(box, len)); }

EXPORT(set) i64 set(u32 len) {
  u32 klen, v = split(len, &klen);
  return number(jh_kv_set(box, klen, box + v, len - v, 0));
}

// set_get returns what the attempt sees of its own change.
EXPORT(set_get) i64 set_get(u32 len) {
  u32 klen, v = split(len, &klen);
  jh_kv_set(box, klen, box + v, len - v, 0);
  return value(klen);
}

// brief sets a key for a millisecond.
EXPORT(brief) i64 brief(u32 len) {
  u32 klen, v = split(len, &klen);
  return number(jh_kv_set(box, klen, box + v, len - v, 1));
}

EXPORT(add) i64 add(u32 len) { return number(jh_kv_add(box, len, 1)); }

// cas replaces a key under the version that it finds.
EXPORT(cas) i64 cas(u32 len) {
  u32 klen, v = split(len, &klen);
  return number(jh_kv_cas(box, klen, jh_kv_version(box, klen), box + v, len - v));
}

// append_x reads a key, and puts an x behind its value, if nobody else does meanwhile.
EXPORT(append_x) i64 append_x(u32 len) {
  i64 version = jh_kv_version(box, len);
  i32 n = jh_kv_get(box, len, out, sizeof out - 1);
  if (n < 0) n = 0;
  out[n] = 'x';
  return number(jh_kv_cas(box, len, version, out, n + 1));
}

// set_fail changes a key and submits a job, and fails.
EXPORT(set_fail) i64 set_fail(u32 len) {
  u32 klen, v = split(len, &klen);
  jh_kv_set(box, klen, box + v, len - v, 0);
  jh_submit(TEXT("worker: test\nentry: add\n\nchildren"), 0);
  jh_fail(PERMANENT, TEXT("on purpose"));
  return 0;
}

static i64 submit(u32 len, i32 when) {
  i32 n = jh_submit(box, len, when);
  if (n < 0) return number(n);
  char key[] = "child.1";
  key[6] = '0' + n;
  return result(out, jh_info(key, 7, out, sizeof out));
}

// submit takes the text of a job, and returns its id.
EXPORT(submit) i64 submit_later(u32 len) { return submit(len, 0); }
EXPORT(submit_now) i64 submit_now(u32 len) { return submit(len, 1); }

// submit_now_fail submits a job at once and fails, so that another attempt does too.
EXPORT(submit_now_fail) i64 submit_now_fail(u32 len) {
  submit(len, 1);
  jh_fail(RETRYABLE, TEXT("on purpose"));
  return 0;
}
