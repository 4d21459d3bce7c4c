// What a job asks the host for and gets at once.

#include "memory.h"

int jh_output(jh_bytes data) { return jh_abi_output(data.data, data.len); }

// The kinds of failures.
enum { retryable = 1, permanent = 2, snooze = 3 };

// say tells how the attempt ends.
static jh_bytes say(int kind, jh_bytes text) {
  jh_abi_fail(kind, text.data, text.len);
  return jh_none;
}

// member appends a member to an object that has some.
static void member(jh_buffer *b, const char *name, const char *text) {
  if (!text) return;
  jh_put(b, JH(","));
  jh_put_json(b, jh_text(name));
  jh_put(b, JH(":"));
  jh_put_json(b, jh_text(text));
}

jh_bytes jh_fail(jh_failure f) {
  const uint32_t most = 5000; // more than the host keeps, so that it says that it was cut
  if (f.message.len > most) f.message.len = most;
  jh_buffer b = {0};
  jh_put(&b, JH("{\"message\":"));
  jh_put_json(&b, f.message);
  member(&b, "code", f.code);
  member(&b, "category", f.category);
  member(&b, "severity", f.severity);
  if (f.context.len > 0) {
    jh_put(&b, JH(",\"context\":"));
    jh_put(&b, f.context);
  }
  jh_put(&b, JH("}"));
  return say(f.permanent ? permanent : retryable, jh_bytes_of(&b));
}

jh_bytes jh_retry(jh_bytes message) { return jh_fail((jh_failure){.message = message}); }

jh_bytes jh_permanent(jh_bytes message) { return jh_fail((jh_failure){.message = message, .permanent = true}); }

jh_bytes jh_snooze(int64_t ms) {
  jh_buffer b = {0};
  jh_put_int(&b, ms);
  jh_put(&b, JH("ms"));
  return say(snooze, jh_bytes_of(&b));
}

_Noreturn void jh_panic(jh_bytes message) {
  jh_fail((jh_failure){.message = message, .code = "panic", .category = "system", .severity = "critical"});
  __builtin_trap(); // what was said stands
}

int jh_info(jh_bytes key, jh_bytes *value) {
  JH_FILL(value, jh_abi_info(key.data, key.len, buf, cap));
  return JH_OK;
}

// named asks for one of a group.
static int named(const char *group, const char *name, jh_bytes *value) {
  jh_buffer key = {0};
  jh_put(&key, jh_text(group));
  jh_put(&key, jh_text(name));
  return jh_info(jh_bytes_of(&key), value);
}

int jh_config(const char *name, jh_bytes *value) { return named("config.", name, value); }
int jh_label(const char *name, jh_bytes *value) { return named("label.", name, value); }
int jh_secret(const char *name, jh_bytes *value) { return named("secret.", name, value); }

// known asks for something that every job has.
static jh_bytes known(jh_bytes key) {
  jh_bytes value = jh_none;
  jh_info(key, &value);
  return value;
}

static int32_t number(jh_bytes key) {
  int64_t n = 0;
  jh_json_int(known(key), &n);
  return n;
}

jh_bytes jh_job_id(void) { return known(JH("job.id")); }
int32_t jh_job_task(void) { return number(JH("job.task")); }
int32_t jh_job_tasks(void) { return number(JH("job.tasks")); }
int32_t jh_job_attempt(void) { return number(JH("job.attempt")); }
jh_bytes jh_job_priority(void) { return known(JH("job.priority")); }
jh_bytes jh_job_worker(void) { return known(JH("worker")); }
jh_bytes jh_job_trace(void) { return known(JH("trace")); }

void jh_log(int level, jh_bytes line) { jh_abi_log(level, line.data, line.len); }
bool jh_logs(int level) { return level >= jh_abi_log_level(); }

int jh_emit(jh_bytes data) { return jh_abi_emit(data.data, data.len); }
void jh_progress(int64_t done, int64_t total) { jh_abi_progress(done, total); }

int64_t jh_remaining(void) {
  int64_t ms = jh_abi_remaining();
  return ms == -1 ? INT64_MAX : ms < 0 ? 0 : ms;
}

int jh_metric(int kind, jh_bytes name, const jh_field *labels, uint32_t n) {
  jh_buffer b = {0};
  jh_put(&b, name);
  for (uint32_t i = 0; i < n; i++) {
    jh_put_char(&b, i ? ',' : '{');
    jh_put(&b, labels[i].name);
    jh_put(&b, JH("=\""));
    for (uint32_t k = 0; k < labels[i].value.len; k++) {
      char c = labels[i].value.data[k];
      if (c == '"' || c == '\\' || c == '\n') jh_put_char(&b, '\\');
      jh_put_char(&b, c == '\n' ? 'n' : c);
    }
    jh_put_char(&b, '"');
  }
  if (n) jh_put_char(&b, '}');
  return jh_abi_metric(kind, b.data, b.len);
}

int jh_observe(int id, double value) { return id < 0 ? id : jh_abi_observe(id, value); }

void jh_random(void *data, uint32_t len) {
  if (jh_abi_random_get(data, len) != 0) jh_panic(JH("the host has no random bytes"));
}

int jh_kv_get(jh_bytes key, jh_bytes *value) {
  JH_FILL(value, jh_abi_kv_get(key.data, key.len, buf, cap));
  return JH_OK;
}

int jh_kv_set(jh_bytes key, jh_bytes value, int64_t ttl_ms) {
  return jh_abi_kv_set(key.data, key.len, value.data, value.len, ttl_ms);
}

int jh_kv_del(jh_bytes key) { return jh_abi_kv_del(key.data, key.len); }

int jh_kv_add(jh_bytes key, int64_t delta, int64_t *sum) {
  int64_t n = jh_abi_kv_add(key.data, key.len, delta);
  if (n < INT64_MIN + 256) return INT64_MIN - n; // errors are the least numbers that there are
  if (sum) *sum = n;
  return JH_OK;
}

int64_t jh_kv_version(jh_bytes key) { return jh_abi_kv_version(key.data, key.len); }

int jh_kv_cas(jh_bytes key, int64_t version, jh_bytes value) {
  return jh_abi_kv_cas(key.data, key.len, version, value.data, value.len);
}
