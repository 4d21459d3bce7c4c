// crc32 prints the CRC-32 (as of zip, gzip and PNG) and the size of each file,
// or of the standard input without one. It knows nothing of jobhost: any C
// compiler builds it for any system that has a libc.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t table[256];

static void fill_table(void) {
  for (uint32_t n = 0; n < 256; n++) {
    uint32_t c = n;
    for (int bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
    table[n] = c;
  }
}

// check prints the line of a file; 0 = it could be read to its end.
static int check(FILE *file, const char *name) {
  static unsigned char buffer[64 * 1024];
  uint32_t crc = 0xffffffff;
  unsigned long long size = 0;
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0; size += n) {
    for (size_t i = 0; i < n; i++) crc = table[(crc ^ buffer[i]) & 0xff] ^ crc >> 8;
  }
  if (ferror(file)) {
    fprintf(stderr, "crc32: read %s: %s\n", name, strerror(errno));
    return 1;
  }
  printf("%08lx %llu %s\n", (unsigned long)(crc ^ 0xffffffff), size, name);
  return 0;
}

int main(int argc, char **argv) {
  int failed = 0;
  fill_table();
  if (argc < 2) failed = check(stdin, "-");
  for (int i = 1; i < argc; i++) {
    FILE *file = fopen(argv[i], "rb");
    if (!file) {
      fprintf(stderr, "crc32: open %s: %s\n", argv[i], strerror(errno));
      failed = 1;
      continue;
    }
    failed |= check(file, argv[i]);
    fclose(file);
  }
  if (fflush(stdout)) failed = 1;
  return failed;
}
