// jobhost.h is the SDK for writing jobhost workers in C, with a libc or without:
//
//   #include "jobhost.h"
//
//   JH_ENTRY(jh_run, input) {
//     jh_buffer out = {0};
//     jh_put(&out, JH("hello, "));
//     jh_put(&out, input);
//     return jh_bytes_of(&out);
//   }
//
// The README above this folder says how to build it. Whatever a call returns through
// a pointer, and what jh_alloc returns, is valid until the job ends.
//
// Calls that can fail return 0 or more when all went well, and otherwise one of the
// errors below.

#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"

// The errors; the numbers are those of the ABI.
enum {
  JH_OK = 0,
  JH_NOT_FOUND = -1,
  JH_DENIED = -2,  // not granted in the manifest
  JH_STOPPED = -3, // the attempt is cancelled or past its deadline
  JH_LIMIT = -4,   // a limit is reached
  JH_INVALID = -5, // an argument makes no sense
  JH_IO = -6,
  JH_CLOSED = -7,
  JH_CONFLICT = -8,
};

// ---- Bytes and texts

// jh_bytes are bytes somewhere, such as a text: UTF-8, with no zero at its end.
typedef struct {
  const char *data;
  uint32_t len;
} jh_bytes;

// JH makes bytes of a literal: JH("text").
#define JH(literal) ((jh_bytes){"" literal, sizeof(literal) - 1})

// jh_text makes bytes of a text that ends with a zero; NULL is an empty one.
jh_bytes jh_text(const char *zero_terminated);
bool jh_equal(jh_bytes a, jh_bytes b);
// jh_cut cuts text at the first such byte: before it comes into *head, what is
// after it stays in *text. Without one all of it is the head; false = text was empty.
bool jh_cut(jh_bytes *text, char at, jh_bytes *head);
// jh_error says in a few words what an error is.
jh_bytes jh_error(int error);

// jh_alloc returns memory for this job, for anything. When there is no more, the
// attempt fails with code out_of_memory.
void *jh_alloc(uint32_t size);
// jh_release gives back what was allocated since jh_mark, for fibers, which have no end:
// void *mark = jh_mark(); while (jh_recv(&message) == JH_OK) { …; jh_release(mark); }
void *jh_mark(void);
void jh_release(void *mark);

// jh_buffer is bytes that grow: jh_buffer b = {0}.
typedef struct {
  char *data;
  uint32_t len, cap;
} jh_buffer;

void jh_put(jh_buffer *b, jh_bytes text);
void jh_put_char(jh_buffer *b, char c);
void jh_put_int(jh_buffer *b, int64_t n);
// jh_put_json appends a text as JSON, with its quotes.
void jh_put_json(jh_buffer *b, jh_bytes text);
jh_bytes jh_bytes_of(const jh_buffer *b);

// jh_json_get finds a member of a JSON object; its value is JSON again. Errors:
// JH_NOT_FOUND, JH_INVALID for what is no object.
int jh_json_get(jh_bytes object, jh_bytes name, jh_bytes *value);
// jh_json_next takes the next element of an array off: begin with the array itself.
// false = there is none.
bool jh_json_next(jh_bytes *array, jh_bytes *element);
// jh_json_text returns what a JSON string stands for; of anything else, it as it is.
jh_bytes jh_json_text(jh_bytes json);
// jh_json_int reads a whole number. Error: JH_INVALID.
int jh_json_int(jh_bytes json, int64_t *n);

// ---- Entries, and how a job ends

// JH_ENTRY begins an entry of the worker: a function that gets the payload and
// returns the result. The one that is called by default is named jh_run. The payload
// may be returned as it is; jh_none is a result of no bytes.
#define JH_ENTRY(name, input)                          \
  static jh_bytes jh_entry_##name(jh_bytes input);     \
  JH_EXPORT(name) uint64_t jh_call_##name(uint32_t n) { \
    return jh_result(jh_entry_##name(jh_payload(n)));  \
  }                                                    \
  static jh_bytes jh_entry_##name(__attribute__((unused)) jh_bytes input)

#define jh_none ((jh_bytes){0, 0})

// What JH_ENTRY needs: the payload of a new job, and a result as the host reads it.
jh_bytes jh_payload(uint32_t len);
static inline uint64_t jh_result(jh_bytes out) { return (uint64_t)(uintptr_t)out.data << 32 | out.len; }

// jh_output appends to the result, before what the entry returns. Error: JH_LIMIT.
int jh_output(jh_bytes data);

// jh_retry fails the attempt, which is tried again as the worker's retry policy says:
// return jh_retry(JH("no answer")). jh_permanent fails it for good, and jh_snooze lets it
// run again after some milliseconds without counting. All return jh_none; the last one counts.
jh_bytes jh_retry(jh_bytes message);
jh_bytes jh_permanent(jh_bytes message);
jh_bytes jh_snooze(int64_t ms);

// jh_failure is a failure with what people and retry policies want to know of it:
// return jh_fail((jh_failure){.message = JH("no quota"), .code = "quota"}). What is
// left out is the host's default.
typedef struct {
  jh_bytes message;     // up to 4 KiB are kept
  const char *code;     // short and stable: 1 to 64 of A-Z a-z 0-9 . _ -
  const char *category; // validation, timeout, network, resource, business, system or unknown
  const char *severity; // critical, error, warning or info
  jh_bytes context;     // a JSON object, up to 16 KiB
  bool permanent;       // no further attempt
} jh_failure;

jh_bytes jh_fail(jh_failure failure);

// jh_panic ends a program that is wrong: the attempt fails with code panic, and the
// sandbox is thrown away. JH_ASSERT does it for a condition that must hold.
_Noreturn void jh_panic(jh_bytes message);
#define JH_ASSERT(condition) ((condition) ? (void)0 : jh_panic(JH(__FILE__ ": " #condition)))

// ---- What a job knows, and tells

// jh_info returns what the host knows by a key of docs/abi.md, such as job.id.
// Errors: JH_NOT_FOUND, and JH_DENIED for secrets that are not granted.
int jh_info(jh_bytes key, jh_bytes *value);
int jh_config(const char *name, jh_bytes *value); // of the worker's config in the manifest
int jh_label(const char *name, jh_bytes *value);  // of the job
int jh_secret(const char *name, jh_bytes *value); // that the manifest grants
jh_bytes jh_job_id(void);
int32_t jh_job_task(void);     // which of the job's partitions this is, from 0
int32_t jh_job_tasks(void);    // how many it has
int32_t jh_job_attempt(void);  // from 1
jh_bytes jh_job_priority(void); // critical, high, normal, low or background
jh_bytes jh_job_worker(void);   // the worker's name
jh_bytes jh_job_trace(void);    // the workflow that the job is a step of, or empty

// The levels of the log. Others count as the next lower one.
enum { JH_DEBUG = -4, JH_INFO = 0, JH_WARN = 4, JH_ERROR = 8 };

void jh_log(int level, jh_bytes line);
// jh_logs reports whether lines of a level are kept.
bool jh_logs(int level);

// jh_emit publishes data to whoever watches the job, at once. Error: JH_LIMIT.
int jh_emit(jh_bytes data);
// jh_progress says how far the attempt is; total 0 = unknown.
void jh_progress(int64_t done, int64_t total);
// jh_remaining returns the milliseconds left: INT64_MAX without a deadline, 0 when the
// attempt must end now. Who works for long asks now and then, and returns on 0.
int64_t jh_remaining(void);

// jh_field is a label, or a field of a header.
typedef struct {
  jh_bytes name, value;
} jh_field;

// The kinds of metrics.
enum { JH_COUNTER = 1, JH_GAUGE = 2, JH_HISTOGRAM = 3 };

// jh_metric returns the id of a metric of the worker's own, with n labels, for
// jh_observe, which adds to a counter, sets a gauge, or counts in a histogram. An
// error in place of an id may be ignored: jh_observe returns it again.
int jh_metric(int kind, jh_bytes name, const jh_field *labels, uint32_t n);
int jh_observe(int id, double value);

// jh_random fills memory with random bytes of the host, fit for keys. What a
// generator was seeded with before the first job is the same in all jobs.
void jh_random(void *data, uint32_t len);

// ---- Keys and values, which all jobs of the worker share

// Changes are applied when the job succeeds, exactly once; the job itself sees them
// at once. A key is 1 to 512 bytes, a value has up to 1 MiB.
int jh_kv_get(jh_bytes key, jh_bytes *value); // JH_NOT_FOUND if there is none
int jh_kv_set(jh_bytes key, jh_bytes value, int64_t ttl_ms); // ttl 0 = for good
int jh_kv_del(jh_bytes key);
// jh_kv_add adds to a number in decimal, 0 without one; sum may be NULL.
int jh_kv_add(jh_bytes key, int64_t delta, int64_t *sum);
// jh_kv_version returns the version of a key, 0 = there is no such key, for
// jh_kv_cas, which sets it if it has that version, and else returns JH_CONFLICT.
int64_t jh_kv_version(jh_bytes key);
int jh_kv_cas(jh_bytes key, int64_t version, jh_bytes value);

// ---- Jobs

// jh_spec says what job is wanted. Only worker is needed, which the manifest must
// name in the submit of this worker; what is left out is that worker's default.
typedef struct {
  jh_bytes worker, payload;
  jh_bytes id, content_type, entry, priority;
  jh_bytes run_at; // RFC 3339
  int64_t delay_ms, timeout_ms;
  int32_t tasks, max_attempts;
  const jh_field *labels;
  uint32_t labels_len;
} jh_spec;

// jh_submit submits a job with the success of this one, jh_submit_now at once. They
// return a number: of a job that was submitted now it is a handle, and what is read
// is JSON when it has ended. id may be NULL.
int jh_submit(jh_spec spec, jh_bytes *id);
int jh_submit_now(jh_spec spec, jh_bytes *id);

// ---- What takes time

// Handles are numbers of what is waited for: requests, timers, jobs, watches, the
// inbox. At the end of the job all are given up.
enum { JH_FOREVER = -1 };

int jh_timer(int64_t ms); // a handle that is ready after so many milliseconds
// jh_wait waits until one of n handles is ready and returns its index, for at most
// timeout milliseconds: 0 only looks. Errors: JH_NOT_FOUND when none was in time,
// JH_STOPPED, JH_INVALID.
int jh_wait(const int32_t *handles, uint32_t n, int64_t timeout_ms);
// jh_read waits for the next message of a handle and returns it whole. Of watches and
// the inbox each call returns the next one, and JH_CLOSED after the last.
int jh_read(int32_t handle, jh_bytes *message);
// jh_drop gives a handle up: a request that is under way is cancelled.
int jh_drop(int32_t handle);

// jh_inbox returns the handle of what a fiber is sent, always the same one, and
// jh_recv the next message. Error: JH_DENIED for jobs, JH_CLOSED at the end.
int jh_inbox(void);
int jh_recv(jh_bytes *message);

// ---- HTTP

// jh_request is a request. Only url is needed.
typedef struct {
  jh_bytes url;
  jh_bytes method; // empty = GET
  const jh_field *header;
  uint32_t header_len;
  jh_bytes body;
} jh_request;

// jh_response is a response with any status. Status 0 = there was none: then error
// has a word for the reason, such as dns or timeout, and body a message.
typedef struct {
  int status;
  jh_bytes header; // its lines, as in "content-type: text/plain\n"
  jh_bytes body;
  jh_bytes error;
} jh_response;

int jh_send(jh_request request); // begins a request and returns its handle
// jh_receive waits for the response of a handle, and gives the handle up.
int jh_receive(int32_t handle, jh_response *response);
// jh_fetch sends a request and waits for the response.
int jh_fetch(jh_request request, jh_response *response);
// jh_header returns a field by its name in lower case: of several, the first one. An
// empty one = there is none.
jh_bytes jh_header(const jh_response *response, const char *name);

// jh_defer lets the host send a request when this job has succeeded. The response
// comes as a job for entry of this worker, with args, up to 64 KiB. id may be NULL.
int jh_defer(jh_request request, jh_bytes entry, jh_bytes args, jh_bytes *id);
// jh_reply is what such a job is given. jh_parse_reply reads its payload; error:
// JH_INVALID for one that is none, as when somebody else has submitted the job.
typedef struct {
  jh_bytes id, args;
  jh_response response;
} jh_reply;
int jh_parse_reply(jh_bytes payload, jh_reply *reply);

// ---- States

enum { JH_NOT_STARTED = 0, JH_STARTED = 1, JH_FINISHED = INT32_MAX, JH_ALL_TASKS = -1 };

// jh_state is what a task has reported under a tag.
typedef struct {
  jh_bytes job, tag, message, payload; // payload is a JSON object, or empty
  int32_t task, status;
  int64_t version;       // counts the reports, from 1; 0 = there was none
  bool replay, sentinel; // of a watch: it was so before; this was all, and no state
} jh_state;

// jh_state_set reports how far this task is, durably and at once. payload is a JSON
// object or empty.
int jh_state_set(jh_bytes tag, int32_t status, jh_bytes message, jh_bytes payload);
// jh_state_get returns the state that prevails, the one with the lowest status, of a
// task or JH_ALL_TASKS, under a tag, or an empty one for all. "JOB/TAG" asks for
// another job's. Error: JH_DENIED for a job that is not granted.
int jh_state_get(int32_t task, jh_bytes tag, jh_state *state);
// jh_state_watch returns a handle of such states and their changes, and
// jh_state_next the next of them.
int jh_state_watch(int32_t task, jh_bytes tag);
int jh_state_next(int32_t handle, jh_state *state);
