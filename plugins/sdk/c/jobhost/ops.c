// What takes time: jobs, timers, messages, states.

#include "ops.h"

bool jh_put_field(jh_buffer *b, jh_bytes name, jh_bytes value) {
  uint32_t start = b->len;
  jh_put(b, name);
  jh_put(b, JH(": "));
  jh_put(b, value);
  for (uint32_t i = start; i < b->len; i++)
    if (b->data[i] == '\n' || b->data[i] == '\r') return false; // it would be two
  jh_put_char(b, '\n');
  return true;
}

int jh_child(int number, jh_bytes *id) {
  if (number < 0 || !id) return number;
  jh_buffer key = {0};
  jh_put(&key, JH("child."));
  jh_put_int(&key, number);
  int error = jh_info(jh_bytes_of(&key), id);
  return error < 0 ? error : number;
}

// option appends one that is given.
static bool option(jh_buffer *b, jh_bytes name, jh_bytes value) { return value.len == 0 || jh_put_field(b, name, value); }

// amount appends one that is a number; unit may be empty.
static void amount(jh_buffer *b, jh_bytes name, int64_t n, jh_bytes unit) {
  if (n == 0) return;
  jh_put(b, name);
  jh_put(b, JH(": "));
  jh_put_int(b, n);
  jh_put(b, unit);
  jh_put_char(b, '\n');
}

static int submit(jh_spec s, int when, jh_bytes *id) {
  jh_buffer b = {0};
  bool ok = option(&b, JH("worker"), s.worker) && option(&b, JH("id"), s.id) &&
            option(&b, JH("content_type"), s.content_type) && option(&b, JH("entry"), s.entry) &&
            option(&b, JH("priority"), s.priority) && option(&b, JH("run_at"), s.run_at);
  amount(&b, JH("delay"), s.delay_ms, JH("ms"));
  amount(&b, JH("timeout"), s.timeout_ms, JH("ms"));
  amount(&b, JH("tasks"), s.tasks, jh_none);
  amount(&b, JH("max_attempts"), s.max_attempts, jh_none);
  for (uint32_t i = 0; i < s.labels_len && ok; i++) {
    jh_put(&b, JH("label."));
    ok = jh_put_field(&b, s.labels[i].name, s.labels[i].value);
  }
  if (!ok) return JH_INVALID;
  jh_put_char(&b, '\n');
  jh_put(&b, s.payload);
  return jh_child(jh_abi_submit(b.data, b.len, when), id);
}

int jh_submit(jh_spec spec, jh_bytes *id) { return submit(spec, 0, id); }
int jh_submit_now(jh_spec spec, jh_bytes *id) { return submit(spec, 1, id); }

int jh_timer(int64_t ms) { return jh_abi_timer(ms); }
int jh_wait(const int32_t *handles, uint32_t n, int64_t timeout_ms) { return jh_abi_wait(handles, n, timeout_ms); }
int jh_drop(int32_t handle) { return jh_abi_drop(handle); }

int jh_read(int32_t handle, jh_bytes *message) {
  int32_t size = jh_abi_read(handle, 0, 0);
  if (size < 0) return size;
  uint32_t room = size > 0 ? size : 1, got = 0; // an empty message is read too, or it stays
  char *data = jh_alloc(room);
  do {
    int32_t n = jh_abi_read(handle, data + got, room - got);
    if (n < 0) return n;
    if (n == 0) break;
    got += n;
  } while (got < (uint32_t)size);
  *message = (jh_bytes){data, got};
  return JH_OK;
}

int jh_inbox(void) { return jh_abi_recv(); }

int jh_recv(jh_bytes *message) {
  int handle = jh_inbox();
  return handle < 0 ? handle : jh_read(handle, message);
}

int jh_state_set(jh_bytes tag, int32_t status, jh_bytes message, jh_bytes payload) {
  return jh_abi_state_set(tag.data, tag.len, status, message.data, message.len, payload.data, payload.len);
}

// text and number read a member of an object, empty or 0 without it.
static jh_bytes text(jh_bytes object, jh_bytes name) {
  jh_bytes value = jh_none;
  return jh_json_get(object, name, &value) < 0 ? jh_none : jh_json_text(value);
}

static int64_t number(jh_bytes object, jh_bytes name) {
  int64_t n = 0;
  jh_json_int(text(object, name), &n);
  return n;
}

// read_state reads a state as docs/abi.md shows it.
static jh_state read_state(jh_bytes json) {
  return (jh_state){
      .job = text(json, JH("job")),
      .tag = text(json, JH("tag")),
      .message = text(json, JH("message")),
      .payload = text(json, JH("payload")), // which is an object, and so as it is
      .task = number(json, JH("task")),
      .status = number(json, JH("status")),
      .version = number(json, JH("version")),
  };
}

// state_text asks for a state as JSON.
static int state_text(int32_t task, jh_bytes tag, jh_bytes *json) {
  JH_FILL(json, jh_abi_state_get(task, tag.data, tag.len, buf, cap));
  return JH_OK;
}

int jh_state_get(int32_t task, jh_bytes tag, jh_state *state) {
  jh_bytes json;
  int error = state_text(task, tag, &json);
  if (error == JH_OK) *state = read_state(json);
  return error;
}

int jh_state_watch(int32_t task, jh_bytes tag) { return jh_abi_state_watch(task, tag.data, tag.len); }

int jh_state_next(int32_t handle, jh_state *state) {
  jh_bytes event, json = jh_none;
  int error = jh_read(handle, &event);
  if (error < 0) return error;
  jh_json_get(event, JH("state"), &json); // there is none in what says that this was all
  *state = read_state(json);
  state->replay = jh_equal(text(event, JH("replay")), JH("true"));
  state->sentinel = jh_equal(text(event, JH("sentinel")), JH("true"));
  return JH_OK;
}
