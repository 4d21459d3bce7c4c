// What is no file: clocks, random numbers, the scheduler.
#include "conform.h"

static void monotonic(void) {
  __wasi_timestamp_t exact, first, second;
  OK(__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 1, &exact));
  OK(__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &first));
  OK(__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &second));
  HOLDS(0 < exact && exact <= first && first <= second);
}

static void random_page(void) {
  uint8_t page[1024] = {0};
  OK(__wasi_random_get(page, sizeof page));
  int set = 0;
  for (size_t i = 0; i < sizeof page; i++) set += page[i] != 0;
  HOLDS(set > 800); // of 1,020 or so
}

static void yield(void) { OK(__wasi_sched_yield()); }

const struct check process_checks[] = {
    {"process/monotonic_clock", monotonic},
    {"process/random_page", random_page},
    {"process/yield", yield},
    {0},
};
