// A worker in C without a library: counts the vowels of a text.

#include "jobhost.h"

// From here on memory is free; the linker says where that is.
extern unsigned char __heap_base;

static const uint32_t page = 65536; // bytes

JH_EXPORT(jh_buf) unsigned char *jh_buf(uint32_t least) {
  uint64_t end = (uint64_t)(uintptr_t)&__heap_base + least;
  uint64_t need = (end + page - 1) / page, have = __builtin_wasm_memory_size(0);
  // Over its limit memory doesn't grow, and there is nothing to return: trap.
  if (need > have && __builtin_wasm_memory_grow(0, need - have) == (uintptr_t)-1)
    __builtin_trap();
  return &__heap_base;
}

// vowels has a bit for each of the letters a e i o u.
static const uint32_t vowels = 1 << 0 | 1 << 4 | 1 << 8 | 1 << 14 | 1 << 20;

static char out[32];

JH_EXPORT(jh_run) uint64_t jh_run(uint32_t len) {
  const unsigned char *text = &__heap_base;
  uint32_t count = 0;
  for (uint32_t i = 0; i < len; i++) {
    uint32_t letter = (text[i] | 0x20) - 'a'; // upper case to lower
    count += letter < 26 ? vowels >> letter & 1 : 0;
  }

  // {"count": N}, written from its end.
  char *end = out + sizeof out, *p = end;
  *--p = '}';
  do
    *--p = '0' + count % 10;
  while (count /= 10);
  for (const char *s = " :\"tnuoc\"{"; *s; s++)
    *--p = *s;
  return jh_result(p, end - p);
}
