// What the files of the SDK share and workers don't need.

#pragma once
#include "jobhost.h"

// jh_resize makes memory of jh_alloc larger or smaller; it may move. What is larger
// than size is given back, if nothing was allocated since.
void *jh_resize(void *old, uint32_t old_size, uint32_t size);

static inline void jh_copy(void *to, const void *from, uint32_t n) {
  if (n > 0) __builtin_memcpy(to, from, n);
}

// JH_FILL puts the answer of a fill-or-size call into *value. The call uses buf and cap.
#define JH_FILL(value, call)                        \
  for (uint32_t cap = 256;;) {                      \
    void *buf = jh_alloc(cap);                      \
    int32_t n = call;                               \
    uint32_t used = n >= 0 && (uint32_t)n <= cap ? n : 0; \
    buf = jh_resize(buf, cap, used);                \
    if (n < 0) return n;                            \
    if ((uint32_t)n <= cap) {                       \
      *(value) = (jh_bytes){buf, used};             \
      break;                                        \
    }                                               \
    cap = n;                                        \
  }
