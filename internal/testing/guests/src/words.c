// It counts words, and does something else where its payload says so.
#include "jobhost1.h"

static u8 box[128 * 1024];
static char out[32];

EXPORT(jh_buf) void *buf(u32 min) { return min <= sizeof box ? box : 0; }

// says reports whether a word is anywhere in the payload.
static int says(u32 len, const char *word, u32 n) {
  for (u32 at = 0; at + n <= len; at++) {
    u32 i = 0;
    while (i < n && box[at + i] == (u8)word[i]) i++;
    if (i == n) return 1;
  }
  return 0;
}

static u32 put(u32 at, const char *text, u32 n) {
  for (u32 i = 0; i < n; i++) out[at + i] = text[i];
  return at + n;
}

// task returns the number of the task, of a job that has several.
static i64 task(void) {
  u32 at = put(0, TEXT("task "));
  i32 n = jh_info(TEXT("job.task"), out + at, sizeof out - at);
  return result(out, at + (u32)n);
}

static i64 count(u32 len) {
  u32 words = 0, at = sizeof out - 6;
  for (u32 i = 0; i < len; i++)
    words += box[i] > ' ' && (i == 0 || box[i - 1] <= ' ');
  put(at, TEXT(" words"));
  do out[--at] = '0' + words % 10; while (words /= 10);
  return result(out + at, sizeof out - at);
}

EXPORT(jh_run) i64 run(u32 len) {
  jh_log(0, TEXT("counting"));
  jh_log(4, TEXT("few words"));
  if (says(len, TEXT("fail"))) {
    jh_fail(PERMANENT, TEXT("{\"code\":\"bad_input\",\"category\":\"validation\",\"message\":\"the input says so\"}"));
    return 0;
  }
  if (says(len, TEXT("binary"))) return result("\x1b[H\xff", 5);
  if (says(len, TEXT("lines"))) return result(TEXT("one\ntwo\n"));
  char tasks[4];
  if (jh_info(TEXT("job.tasks"), tasks, sizeof tasks) != 1 || tasks[0] != '1') return task();
  return count(len);
}
EXPORT(other) i64 other(u32 len) { return run(len); }
