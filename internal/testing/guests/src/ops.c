// Entries that wait. Most take the text of a request, and return what they read.
#include "jobhost1.h"

#define MOST 4096

static u8 box[128 * 1024], out[2 * 1024 * 1024];
static i32 handles[MOST];
static char digits[24];

EXPORT(jh_buf) void *buf(u32 min) { return min <= sizeof box ? box : 0; }

static i64 number(i64 n) {
  u32 at = sizeof digits;
  u64 rest = n < 0 ? -(u64)n : (u64)n;
  do digits[--at] = '0' + rest % 10; while (rest /= 10);
  if (n < 0) digits[--at] = '-';
  return result(digits + at, sizeof digits - at);
}

// whole reads a message to its end, in pieces.
static i64 whole(i32 handle) {
  u32 len = 0;
  for (;;) {
    u32 room = sizeof out - len;
    i32 n = jh_read(handle, out + len, room < 5000 ? room : 5000);
    if (n < 0) return number(n);
    if (n == 0) return result(out, len);
    len += n;
  }
}

// fetch sends a request and returns the response.
EXPORT(fetch) i64 fetch(u32 len) {
  i32 handle = jh_http(box, len);
  return handle < 0 ? number(handle) : whole(handle);
}

// digitsIn reads the number at the beginning of the input, and the line end after it.
static u32 digitsIn(u32 len, u32 *after) {
  u32 n = 0, i = 0;
  for (; i < len && box[i] != '\n'; i++) n = n * 10 + (box[i] - '0');
  *after = i + 1;
  return n;
}

// many takes a number, a line end and a request, sends it so many times at once,
// and returns how many responses with status 200 came.
EXPORT(many) i64 many(u32 len) {
  u32 after, n = digitsIn(len, &after), open = 0, good = 0;
  for (u32 i = 0; i < n && open < MOST; i++, open++) {
    handles[open] = jh_http(box + after, len - after);
    if (handles[open] < 0) return number(handles[open]);
  }
  while (open > 0) {
    i32 ready = jh_wait(handles, open, -1);
    if (ready < 0) return number(ready);
    if (jh_read(handles[ready], out, sizeof out) >= 3 && out[0] == '2' && out[1] == '0' && out[2] == '0') good++;
    jh_drop(handles[ready]);
    handles[ready] = handles[--open];
  }
  return number(good);
}

// steady takes two numbers and a request: it sends the request so many times, with
// so many open at one time, and returns how many responses with status 200 came.
EXPORT(steady) i64 steady(u32 len) {
  u32 after, next, n = digitsIn(len, &after), most = 0, open = 0, good = 0, sent = 0;
  for (next = after; next < len && box[next] != '\n'; next++) most = most * 10 + (box[next] - '0');
  next++;
  while (sent < n || open > 0) {
    while (sent < n && open < most) {
      handles[open] = jh_http(box + next, len - next);
      if (handles[open] < 0) return number(handles[open]);
      open++, sent++;
    }
    i32 ready = jh_wait(handles, open, -1);
    if (ready < 0) return number(ready);
    if (jh_read(handles[ready], out, sizeof out) >= 3 && out[0] == '2' && out[1] == '0' && out[2] == '0') good++;
    jh_drop(handles[ready]);
    handles[ready] = handles[--open];
  }
  return number(good);
}

// race sends two requests, with a zero byte between them, and returns the first
// response; the other request is dropped.
EXPORT(race) i64 race(u32 len) {
  u32 at = 0;
  while (at < len && box[at]) at++;
  handles[0] = jh_http(box, at);
  handles[1] = jh_http(box + at + 1, len - at - 1);
  i32 ready = jh_wait(handles, 2, -1);
  if (ready < 0) return number(ready);
  jh_drop(handles[1 - ready]);
  return whole(handles[ready]);
}

// pause waits for a timer of as many milliseconds as its input says.
EXPORT(pause) i64 pause(u32 len) {
  u32 after;
  handles[0] = jh_timer(digitsIn(len, &after));
  return number(jh_wait(handles, 1, -1));
}

// until_told waits for an hour, and says what it was answered: it goes on after that.
EXPORT(until_told) i64 until_told(u32 len) {
  (void)len;
  handles[0] = jh_timer(3600000);
  jh_emit(TEXT("waiting"));
  i64 told = jh_wait(handles, 1, -1);
  handles[0] = jh_timer(1);
  if (jh_wait(handles, 1, -1) != 0) told = 0;
  jh_emit(told == -3 ? "told" : "not", told == -3 ? 4 : 3);
  return number(told);
}

// later leaves a request to the host, for the entry bring, and returns its id.
EXPORT(later) i64 later(u32 len) {
  i32 n = jh_http_defer(box, len, TEXT("bring"), TEXT("a\nb"));
  if (n < 0) return number(n);
  char key[] = "child.1";
  key[6] = '0' + n;
  return result(out, jh_info(key, 7, out, sizeof out));
}

// later_fail does that, and fails.
EXPORT(later_fail) i64 later_fail(u32 len) {
  jh_http_defer(box, len, TEXT("bring"), TEXT(""));
  jh_fail(PERMANENT, TEXT("on purpose"));
  return 0;
}

// bring returns its input: the response.
EXPORT(bring) i64 bring(u32 len) { return result(box, len); }

// await submits the job in its input now, and returns what it is told at its end.
EXPORT(await) i64 await(u32 len) {
  i32 n = jh_submit(box, len, 1);
  return n < 0 ? number(n) : whole(n);
}
