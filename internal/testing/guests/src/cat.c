// A WASI command that copies its input to its output, in pieces, without a C
// library. It exits with 1 when a read fails, and with 2 when a write does.
typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))
WASI(fd_read) i32 fd_read(i32 fd, const void *iovs, u32 n, u32 *size);
WASI(fd_write) i32 fd_write(i32 fd, const void *iovs, u32 n, u32 *size);
WASI(proc_exit) _Noreturn void proc_exit(u32 code);

static u8 buffer[256 * 1024];

__attribute__((export_name("_start"))) void start(void) {
  for (;;) {
    struct { u8 *ptr; u32 len; } iov = {buffer, sizeof buffer};
    u32 n, done;
    if (fd_read(0, &iov, 1, &n)) proc_exit(1);
    if (n == 0) return;
    for (iov.len = n; iov.len > 0; iov.ptr += done, iov.len -= done)
      if (fd_write(1, &iov, 1, &done)) proc_exit(2);
  }
}
