// conform uses each part of the SDK, so that the suite of all SDKs can see it arrive
// at the host. Each entry is one case: see plugins/sdk/sdktest.

#include "jobhost.h"

#ifdef __wasi__
#include <assert.h>
#endif

JH_ENTRY(jh_run, input) {
  char *out = jh_alloc(input.len);
  for (uint32_t i = 0; i < input.len; i++) {
    char c = input.data[i];
    out[i] = c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
  }
  return (jh_bytes){out, input.len};
}

JH_ENTRY(echo, input) { return input; }

// failed fails with an error of the SDK.
static jh_bytes failed(const char *what, int error) {
  jh_buffer b = {0};
  jh_put(&b, jh_text(what));
  jh_put(&b, JH(": "));
  jh_put(&b, jh_error(error));
  return jh_retry(jh_bytes_of(&b));
}

static jh_bytes decimal(int64_t n) {
  jh_buffer b = {0};
  jh_put_int(&b, n);
  return jh_bytes_of(&b);
}

JH_ENTRY(info, key) {
  jh_bytes value;
  switch (jh_info(key, &value)) {
  case JH_OK: return value;
  case JH_DENIED: return JH("denied");
  default: return JH("none");
  }
}

JH_ENTRY(log, input) {
  jh_log(JH_INFO, input);
  if (jh_logs(JH_DEBUG)) jh_log(JH_DEBUG, JH("debugging"));
  return jh_none;
}

JH_ENTRY(fail, input) {
  return jh_fail((jh_failure){
      .message = input, .code = "bad_input", .category = "validation", .context = JH("{\"seen\":true}"), .permanent = true});
}

JH_ENTRY(retry, input) { return jh_retry(input); }

JH_ENTRY(snooze, input) { return jh_snooze(1500); }

JH_ENTRY(panic, input) {
#ifdef __wasi__
  assert(!"boom"); // the libc's own tells the log
#endif
  JH_ASSERT(!"boom");
  return jh_none;
}

JH_ENTRY(count, input) {
  int64_t sum;
  int error = jh_kv_add(JH("count"), 1, &sum);
  return error < 0 ? failed("add", error) : decimal(sum);
}

JH_ENTRY(keep, input) {
  jh_bytes value;
  int error = jh_kv_get(JH("k"), &value);
  if (error == JH_NOT_FOUND) {
    error = jh_kv_set(JH("k"), input, 0);
    value = jh_none;
  }
  return error < 0 ? failed("keep", error) : value;
}

JH_ENTRY(swap, input) {
  int64_t version = jh_kv_version(JH("k"));
  int error = jh_kv_cas(JH("k"), version, input);
  if (error < 0) return failed("swap", error);
  return jh_kv_cas(JH("k"), 12345, jh_none) == JH_CONFLICT ? JH("ok conflict") : JH("ok");
}

JH_ENTRY(fetch, url) {
  jh_response r;
  jh_buffer b = {0};
  int error = jh_fetch((jh_request){.url = url}, &r);
  if (error < 0) return failed("fetch", error);
  if (r.status == 0) {
    jh_put(&b, JH("error: "));
    jh_put(&b, r.error);
  } else {
    jh_put_int(&b, r.status);
    jh_put_char(&b, ' ');
    jh_put(&b, r.body);
  }
  return jh_bytes_of(&b);
}

JH_ENTRY(race, urls) {
  jh_bytes first;
  jh_cut(&urls, ' ', &first);
  int32_t handles[] = {jh_send((jh_request){.url = first}), jh_send((jh_request){.url = urls})};
  int winner = jh_wait(handles, 2, JH_FOREVER);
  if (winner < 0) return failed("wait", winner);
  jh_drop(handles[1 - winner]);
  jh_response r;
  int error = jh_receive(handles[winner], &r);
  return error < 0 ? failed("receive", error) : r.body;
}

JH_ENTRY(timeout, input) {
  int32_t timer = jh_timer(10);
  int index = jh_wait(&timer, 1, JH_FOREVER);
  return index < 0 ? failed("wait", index) : JH("late");
}

JH_ENTRY(child, input) {
  jh_bytes id;
  int number = jh_submit((jh_spec){.worker = JH("other"), .payload = input}, &id);
  return number < 0 ? failed("submit", number) : id;
}

JH_ENTRY(spread, input) {
  jh_state state = {0};
  jh_progress(1, 2);
  int error = jh_observe(jh_metric(JH_COUNTER, JH("seen"), 0, 0), 1);
  if (error == JH_OK) error = jh_emit(input);
  if (error == JH_OK) error = jh_state_set(JH("half"), 50, JH("half"), jh_none);
  if (error == JH_OK) error = jh_state_get(jh_job_task(), JH("half"), &state);
  return error < 0 ? failed("spread", error) : decimal(state.status);
}

JH_ENTRY(defer, url) {
  int number = jh_defer((jh_request){.url = url}, JH("echo"), JH("args"), 0);
  return number < 0 ? failed("defer", number) : jh_none;
}

JH_ENTRY(inbox, input) {
  jh_bytes message;
  int error = jh_recv(&message);
  return error < 0 ? failed("receive", error) : message;
}

JH_ENTRY(draw, input) {
  unsigned char random[8];
  jh_buffer b = {0};
  jh_random(random, sizeof random);
  for (uint32_t i = 0; i < sizeof random; i++) {
    jh_put_char(&b, "0123456789abcdef"[random[i] >> 4]);
    jh_put_char(&b, "0123456789abcdef"[random[i] & 15]);
  }
  return jh_bytes_of(&b);
}

JH_ENTRY(fresh, input) {
  static int calls;
  return decimal(++calls);
}
