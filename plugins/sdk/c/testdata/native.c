// native tests what needs no host, on this machine, under sanitizers. Each piece of
// memory is of its own, so that one byte too far shows. The host is a page of answers.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

void *jh_alloc(uint32_t size) { return malloc(size ? size : 1); }
void *jh_resize(void *old, uint32_t old_size, uint32_t size) {
  (void)old_size;
  return realloc(old, size ? size : 1);
}

static int failures;

// copy makes bytes of a text that end where the memory does.
static jh_bytes copy(const char *text) {
  uint32_t n = strlen(text);
  return (jh_bytes){memcpy(malloc(n ? n : 1), text, n), n};
}

static void check(const char *what, jh_bytes got, const char *want) {
  if (got.len == strlen(want) && (got.len == 0 || memcmp(got.data, want, got.len) == 0)) return;
  printf("%s: %.*s instead of %s\n", what, (int)got.len, got.len ? got.data : "", want);
  failures++;
}

static void check_int(const char *what, int64_t got, int64_t want) {
  if (got == want) return;
  printf("%s: %lld instead of %lld\n", what, (long long)got, (long long)want);
  failures++;
}

// ---- The host: what it was asked last, and what it answers.

static jh_bytes asked;  // a copy
static const char *told = ""; // by fill-or-size, and by read

static int32_t hear(const void *p, uint32_t n) {
  char *text = malloc(n ? n : 1);
  if (n) memcpy(text, p, n);
  asked = (jh_bytes){text, n};
  return 7;
}

static int32_t fill(void *buf, uint32_t cap) {
  uint32_t n = strlen(told);
  if (n <= cap) memcpy(buf, told, n);
  return n;
}

int32_t jh_abi_output(const void *p, uint32_t n) { return hear(p, n); }
int32_t jh_abi_fail(int32_t kind, const void *p, uint32_t n) { return hear(p, n), kind; }
int32_t jh_abi_info(const void *k, uint32_t n, void *buf, uint32_t cap) { return hear(k, n), fill(buf, cap); }
int32_t jh_abi_emit(const void *p, uint32_t n) { return hear(p, n); }
void jh_abi_log(int32_t level, const void *p, uint32_t n) { (void)level, hear(p, n); }
int32_t jh_abi_log_level(void) { return 0; }
int32_t jh_abi_metric(int32_t kind, const void *p, uint32_t n) { return hear(p, n), kind; }
int32_t jh_abi_observe(int32_t id, double v) { return id + (v > 0); }
void jh_abi_progress(int64_t done, int64_t total) { (void)done, (void)total; }
int64_t jh_abi_remaining(void) { return -1; }
int32_t jh_abi_submit(const void *p, uint32_t n, int32_t when) { return (void)when, hear(p, n); }
int32_t jh_abi_kv_get(const void *k, uint32_t n, void *buf, uint32_t cap) { return hear(k, n), fill(buf, cap); }
int64_t jh_abi_kv_version(const void *k, uint32_t n) { return hear(k, n); }
int32_t jh_abi_kv_set(const void *k, uint32_t n, const void *v, uint32_t vn, int64_t ttl) { return (void)k, (void)n, (void)ttl, hear(v, vn); }
int32_t jh_abi_kv_del(const void *k, uint32_t n) { return hear(k, n); }
int64_t jh_abi_kv_add(const void *k, uint32_t n, int64_t d) { return hear(k, n), d; }
int32_t jh_abi_kv_cas(const void *k, uint32_t n, int64_t version, const void *v, uint32_t vn) { return (void)k, (void)n, (void)version, hear(v, vn); }
int32_t jh_abi_state_set(const void *t, uint32_t tn, int32_t s, const void *m, uint32_t mn, const void *p, uint32_t pn) { return (void)t, (void)tn, (void)s, (void)p, (void)pn, hear(m, mn); }
int32_t jh_abi_state_get(int32_t task, const void *t, uint32_t tn, void *buf, uint32_t cap) { return (void)task, hear(t, tn), fill(buf, cap); }
int32_t jh_abi_state_watch(int32_t task, const void *t, uint32_t tn) { return (void)task, hear(t, tn); }
int32_t jh_abi_http(const void *p, uint32_t n) { return hear(p, n); }
int32_t jh_abi_http_defer(const void *p, uint32_t n, const void *e, uint32_t en, const void *a, uint32_t an) { return (void)e, (void)en, (void)a, (void)an, hear(p, n); }
int32_t jh_abi_timer(int64_t ms) { return ms; }
int32_t jh_abi_recv(void) { return 7; }
int32_t jh_abi_wait(const int32_t *h, uint32_t n, int64_t timeout) { return (void)h, (void)n, (void)timeout, 0; }
int32_t jh_abi_read(int32_t h, void *buf, uint32_t cap) { // in pieces, as a host may do it
  static uint32_t at;
  (void)h;
  uint32_t n = strlen(told + at);
  if (cap == 0) return n;
  if (n > cap) n = cap;
  if (n > 3) n = 3;
  memcpy(buf, told + at, n);
  at += n;
  if (!told[at]) at = 0;
  return n;
}
int32_t jh_abi_drop(int32_t h) { return h; }
int32_t jh_abi_random_get(void *buf, uint32_t n) { return memset(buf, 1, n), 0; }

// ---- The tests

static void test_json(void) {
  const struct {
    const char *object, *want;
    int error;
  } gets[] = {
      {"{\"a\":1}", "1", 0},
      {" { \"x\" : [1, {\"a\":2}, \"}\"] , \"a\" : {\"b\":[\"\\\"]\"]} }", "{\"b\":[\"\\\"]\"]}", 0},
      {"{\"\\u0061\":true}", "true", 0},
      {"{}", "", JH_NOT_FOUND},
      {"{\"b\":{\"a\":1}}", "", JH_NOT_FOUND},
      {"", "", JH_INVALID}, {"[]", "", JH_INVALID}, {"{", "", JH_INVALID}, {"{\"a\"", "", JH_INVALID}, {"{\"a\":", "", JH_INVALID},
      {"{\"b\":\"\\", "", JH_INVALID}, {"{\"b\":[1", "", JH_INVALID}, {"{\"b\":1", "", JH_INVALID}, {"{a:1}", "", JH_INVALID}, {"{\"a\":}", "", JH_INVALID},
  };
  for (size_t i = 0; i < sizeof gets / sizeof *gets; i++) {
    jh_bytes value = jh_none;
    int error = jh_json_get(copy(gets[i].object), JH("a"), &value);
    check_int(gets[i].object, error, gets[i].error);
    if (error == JH_OK) check(gets[i].object, value, gets[i].want);
  }
  const char *const texts[][2] = {
      {"\"\"", ""}, {"\"plain\"", "plain"}, {"\"a\\n\\t\\r\\b\\f\\/\\\\\\\"z\"", "a\n\t\r\b\f/\\\"z"},
      {"\"gr\\u00f6\\u00dfe \\u20ac \\ud83d\\udfe2\"", "größe € 🟢"},
      {"\"\\ud83d\"", "\xef\xbf\xbd"}, {"\"\\ud83dx\\u12\"", "\xef\xbf\xbdx\xef\xbf\xbd"}, {"12", "12"}, {"\"", "\""}, {"\"a\\\"", "a\\"}, {"", ""},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check(texts[i][0], jh_json_text(copy(texts[i][0])), texts[i][1]);
  const char *const bad[] = {"", "-", "1.5", "1e3", "9223372036854775808", "-9223372036854775809", "99999999999999999999", "x", "1 2"};
  int64_t n = 0;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) check_int(bad[i], jh_json_int(copy(bad[i]), &n), JH_INVALID);
  check_int("min", jh_json_int(copy("-9223372036854775808"), &n), 0), check_int("min", n, INT64_MIN);
  check_int("max", jh_json_int(copy(" 9223372036854775807 "), &n), 0), check_int("max", n, INT64_MAX);
  jh_bytes array = copy("[ 1, [2,3] ,\"4\"]"), element;
  const char *const elements[] = {"1", "[2,3]", "\"4\""};
  for (int i = 0; i < 3; i++) check_int("next", jh_json_next(&array, &element), true), check("element", element, elements[i]);
  check_int("end", jh_json_next(&array, &element), false);
  array = copy("[]");
  check_int("none", jh_json_next(&array, &element), false);
}

static void test_texts(void) {
  jh_bytes text = copy("a,,b"), head;
  const char *const heads[] = {"a", "", "b"};
  for (int i = 0; i < 3; i++) check_int("cut", jh_cut(&text, ',', &head), true), check("head", head, heads[i]);
  check_int("end", jh_cut(&text, ',', &head), false);
  jh_buffer b = {0};
  jh_put_int(&b, INT64_MIN), jh_put_char(&b, ' '), jh_put_int(&b, 0);
  jh_put_json(&b, copy("\x01\"\\\xc3\xb6\x1f"));
  check("buffer", jh_bytes_of(&b), "-9223372036854775808 0\"\\u0001\\\"\\\\ö\\u001f\"");
}

static void test_calls(void) {
  jh_fail((jh_failure){.message = copy("a\nb"), .code = "c", .severity = "warning", .context = JH("{}")});
  check("fail", asked, "{\"message\":\"a\\u000ab\",\"code\":\"c\",\"severity\":\"warning\",\"context\":{}}");
  jh_field labels[] = {{JH("code"), JH("2\"\\\n")}, {JH("path"), JH("")}};
  check_int("metric", jh_metric(JH_GAUGE, JH("m"), labels, 2), JH_GAUGE);
  check("metric", asked, "m{code=\"2\\\"\\\\\\n\",path=\"\"}");
  check_int("observe", jh_observe(JH_LIMIT, 1), JH_LIMIT);
  check_int("remaining", jh_remaining(), INT64_MAX);
  jh_bytes id;
  told = "child-id";
  check_int("submit", jh_submit((jh_spec){.worker = JH("w"), .payload = JH("a\n\nb"), .delay_ms = 1500, .tasks = 2, .labels = labels + 1, .labels_len = 1}, 0), 7);
  check("submit", asked, "worker: w\ndelay: 1500ms\ntasks: 2\nlabel.path: \n\na\n\nb");
  check_int("submit", jh_submit_now((jh_spec){.worker = JH("w")}, &id), 7), check("id", id, told), check("key", asked, "child.7");
  check_int("two lines", jh_submit((jh_spec){.worker = JH("w\nid: x")}, 0), JH_INVALID);
  told = "{\"job\":\"j\",\"task\":3,\"tag\":\"a\",\"status\":-7,\"message\":\"\\u003ch\\n\",\"version\":2,\"payload\":{\"rows\":[5]}}";
  jh_state s;
  check_int("state", jh_state_get(3, JH("a"), &s), 0);
  check_int("status", s.status, -7), check_int("task", s.task, 3), check("message", s.message, "<h\n"), check("payload", s.payload, "{\"rows\":[5]}");
  told = "{\"state\":{\"status\":2147483647},\"replay\":true}";
  check_int("event", jh_state_next(1, &s), 0), check_int("status", s.status, JH_FINISHED), check_int("replay", s.replay, true), check_int("sentinel", s.sentinel, false);
  told = "{\"replay\":true,\"sentinel\":true}";
  check_int("event", jh_state_next(1, &s), 0), check_int("sentinel", s.sentinel, true);
}

static void test_http(void) {
  jh_field fields[] = {{JH("a"), JH("1")}, {JH("a"), JH("2\r")}};
  check_int("send", jh_send((jh_request){.url = JH("http://a"), .header = fields, .header_len = 1, .body = JH("x\ny")}), 7);
  check("request", asked, "GET http://a\na: 1\n\nx\ny");
  check_int("header", jh_send((jh_request){.url = JH("http://a"), .header = fields, .header_len = 2}), JH_INVALID);
  check_int("url", jh_send((jh_request){.url = JH("http://a\nb: c")}), JH_INVALID);
  check_int("method", jh_send((jh_request){.url = JH("http://a"), .method = JH("GET http://b")}), JH_INVALID);
  jh_response r;
  told = "201\na: x\ncontent-type: text/plain\n\nbody\n\nmore";
  check_int("fetch", jh_fetch((jh_request){.url = JH("http://a")}, &r), 0);
  check_int("status", r.status, 201), check("body", r.body, "body\n\nmore"), check("type", jh_header(&r, "content-type"), "text/plain"), check("none", jh_header(&r, "b"), "");
  told = "204\n\n";
  check_int("bare", jh_receive(1, &r), 0), check_int("status", r.status, 204), check("body", r.body, ""), check("header", r.header, "");
  told = "0\nerror: dns\n\nno such name";
  check_int("none", jh_receive(1, &r), 0), check("error", r.error, "dns"), check("message", r.body, "no such name");
  const char *const bad[] = {"", "\n", "200", "200\n", "x\n\n", "-1\n\n", "\n\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) told = bad[i], check_int(bad[i], jh_receive(1, &r), JH_INVALID);
  jh_reply reply;
  const struct {
    const char *args, *want;
  } replies[] = {{"", ""}, {"Zg==", "f"}, {"Zm8=", "fo"}, {"Zm9yIGxhdGVy", "for later"}, {"+/+/", "\xfb\xff\xbf"}};
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
    char text[100];
    snprintf(text, sizeof text, "200\njobhost-args: %s\njobhost-request: r7\n\nbody", replies[i].args);
    check_int(text, jh_parse_reply(copy(text), &reply), 0);
    check("args", reply.args, replies[i].want), check("id", reply.id, "r7"), check("body", reply.response.body, "body");
  }
  check_int("no reply", jh_parse_reply(copy("200\n\nbody"), &reply), JH_INVALID);
  check_int("no base64", jh_parse_reply(copy("200\njobhost-args: !\njobhost-request: r\n\n"), &reply), JH_INVALID);
  check_int("payload", jh_parse_reply(copy("{}"), &reply), JH_INVALID);
}

// test_noise reads what was changed at random, each time in memory of its own, so that
// the sanitizers see a reader that goes too far.
static void test_noise(void) {
  const char *const whole[] = {
      "{\"a\":{\"b\":[1,\"\\ud83d\\udfe2\",{}]},\"state\":{\"status\":-7}}", "[1,[2,\"x\\n\"],{\"a\":3}]",
      "200\na: x\njobhost-args: Zm9yIGxhdGVy\njobhost-request: r7\n\nbody"};
  uint32_t random = 1;
  for (int i = 0; i < 60000; i++) {
    const char *from = whole[i % 3];
    uint32_t n = strlen(from);
    random = random * 1664525 + 1013904223;
    if (i % 5 == 0) n = (random >> 8) % n;
    char *text = malloc(n ? n : 1);
    memcpy(text, from, n);
    for (uint32_t k = random >> 30; n > 0 && k > 0; k--) {
      random = random * 1664525 + 1013904223;
      text[(random >> 8) % n] = "{}[]\\\":,u\n0-"[(random >> 24) % 12];
    }
    jh_bytes all = {text, n}, rest = all, value = jh_none;
    int64_t number;
    jh_reply reply;
    if (jh_json_get(all, JH("a"), &value) == JH_OK) jh_json_text(value);
    while (jh_json_next(&rest, &value)) jh_json_text(value), jh_json_int(value, &number);
    jh_json_text(all);
    jh_parse_reply(all, &reply);
    free(text);
  }
}

int main(void) {
  test_noise();
  test_json();
  test_texts();
  test_calls();
  test_http();
  return failures > 0;
}
