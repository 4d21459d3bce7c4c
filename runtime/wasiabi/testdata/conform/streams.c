// The standard streams: what may be waited for, and what they are moved to.
#include "conform.h"

enum { tick = 7001, input = 7002, output = 7003, errors = 7004 };

static __wasi_subscription_t in_200ms(void) {
  __wasi_subscription_t s = {.userdata = tick, .u.tag = __WASI_EVENTTYPE_CLOCK};
  s.u.u.clock = (__wasi_subscription_clock_t){.id = __WASI_CLOCKID_MONOTONIC, .timeout = 200 * 1000 * 1000};
  return s;
}

static __wasi_subscription_t writable(fd f, __wasi_userdata_t userdata) {
  __wasi_subscription_t s = {.userdata = userdata, .u.tag = __WASI_EVENTTYPE_FD_WRITE};
  s.u.u.fd_write.file_descriptor = f;
  return s;
}

static void poll_input(void) {
  __wasi_subscription_t in[2] = {in_200ms(), {.userdata = input, .u.tag = __WASI_EVENTTYPE_FD_READ}};
  __wasi_event_t out[2];
  size_t n = 0;
  OK(__wasi_poll_oneoff(in, out, 2, &n));
  HOLDS(n >= 1 && n <= 2);
  for (size_t i = 0; i < n; i++) {
    HOLDS(out[i].error == 0);
    HOLDS(out[i].userdata == (out[i].type == __WASI_EVENTTYPE_CLOCK ? tick : input));
    HOLDS(out[i].type == __WASI_EVENTTYPE_CLOCK || out[i].type == __WASI_EVENTTYPE_FD_READ);
  }
}

// Both outputs are writable before the clock has come, though perhaps not at once.
static void poll_outputs(void) {
  bool ready[2] = {false, false};
  while (!ready[0] || !ready[1]) {
    __wasi_subscription_t in[3] = {in_200ms()};
    size_t n = 1;
    if (!ready[0]) in[n++] = writable(1, output);
    if (!ready[1]) in[n++] = writable(2, errors);
    __wasi_event_t out[3];
    OK(__wasi_poll_oneoff(in, out, n, &n));
    HOLDS(n > 0);
    for (size_t i = 0; i < n; i++) {
      HOLDS(out[i].userdata == output || out[i].userdata == errors);
      HOLDS(out[i].type == __WASI_EVENTTYPE_FD_WRITE && out[i].error == 0);
      bool *seen = &ready[out[i].userdata - output];
      HOLDS(!*seen);
      *seen = true;
    }
  }
}

static void poll(void) {
  poll_input();
  poll_outputs();
}

// The number of a stream that has moved is free, and the next file gets it.
static void move(void) {
  for (fd stream = 0; stream < 3; stream++) {
    fd to = -1;
    OK(open_in(root, "f", HOW(.oflags = CREATE), &to));
    HOLDS(to == (stream == 0 ? root + 1 : stream - 1));
    __wasi_filetype_t type = FDSTAT(stream).fs_filetype;
    OK(__wasi_fd_renumber(stream, to));
    HOLDS(FDSTAT(to).fs_filetype == type);
    REFUSED(__wasi_fd_fdstat_get(stream, &(__wasi_fdstat_t){0}), EBADF);
    UNLINK("f");
  }
}

const struct check stream_checks[] = {{"streams/poll", poll}, {"streams/move", move}, {0}};
