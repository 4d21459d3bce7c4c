// life shows what stays from job to job, and what doesn't.

#include "jobhost.h"

static char *table; // is filled once, and found by each job
static unsigned seed;

#ifdef __wasi__
__attribute__((constructor))
#else
JH_EXPORT(_initialize)
#endif
void fill(void) {
  table = jh_alloc(3);
  __builtin_memcpy(table, "abc", 3);
}

JH_EXPORT(jh_wake) void wake(void) { jh_random(&seed, sizeof seed); }

// Writes over what it allocates, and tells of the table and the seed.
JH_ENTRY(jh_run, input) {
  for (int i = 0; i < 100; i++) __builtin_memset(jh_alloc(1000), 'x', 1000);
  jh_buffer b = {0};
  jh_put(&b, (jh_bytes){table, 3});
  jh_put_char(&b, ' ');
  jh_put_int(&b, seed);
  jh_put_char(&b, ' ');
  jh_put(&b, input);
  return jh_bytes_of(&b);
}

// A fiber that tells the length of each message, however many there are.
JH_ENTRY(lengths, input) {
  void *mark = jh_mark();
  jh_bytes message;
  int error;
  while ((error = jh_recv(&message)) == JH_OK) {
    jh_buffer b = {0};
    jh_put_int(&b, message.len);
    jh_emit(jh_bytes_of(&b));
    jh_release(mark);
  }
  return error == JH_CLOSED ? jh_none : jh_retry(jh_error(error));
}

JH_ENTRY(hoard, input) {
  for (;;) jh_alloc(1 << 20);
}

static int deeper(int n, volatile char *p) {
  volatile char frame[100] = {*p, n};
  return n < 0 ? 0 : 1 + deeper(n + 1, frame);
}

JH_ENTRY(deep, input) { return (jh_bytes){table, deeper(1, table)}; }
