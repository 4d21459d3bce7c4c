// A reader of JSON that allocates nothing but texts with escapes. It goes over what
// it isn't asked for without looking whether it makes sense.

#include "memory.h"

// cursor is what is left of a text.
typedef struct {
  const char *p, *end;
} cursor;

static cursor cursor_of(jh_bytes text) { return (cursor){text.data, text.data + text.len}; }

static jh_bytes rest(cursor c) { return (jh_bytes){c.p, c.end - c.p}; }

static void skip_space(cursor *c) {
  while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r')) c->p++;
}

// took takes one byte if it is the next one but for space.
static bool took(cursor *c, char byte) {
  skip_space(c);
  if (c->p >= c->end || *c->p != byte) return false;
  c->p++;
  return true;
}

static bool skip_string(cursor *c) {
  if (!took(c, '"')) return false;
  for (; c->p < c->end; c->p++) {
    if (*c->p == '\\') {
      if (++c->p >= c->end) return false;
    } else if (*c->p == '"') {
      c->p++;
      return true;
    }
  }
  return false;
}

static bool one_of(char c, const char *set) {
  while (*set && *set != c) set++;
  return *set != 0;
}

// take takes the next value off.
static bool take(cursor *c, jh_bytes *value) {
  skip_space(c);
  const char *start = c->p;
  uint32_t depth = 0;
  do {
    skip_space(c);
    if (c->p >= c->end) return false;
    char byte = *c->p;
    if (byte == '"') {
      if (!skip_string(c)) return false;
    } else if (one_of(byte, "{[")) {
      c->p++;
      depth++;
    } else if (depth > 0 && one_of(byte, "}],:")) {
      c->p++;
      if (one_of(byte, "}]")) depth--;
    } else {
      const char *from = c->p;
      while (c->p < c->end && !one_of(*c->p, "{}[],:\" \n\t\r")) c->p++;
      if (c->p == from) return false;
    }
  } while (depth > 0);
  *value = (jh_bytes){start, c->p - start};
  return true;
}

int jh_json_get(jh_bytes object, jh_bytes name, jh_bytes *value) {
  cursor c = cursor_of(object);
  jh_bytes key;
  if (!took(&c, '{')) return JH_INVALID;
  if (took(&c, '}')) return JH_NOT_FOUND;
  do {
    skip_space(&c);
    if (c.p >= c.end || *c.p != '"' || !take(&c, &key) || !took(&c, ':') || !take(&c, value)) return JH_INVALID;
    if (jh_equal(jh_json_text(key), name)) return JH_OK;
  } while (took(&c, ','));
  return took(&c, '}') ? JH_NOT_FOUND : JH_INVALID;
}

bool jh_json_next(jh_bytes *array, jh_bytes *element) {
  cursor c = cursor_of(*array);
  bool more = (took(&c, '[') || took(&c, ',')) && take(&c, element);
  *array = more ? rest(c) : jh_none;
  return more;
}

// hex reads four digits; -1 = they are none.
static int32_t hex(cursor *c) {
  int32_t n = 0;
  for (int i = 0; i < 4; i++, c->p++) {
    if (c->p >= c->end) return -1;
    char d = *c->p;
    if (d >= '0' && d <= '9') d -= '0';
    else if ((d | 32) >= 'a' && (d | 32) <= 'f') d = (d | 32) - 'a' + 10;
    else return -1;
    n = n << 4 | d;
  }
  return n;
}

// put_rune appends a character in UTF-8.
static void put_rune(jh_buffer *b, uint32_t r) {
  if (r < 0x80) {
    jh_put_char(b, r);
    return;
  }
  if (r < 0x800) {
    jh_put_char(b, 0xc0 | r >> 6);
  } else if (r < 0x10000) {
    jh_put_char(b, 0xe0 | r >> 12);
    jh_put_char(b, 0x80 | (r >> 6 & 63));
  } else {
    jh_put_char(b, 0xf0 | r >> 18);
    jh_put_char(b, 0x80 | (r >> 12 & 63));
    jh_put_char(b, 0x80 | (r >> 6 & 63));
  }
  jh_put_char(b, 0x80 | (r & 63));
}

// put_unicode appends what stands after \u; halves of a pair alone become U+FFFD.
static void put_unicode(jh_buffer *b, cursor *c) {
  int32_t r = hex(c);
  if (r >= 0xd800 && r < 0xdc00 && c->end - c->p >= 6 && c->p[0] == '\\' && c->p[1] == 'u') {
    cursor second = {c->p + 2, c->end};
    int32_t low = hex(&second);
    if (low >= 0xdc00 && low < 0xe000) {
      r = 0x10000 + ((r - 0xd800) << 10) + (low - 0xdc00);
      c->p = second.p;
    }
  }
  put_rune(b, r < 0 || (r >= 0xd800 && r < 0xe000) ? 0xfffd : r);
}

jh_bytes jh_json_text(jh_bytes json) {
  cursor c = cursor_of(json);
  skip_space(&c);
  if (c.end - c.p < 2 || *c.p != '"') return json;
  c.p++;
  c.end--; // without the quote
  const char *start = c.p;
  while (c.p < c.end && *c.p != '\\') c.p++;
  if (c.p == c.end) return (jh_bytes){start, c.end - start};
  jh_buffer b = {0};
  jh_put(&b, (jh_bytes){start, c.p - start});
  while (c.p < c.end) {
    char byte = *c.p++;
    if (byte != '\\' || c.p == c.end) {
      jh_put_char(&b, byte);
      continue;
    }
    switch (byte = *c.p++) {
    case 'b': jh_put_char(&b, '\b'); break;
    case 'f': jh_put_char(&b, '\f'); break;
    case 'n': jh_put_char(&b, '\n'); break;
    case 'r': jh_put_char(&b, '\r'); break;
    case 't': jh_put_char(&b, '\t'); break;
    case 'u': put_unicode(&b, &c); break;
    default: jh_put_char(&b, byte);
    }
  }
  return jh_bytes_of(&b);
}

int jh_json_int(jh_bytes json, int64_t *n) {
  cursor c = cursor_of(json);
  bool negative = took(&c, '-');
  uint64_t u = 0, most = (uint64_t)INT64_MAX + negative;
  const char *start = c.p;
  for (; c.p < c.end && *c.p >= '0' && *c.p <= '9'; c.p++) {
    uint32_t digit = *c.p - '0';
    if (u > (most - digit) / 10) return JH_INVALID;
    u = u * 10 + digit;
  }
  if (c.p == start) return JH_INVALID;
  skip_space(&c);
  if (c.p != c.end) return JH_INVALID;
  *n = negative ? (int64_t)(0 - u) : (int64_t)u;
  return JH_OK;
}
