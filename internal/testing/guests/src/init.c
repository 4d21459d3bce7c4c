// Counts its initialisations, and does in _initialize what mode() says.
#include "jobhost1.h"

static i32 inits;
static u8 seen[1];

EXPORT(_initialize) void initialize(void) {
  inits++;
#ifdef SPIN
  for (;;) *(volatile u8 *)seen = 1;
#endif
#ifdef TRAP
  jh_log(8, TEXT("no good\x1b[2J"));
  __builtin_trap();
#endif
}

EXPORT(jh_run) i64 run(u32 len) {
  (void)len;
  seen[0] = (u8)('0' + inits);
  return result(seen, 1);
}
