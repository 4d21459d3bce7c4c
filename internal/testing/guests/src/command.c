// A WASI command with one behaviour for each way an attempt can go, without a
// C library. The first line of standard input names the behaviour, the rest is
// its input.
typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef unsigned long long u64;

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))
WASI(fd_read) i32 fd_read(i32 fd, const void *iovs, u32 n, u32 *size);
WASI(fd_write) i32 fd_write(i32 fd, const void *iovs, u32 n, u32 *size);
WASI(fd_close) i32 fd_close(i32 fd);
WASI(fd_fdstat_get) i32 fd_fdstat_get(i32 fd, void *stat);
WASI(proc_exit) _Noreturn void proc_exit(u32 code);
WASI(poll_oneoff) i32 poll_oneoff(const void *in, void *out, u32 n, u32 *events);
WASI(random_get) i32 random_get(void *buf, u32 len);
WASI(environ_sizes_get) i32 environ_sizes_get(u32 *count, u32 *size);
WASI(environ_get) i32 environ_get(u8 **environ, u8 *buf);

static u8 input[64 * 1024], buffer[64 * 1024];
static u32 length;
static volatile i32 zero;
static i32 runs; // does not survive
static u32 mark = 0x600d;

static i32 put(i32 fd, const void *ptr, u32 len) {
  struct { const void *ptr; u32 len; } iov = {ptr, len};
  u32 written;
  return fd_write(fd, &iov, 1, &written);
}
#define PUT(fd, s) put(fd, s, sizeof(s) - 1)

static void decimal(i32 n) {
  u8 digits[12], *p = digits + sizeof digits;
  u32 u = n < 0 ? -(u32)n : (u32)n;
  do { *--p = (u8)('0' + u % 10); u /= 10; } while (u);
  if (n < 0) *--p = '-';
  put(1, p, (u32)(digits + sizeof digits - p));
}

static u32 number(const u8 *s, u32 len) {
  u32 n = 0;
  for (u32 i = 0; i < len && s[i] >= '0' && s[i] <= '9'; i++) n = n * 10 + (s[i] - '0');
  return n;
}

static i32 deeper(u32 n) {
  i32 below = deeper(n + 1);
  return below + zero;
}

// plant leaves marks in memory, grown memory, globals and descriptors.
static void plant(void) {
  mark = 0xbad;
  buffer[1000] = '!';
  i32 page = (i32)__builtin_wasm_memory_grow(0, 1);
  if (page >= 0) *(volatile u32 *)((u32)page << 16) = 0xbad;
  fd_close(2);
}

extern u8 __heap_base;
static void look(void) {
  u8 stat[24];
  i32 found = mark != 0x600d || buffer[1000] != 0 || fd_fdstat_get(2, stat) != 0;
  u32 end = (u32)__builtin_wasm_memory_size(0) << 16;
  for (u32 p = ((u32)&__heap_base + 7) & ~7u; p < end; p += 8) found |= *(volatile u64 *)p != 0;
  if (found) PUT(1, "found"); else PUT(1, "clean");
}

static void environment(void) {
  static u8 *names[256];
  u32 count, size;
  environ_sizes_get(&count, &size);
  if (count > 256 || size > sizeof buffer) proc_exit(1);
  environ_get(names, buffer);
  for (u32 i = 0; i < size; i++) if (!buffer[i]) buffer[i] = '\n';
  put(1, buffer, size);
}

static void repeat(i32 fd, u32 n) {
  for (u32 i = 0; i < sizeof buffer; i++) buffer[i] = 'x';
  while (n > 0) {
    u32 piece = n < sizeof buffer ? n : sizeof buffer;
    if (put(fd, buffer, piece)) return;
    n -= piece;
  }
}

static i32 named(const char *s, u32 n, u32 len) {
  if (len != n) return 0;
  for (u32 i = 0; i < n; i++) if (input[i] != (u8)s[i]) return 0;
  return 1;
}
#define IS(s) named(s, sizeof(s) - 1, len)

__attribute__((export_name("_start"))) void start(void) {
  for (;;) {
    struct { void *ptr; u32 len; } iov = {input + length, sizeof input - length};
    u32 n;
    if (fd_read(0, &iov, 1, &n) || n == 0) break;
    length += n;
  }
  u32 len = 0;
  while (len < length && input[len] != '\n') len++;
  const u8 *rest = input + len + 1;
  u32 left = len < length ? length - len - 1 : 0;

  if (IS("") || IS("ok")) PUT(1, "ok");
  else if (IS("echo")) put(1, rest, left);
  else if (IS("empty")) ;
  else if (IS("count")) decimal(++runs);
  else if (IS("fail_retry")) { put(2, rest, left); proc_exit(75); }
  else if (IS("fail_permanent")) { put(2, rest, left); proc_exit(1); }
  else if (IS("exit")) { PUT(1, "partial"); proc_exit(number(rest, left)); }
  else if (IS("trap")) __builtin_trap();
  else if (IS("div0")) decimal((i32)left / zero);
  else if (IS("oob")) decimal(*(volatile u8 *)(0xfffffff0u + left));
  else if (IS("recurse")) decimal(deeper(left));
  else if (IS("null_call")) ((void (*)(u32))(0x7fffffff + zero))(left);
  else if (IS("spin")) for (;;) zero = (i32)left;
  else if (IS("sleep")) {
    static struct { u64 user; u8 tag, pad[7]; u32 clock, pad2; u64 timeout, precision; u32 flags, pad3; } in;
    static u8 out[32];
    u32 events;
    in.timeout = 3600ull * 1000 * 1000 * 1000;
    for (;;) poll_oneoff(&in, out, 1, &events);
  }
  else if (IS("big_output")) repeat(1, number(rest, left));
  else if (IS("grow")) decimal((i32)__builtin_wasm_memory_grow(0, number(rest, left)));
  else if (IS("grow_trap")) { while ((i32)__builtin_wasm_memory_grow(0, 1) >= 0) {} __builtin_trap(); }
  else if (IS("log_echo")) put(2, rest, left);
  else if (IS("log_flood")) for (u32 i = number(rest, left); i > 0; i--) PUT(2, "line\n");
  else if (IS("random")) { random_get(buffer, 16); put(1, buffer, 16); }
  else if (IS("environ")) environment();
  else if (IS("plant")) plant();
  else if (IS("look")) look();
  else proc_exit(64);
}
