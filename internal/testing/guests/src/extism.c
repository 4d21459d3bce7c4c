// An Extism plugin with one entry for each way an attempt can go, without a PDK.
typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef unsigned long long u64;

#define HOST(name) __attribute__((import_module("extism:host/env"), import_name(#name)))
#define EXPORT(name) __attribute__((export_name(#name)))
HOST(alloc) u64 ext_alloc(u64 n);
HOST(input_length) u64 ext_input_length(void);
HOST(input_load_u8) u32 ext_input_load_u8(u64 at);
HOST(store_u8) void ext_store_u8(u64 at, u32 v);
HOST(load_u8) u32 ext_load_u8(u64 at);
HOST(output_set) void ext_output_set(u64 at, u64 n);
HOST(error_set) void ext_error_set(u64 at);
HOST(log_info) void ext_log_info(u64 at);
HOST(var_get) u64 ext_var_get(u64 key);
HOST(var_set) void ext_var_set(u64 key, u64 value);

static u8 buffer[64 * 1024];
static u32 length;
static volatile i32 zero;
static i32 runs; // does not survive
static u32 mark = 0x600d;

static void take(void) {
  length = (u32)ext_input_length();
  for (u32 i = 0; i < length && i < sizeof buffer; i++) buffer[i] = (u8)ext_input_load_u8(i);
}

static u64 block(const void *p, u32 n) {
  u64 at = ext_alloc(n);
  for (u32 i = 0; i < n; i++) ext_store_u8(at + i, ((const u8 *)p)[i]);
  return at;
}
static void put(const void *p, u32 n) { ext_output_set(block(p, n), n); }
#define TEXT(s) (s), (sizeof(s) - 1)

static void decimal(i32 n) {
  u8 digits[12], *p = digits + sizeof digits;
  u32 u = n < 0 ? -(u32)n : (u32)n;
  do { *--p = (u8)('0' + u % 10); u /= 10; } while (u);
  if (n < 0) *--p = '-';
  put(p, (u32)(digits + sizeof digits - p));
}

static u32 number(void) {
  u32 n = 0;
  take();
  for (u32 i = 0; i < length && buffer[i] >= '0' && buffer[i] <= '9'; i++) n = n * 10 + (buffer[i] - '0');
  return n;
}

EXPORT(ok) i32 ok(void) { put(TEXT("ok")); return 0; }
EXPORT(echo) i32 echo(void) { take(); put(buffer, length); return 0; }
EXPORT(empty) void empty(void) {}
EXPORT(count) i32 count(void) { decimal(++runs); return 0; }
EXPORT(fail_retry) i32 fail_retry(void) { take(); ext_error_set(block(buffer, length)); return 1; }
EXPORT(trap) i32 trap(void) { __builtin_trap(); }
EXPORT(div0) i32 div0(void) { take(); return ((i32)length + 1) / zero; }
EXPORT(oob) i32 oob(void) { return *(volatile u8 *)(0xfffffff0u + (u32)zero); }
static i32 deeper(u32 n) { i32 below = deeper(n + 1); return below + zero; }
EXPORT(recurse) i32 recurse(void) { return deeper(0); }
EXPORT(null_call) i32 null_call(void) { return ((i32(*)(u32))(0x7fffffff + zero))(0); }
EXPORT(spin) i32 spin(void) { for (;;) zero = 0; }
EXPORT(big_output) i32 big_output(void) { u32 n = number(); ext_output_set(ext_alloc(n), n); return 0; }
EXPORT(grow) i32 grow(void) { decimal((i32)__builtin_wasm_memory_grow(0, number())); return 0; }
EXPORT(grow_trap) i32 grow_trap(void) { while ((i32)__builtin_wasm_memory_grow(0, 1) >= 0) {} __builtin_trap(); }
EXPORT(log_echo) i32 log_echo(void) { take(); ext_log_info(block(buffer, length)); return 0; }
EXPORT(log_flood) i32 log_flood(void) {
  u32 n = number();
  u64 line = block(TEXT("a line of the flood"));
  while (n-- > 0) ext_log_info(line);
  return 0;
}

// plant leaves marks in both memories and in a var; look tells whether it finds one.
EXPORT(plant) i32 plant(void) {
  runs = 1000;
  mark = 0xbad;
  buffer[1000] = '!';
  i32 page = (i32)__builtin_wasm_memory_grow(0, 1);
  if (page >= 0) *(volatile u32 *)((u32)page << 16) = 0xbad;
  for (u32 i = 0; i < 1000; i++) block(TEXT("canary"));
  ext_var_set(block(TEXT("canary")), block(TEXT("found")));
  return 0;
}
extern u8 __heap_base;
EXPORT(look) i32 look(void) {
  i32 found = mark != 0x600d || buffer[1000] != 0 || ext_var_get(block(TEXT("canary"))) != 0;
  u32 end = (u32)__builtin_wasm_memory_size(0) << 16;
  for (u32 p = ((u32)&__heap_base + 7) & ~7u; p < end; p += 8) found |= *(volatile u64 *)p != 0;
  u64 fresh = ext_alloc(4096);
  for (u32 i = 0; i < 4096; i++) found |= ext_load_u8(fresh + i) != 0;
  for (u64 at = fresh + 8192; at < fresh + 16384; at++) found |= ext_load_u8(at) != 0;
  if (found) put(TEXT("found")); else put(TEXT("clean"));
  return 0;
}
