// A worker in C without a library: counts the vowels of a text.

#include "jobhost.h"

// vowels has a bit for each of the letters a e i o u.
static const uint32_t vowels = 1 << 0 | 1 << 4 | 1 << 8 | 1 << 14 | 1 << 20;

JH_ENTRY(jh_run, text) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < text.len; i++) {
    uint32_t letter = ((unsigned char)text.data[i] | 0x20) - 'a'; // upper case to lower
    count += letter < 26 ? vowels >> letter & 1 : 0;
  }
  jh_buffer out = {0};
  jh_put(&out, JH("{\"count\": "));
  jh_put_int(&out, count);
  jh_put(&out, JH("}"));
  return jh_bytes_of(&out);
}
