// Entries that report states, watch them and receive messages. The words of an
// input end with a line end, or with the input.
#include "jobhost1.h"

static u8 box[256 * 1024], out[128 * 1024];
static char digits[24];

EXPORT(jh_buf) void *buf(u32 min) { return min <= sizeof box ? box : 0; }

// word is a part of the input.
struct word {
  u8 *at;
  u32 len;
};

static u32 next; // of the input, for words

static struct word wordOf(u32 len) {
  struct word w = {box + next, 0};
  while (next < len && box[next] != '\n') next++;
  w.len = box + next - w.at;
  next++;
  return w;
}

static struct word rest(u32 len) {
  struct word w = {box + next, next < len ? len - next : 0};
  return w;
}

static i32 numberOf(u32 len) {
  struct word w = wordOf(len);
  i64 n = 0;
  u32 i = w.len > 0 && w.at[0] == '-';
  for (; i < w.len; i++) n = n * 10 + (w.at[i] - '0');
  return w.len > 0 && w.at[0] == '-' ? -n : n;
}

static i64 number(i64 n) {
  u32 at = sizeof digits;
  u64 left = n < 0 ? -(u64)n : (u64)n;
  do digits[--at] = '0' + left % 10; while (left /= 10);
  if (n < 0) digits[--at] = '-';
  return result(digits + at, sizeof digits - at);
}

// set takes tag, status, message and payload, and returns what it was answered.
EXPORT(set) i64 set(u32 len) {
  next = 0;
  struct word tag = wordOf(len);
  i32 status = numberOf(len);
  struct word message = wordOf(len), payload = rest(len);
  return number(jh_state_set(tag.at, tag.len, status, message.at, message.len, payload.at, payload.len));
}

// set_fail does that, and fails.
EXPORT(set_fail) i64 set_fail(u32 len) {
  set(len);
  jh_fail(RETRYABLE, TEXT("on purpose"));
  return 0;
}

// get takes a task and a tag, and returns the state.
EXPORT(get) i64 get(u32 len) {
  next = 0;
  i32 task = numberOf(len);
  struct word tag = wordOf(len);
  i32 n = jh_state_get(task, tag.at, tag.len, out, 8), again;
  if (n <= 8) return n < 0 ? number(n) : result(out, n);
  again = jh_state_get(task, tag.at, tag.len, out, sizeof out); // as fill-or-size has it
  return n == again ? result(out, n) : number(again);
}

// messageOf reads a whole message to out, in pieces of 1,000 bytes, and returns its
// size or an errno.
static i32 messageOf(i32 handle) {
  i32 size = jh_read(handle, 0, 0), n = 0;
  if (size > (i32)sizeof out) return -4;
  if (size == 0) return jh_read(handle, out, 1);
  while (n < size) {
    i32 more = jh_read(handle, out + n, size - n < 1000 ? size - n : 1000);
    if (more <= 0) return more < 0 ? more : -6;
    n += more;
  }
  return size;
}

static int has(i32 n, const char *what, i32 len) {
  for (i32 i = 0; i + len <= n; i++) {
    i32 k = 0;
    while (k < len && out[i + k] == (u8)what[k]) k++;
    if (k == len) return 1;
  }
  return 0;
}

// watch takes a task and a tag and emits each event, until a state is finished or
// failed for good, or the watch ends; it returns what the last read was answered.
EXPORT(watch) i64 watch(u32 len) {
  next = 0;
  i32 task = numberOf(len);
  struct word tag = wordOf(len);
  i32 handle = jh_state_watch(task, tag.at, tag.len), n = handle;
  while (n >= 0 && (n = messageOf(handle)) >= 0) {
    jh_emit(out, n);
    if (has(n, TEXT("\"status\":2147483647")) || has(n, TEXT("\"status\":-1,"))) break;
  }
  return number(n < 0 ? n : 0);
}

// barrier takes a tag and a status and waits until no task is below it; then it
// returns the state that prevails.
EXPORT(barrier) i64 barrier(u32 len) {
  next = 0;
  struct word tag = wordOf(len);
  i32 target = numberOf(len), handle = jh_state_watch(-1, tag.at, tag.len), n = handle;
  while (n >= 0) {
    n = jh_state_get(-1, tag.at, tag.len, out, sizeof out);
    if (n < 0) break;
    i64 status = 0;
    i32 i = 0, minus;
    while (i < n && !(out[i] == 's' && out[i + 6] == '"' && out[i + 7] == ':')) i++;
    minus = out[i += 8] == '-';
    for (i += minus; i < n && out[i] >= '0' && out[i] <= '9'; i++) status = status * 10 + (out[i] - '0');
    if ((minus ? -status : status) >= target) return result(out, n);
    n = messageOf(handle);
  }
  return number(n);
}

// watches takes a number and a task and a tag, opens so many watches, and returns
// what the last was answered if that is an errno, else how many there are.
EXPORT(watches) i64 watches(u32 len) {
  next = 0;
  i32 n = numberOf(len), task = numberOf(len);
  struct word tag = wordOf(len);
  for (i32 i = 0; i < n; i++) {
    i32 handle = jh_state_watch(task, tag.at, tag.len);
    if (handle < 0) return number(handle);
  }
  return number(n);
}

// receive emits each message until the end, sets a state under "received" with
// their count, and returns what ended it.
EXPORT(receive) i64 receive(u32 len) {
  (void)len;
  i32 handle = jh_recv(), n = handle, count = 0;
  if (handle >= 0 && jh_recv() != handle) return number(-99);
  while (n >= 0 && (n = messageOf(handle)) >= 0) {
    jh_emit(out, n);
    jh_state_set(TEXT("received"), ++count, 0, 0, 0, 0);
  }
  return number(n);
}

// mixed waits for a message, a state and a timer of as many milliseconds as the
// input says, and returns the index of the first.
EXPORT(mixed) i64 mixed(u32 len) {
  next = 0;
  i32 handles[3] = {jh_recv(), jh_state_watch(-1, TEXT("mixed")), jh_timer(numberOf(len))};
  if (handles[0] < 0 || handles[1] < 0) return number(handles[0] < 0 ? handles[0] : handles[1]);
  messageOf(handles[1]); // the sentinel
  jh_emit(TEXT("waiting"));
  return number(jh_wait(handles, 3, -1));
}
