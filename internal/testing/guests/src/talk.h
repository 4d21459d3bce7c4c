// How guests of tests talk as fibers: they publish what they are sent, but for
// messages that say otherwise.
#ifndef TALK_H
#define TALK_H
#include "jobhost1.h"

static u8 heard[64 * 1024];

static int says(i32 n, const char *word, i32 len) {
  if (n != len) return 0;
  for (i32 i = 0; i < len; i++)
    if (heard[i] != (u8)word[i]) return 0;
  return 1;
}
#define SAYS(n, word) says((n), TEXT(word))

// begins reports whether a message begins with a word.
static inline int begins(i32 n, const char *word, i32 len) { return n >= len && says(len, word, len); }
#define BEGINS(n, word) begins((n), TEXT(word))

// hear reads the next message, in one piece, and returns its size or an errno.
static i32 hear(i32 inbox) {
  i32 size = jh_read(inbox, 0, 0);
  if (size < 0) return size;
  return jh_read(inbox, heard, size > 0 ? sizeof heard : 1);
}

// obey does what all of them do, and returns 0 when the fiber has ended.
static int obey(i32 n) {
  if (SAYS(n, "end")) return 0;
  if (SAYS(n, "fail")) { jh_fail(PERMANENT, TEXT("on purpose")); return 0; }
  if (SAYS(n, "trap")) __builtin_trap();
  if (SAYS(n, "spin")) {
    jh_emit(TEXT("spinning"));
    for (volatile u32 i = 0;; i++) {}
  }
  jh_emit(heard, n);
  return 1;
}

#endif
