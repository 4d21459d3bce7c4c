// HTTP: requests as the host reads them, and responses as it writes them.

#include "ops.h"

static bool has(jh_bytes text, char c) {
  for (uint32_t i = 0; i < text.len; i++)
    if (text.data[i] == c) return true;
  return false;
}

// put_request writes a request; false = a line of it would be two.
static bool put_request(jh_buffer *b, jh_request r) {
  if (has(r.url, '\n') || has(r.url, '\r') || has(r.method, '\n') || has(r.method, '\r') || has(r.method, ' ')) return false;
  jh_put(b, r.method.len ? r.method : JH("GET"));
  jh_put_char(b, ' ');
  jh_put(b, r.url);
  jh_put_char(b, '\n');
  for (uint32_t i = 0; i < r.header_len; i++) {
    jh_field f = r.header[i];
    if (f.name.len == 0 || has(f.name, ':') || !jh_put_field(b, f.name, f.value)) return false;
  }
  jh_put_char(b, '\n');
  jh_put(b, r.body);
  return true;
}

int jh_send(jh_request request) {
  jh_buffer b = {0};
  return put_request(&b, request) ? jh_abi_http(b.data, b.len) : JH_INVALID;
}

int jh_defer(jh_request request, jh_bytes entry, jh_bytes args, jh_bytes *id) {
  jh_buffer b = {0};
  if (!put_request(&b, request)) return JH_INVALID;
  return jh_child(jh_abi_http_defer(b.data, b.len, entry.data, entry.len, args.data, args.len), id);
}

// read_response reads one; its parts are parts of the text.
static int read_response(jh_bytes text, jh_response *r) {
  jh_bytes status;
  int64_t number;
  uint32_t end = 0;
  while (end + 1 < text.len && (text.data[end] != '\n' || text.data[end + 1] != '\n')) end++;
  if (end + 1 >= text.len) return JH_INVALID;
  jh_bytes head = {text.data, end + 1};
  if (!jh_cut(&head, '\n', &status) || jh_json_int(status, &number) < 0 || number < 0) return JH_INVALID;
  *r = (jh_response){.status = number, .header = head, .body = {text.data + end + 2, text.len - end - 2}};
  if (r->status == 0) r->error = jh_header(r, "error");
  return JH_OK;
}

int jh_receive(int32_t handle, jh_response *response) {
  jh_bytes text;
  int error = jh_read(handle, &text);
  if (error < 0) return error;
  jh_drop(handle);
  return read_response(text, response);
}

int jh_fetch(jh_request request, jh_response *response) {
  int handle = jh_send(request);
  return handle < 0 ? handle : jh_receive(handle, response);
}

jh_bytes jh_header(const jh_response *response, const char *name) {
  jh_bytes lines = response->header, line, key;
  while (jh_cut(&lines, '\n', &line)) {
    if (!jh_cut(&line, ':', &key) || !jh_equal(key, jh_text(name))) continue;
    return line.len ? (jh_bytes){line.data + 1, line.len - 1} : jh_none; // without the space
  }
  return jh_none;
}

// digit returns what a character of base64 stands for; 64 = it is none.
static uint32_t digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : 64;
}

// decode decodes base64.
static bool decode(jh_bytes text, jh_bytes *out) {
  jh_buffer b = {0};
  uint32_t bits = 0, n = 0;
  while (text.len > 0 && text.data[text.len - 1] == '=') text.len--;
  for (uint32_t i = 0; i < text.len; i++) {
    uint32_t d = digit(text.data[i]);
    if (d == 64) return false;
    bits = bits << 6 | d;
    n += 6;
    if (n < 8) continue;
    n -= 8;
    jh_put_char(&b, bits >> n);
  }
  *out = jh_bytes_of(&b);
  return true;
}

int jh_parse_reply(jh_bytes payload, jh_reply *reply) {
  int error = read_response(payload, &reply->response);
  if (error < 0) return error;
  reply->id = jh_header(&reply->response, "jobhost-request");
  if (reply->id.len == 0 || !decode(jh_header(&reply->response, "jobhost-args"), &reply->args)) return JH_INVALID;
  return JH_OK;
}
