// Bytes, texts and buffers.

#include "memory.h"

jh_bytes jh_text(const char *zero_terminated) {
  uint32_t n = 0;
  if (zero_terminated)
    while (zero_terminated[n]) n++;
  return (jh_bytes){zero_terminated, n};
}

bool jh_equal(jh_bytes a, jh_bytes b) {
  if (a.len != b.len) return false;
  for (uint32_t i = 0; i < a.len; i++)
    if (a.data[i] != b.data[i]) return false;
  return true;
}

bool jh_cut(jh_bytes *text, char at, jh_bytes *head) {
  *head = *text;
  if (text->len == 0) return false;
  for (uint32_t i = 0; i < text->len; i++) {
    if (text->data[i] != at) continue;
    head->len = i;
    *text = (jh_bytes){text->data + i + 1, text->len - i - 1};
    return true;
  }
  *text = jh_none;
  return true;
}

jh_bytes jh_error(int error) {
  switch (error) {
  case JH_NOT_FOUND: return JH("not found");
  case JH_DENIED: return JH("not granted");
  case JH_STOPPED: return JH("cancelled or past the deadline");
  case JH_LIMIT: return JH("over the limit");
  case JH_INVALID: return JH("invalid argument");
  case JH_IO: return JH("I/O error");
  case JH_CLOSED: return JH("closed");
  case JH_CONFLICT: return JH("conflict");
  }
  return error < 0 ? JH("unknown error") : JH("no error");
}

// extend makes room for n more bytes and returns where they begin.
static char *extend(jh_buffer *b, uint32_t n) {
  if (n > b->cap - b->len) {
    uint64_t cap = (uint64_t)b->len + n;
    if (cap < 2 * (uint64_t)b->cap) cap = 2 * (uint64_t)b->cap;
    if (cap < 64) cap = 64;
    if (cap > UINT32_MAX) __builtin_trap();
    b->data = jh_resize(b->data, b->cap, cap);
    b->cap = cap;
  }
  b->len += n;
  return b->data + b->len - n;
}

void jh_put(jh_buffer *b, jh_bytes text) { jh_copy(extend(b, text.len), text.data, text.len); }

void jh_put_char(jh_buffer *b, char c) { *extend(b, 1) = c; }

void jh_put_int(jh_buffer *b, int64_t n) {
  char digits[20], *p = digits + sizeof digits;
  uint64_t u = n < 0 ? -(uint64_t)n : (uint64_t)n;
  do
    *--p = '0' + u % 10;
  while (u /= 10);
  if (n < 0) *--p = '-';
  jh_put(b, (jh_bytes){p, digits + sizeof digits - p});
}

void jh_put_json(jh_buffer *b, jh_bytes text) {
  jh_put_char(b, '"');
  for (uint32_t i = 0; i < text.len; i++) {
    unsigned char c = text.data[i];
    if (c == '"' || c == '\\') {
      jh_put_char(b, '\\');
    } else if (c < 0x20) {
      jh_put(b, JH("\\u00"));
      jh_put_char(b, '0' + (c >> 4));
      c = "0123456789abcdef"[c & 15];
    }
    jh_put_char(b, c);
  }
  jh_put_char(b, '"');
}

jh_bytes jh_bytes_of(const jh_buffer *b) { return (jh_bytes){b->data, b->len}; }
