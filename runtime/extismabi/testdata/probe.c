// A plugin that tries out what a host offers, entry by entry. It is written
// against the imports themselves, without a plugin kit.

#include <stdint.h>

#define IMPORT(name) __attribute__((import_module("extism:host/env"), import_name(name))) extern
#define ENTRY(name) __attribute__((export_name(#name))) int32_t name(void)

typedef uint64_t ptr;

IMPORT("alloc") ptr alloc(uint64_t n);
IMPORT("free") void release(ptr p);
IMPORT("length") uint64_t length(ptr p);
IMPORT("load_u8") uint32_t load_u8(ptr p);
IMPORT("load_u64") uint64_t load_u64(ptr p);
IMPORT("store_u8") void store_u8(ptr p, uint32_t v);
IMPORT("store_u64") void store_u64(ptr p, uint64_t v);
IMPORT("input_length") uint64_t input_length(void);
IMPORT("input_offset") ptr input_offset(void);
IMPORT("input_load_u8") uint32_t input_load_u8(uint64_t i);
IMPORT("input_load_u64") uint64_t input_load_u64(uint64_t i);
IMPORT("output_set") void output_set(ptr p, uint64_t n);
IMPORT("error_set") void error_set(ptr p);
IMPORT("reset") void reset(void);
IMPORT("memory_bytes") uint64_t memory_bytes(void);
IMPORT("config_get") ptr config_get(ptr name);
IMPORT("var_get") ptr var_get(ptr name);
IMPORT("var_set") void var_set(ptr name, ptr value);
IMPORT("http_request") ptr http_request(ptr request, ptr body);
IMPORT("http_status_code") uint32_t http_status_code(void);
IMPORT("http_headers") ptr http_headers(void);
IMPORT("log_trace") void log_trace(ptr text);
IMPORT("log_debug") void log_debug(ptr text);
IMPORT("log_info") void log_info(ptr text);
IMPORT("log_warn") void log_warn(ptr text);
IMPORT("log_error") void log_error(ptr text);
IMPORT("get_log_level") uint32_t get_log_level(void);

// part makes a block of a part of the input.
static ptr part(uint64_t from, uint64_t n) {
  ptr p = alloc(n);
  uint64_t i = 0;
  for (; i + 8 <= n; i += 8) store_u64(p + i, input_load_u64(from + i));
  for (; i < n; i++) store_u8(p + i, input_load_u8(from + i));
  return p;
}

static ptr input(void) { return part(0, input_length()); }

static void output(ptr p) { output_set(p, length(p)); }

// number outputs a number in decimal.
static int32_t number(uint64_t n) {
  char digits[20];
  int len = 0;
  do digits[len++] = '0' + n % 10;
  while (n /= 10);
  ptr p = alloc(len);
  for (int i = 0; i < len; i++) store_u8(p + i, digits[len - 1 - i]);
  output(p);
  return 0;
}

ENTRY(noop) { return 0; }

// no_result has no exit code.
__attribute__((export_name("no_result"))) void no_result(void) { output(input()); }

ENTRY(echo) {
  output(input());
  return 0;
}

static int is_vowel(uint8_t c) {
  c |= 0x20;
  return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u';
}

ENTRY(vowels) {
  uint64_t n = input_length(), count = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t word = input_load_u64(i);
    for (int b = 0; b < 8; b++, word >>= 8) count += is_vowel(word);
  }
  for (; i < n; i++) count += is_vowel(input_load_u8(i));
  return number(count);
}

// fail says the input as its error; its exit code is 0.
ENTRY(fail) {
  error_set(input());
  return 0;
}

// fail_trap says it, and traps.
ENTRY(fail_trap) {
  error_set(input());
  __builtin_trap();
}

ENTRY(code) { return -7; }

ENTRY(config) {
  output(config_get(input()));
  return 0;
}

// var takes name=value, or a name to remove the var, and outputs what was there.
ENTRY(var) {
  uint64_t n = input_length(), cut = 0;
  while (cut < n && input_load_u8(cut) != '=') cut++;
  ptr old = var_get(part(0, cut));
  output(old);
  var_set(part(0, cut), cut < n ? part(cut + 1, n - cut - 1) : 0);
  return 0;
}

// http sends the request in the input with its own text as the body, and
// outputs the body of the response, or the headers if that is empty. The exit
// code is the status if it isn't 200.
ENTRY(http) {
  ptr body = http_request(input(), input());
  output(body ? body : http_headers());
  return http_status_code() == 200 ? 0 : http_status_code();
}

ENTRY(logs) {
  log_trace(input());
  log_debug(input());
  log_info(input());
  log_warn(input());
  log_error(input());
  return number(get_log_level());
}

// hog takes memory in pieces of 1 MiB and outputs how many there were.
ENTRY(hog) {
  uint64_t n = 0;
  while (alloc(1 << 20)) n++;
  reset();
  return number(n);
}

// churn takes and frees 100,000 blocks of all sizes and outputs how much memory there is then.
ENTRY(churn) {
  for (uint64_t i = 0; i < 100000; i++) {
    ptr p = alloc(i * 7919 % 5000 + 1);
    store_u64(p, i);
    release(p);
  }
  return number(memory_bytes());
}

// scribble writes to all memory it can reach, headers included, in the way
// that the first byte of its input says.
ENTRY(scribble) {
  uint32_t how = input_load_u8(0);
  for (int i = 0; i < 50; i++) {
    ptr p = alloc(100 * i + 1);
    if (i % 3) release(p);
  }
  if (how == 'r') reset();
  for (ptr p = 0; p < 300000; p += 8) store_u64(p, how == 'f' ? p + 16 : 0x5a5a5a5a5a5a5a5a);
  for (int i = 0; i < 50; i++) {
    ptr p = alloc(100 * i + 1);
    store_u64(p, 0x5a5a5a5a5a5a5a5a);
    for (ptr q = p - 64; q < p + 64; q++) release(q);
  }
  error_set(0);
  return 0;
}

// peek outputs how many bytes of all memory are not zero.
ENTRY(peek) {
  uint64_t n = 0;
  ptr p = alloc(200000);
  for (ptr q = 0; q < 400000; q++) n += load_u8(q) != 0;
  release(p);
  return number(n);
}
