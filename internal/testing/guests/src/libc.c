// A WASI command, built with wasi-libc. The payload is what to do: files, exit
// and a code, sleep, noop; anything else is copied in upper case.
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void check(int ok, const char *what) {
  if (ok) return;
  fputs(what, stderr);
  fputs(": ", stderr);
  fputs(strerror(errno), stderr);
  fputs("\n", stderr);
  exit(1);
}

static void put(const char *path, const char *mode, const char *text) {
  FILE *f = fopen(path, mode);
  check(f != NULL, path);
  check(fputs(text, f) >= 0, path);
  check(fclose(f) == 0, path);
}

static void has(const char *path, const char *want) {
  char text[100];
  FILE *f = fopen(path, "r");
  check(f != NULL, path);
  size_t n = fread(text, 1, sizeof text, f);
  check(feof(f) && !ferror(f), path);
  check(n == strlen(want) && memcmp(text, want, n) == 0, want);
  check(fseek(f, -1, SEEK_END) == 0 && fgetc(f) == want[n - 1], "seek");
  check(fclose(f) == 0, path);
}

// Everything happens in /data, which must be empty; a directory is left.
static void files(void) {
  struct stat st, other;
  char text[100];
  put("/data/a", "w", "one\n");
  put("/data/a", "a", "two\n");
  has("/data/a", "one\ntwo\n");
  check(stat("/data/a", &st) == 0 && st.st_size == 8 && S_ISREG(st.st_mode), "stat");
  check(mkdir("/data/dir", 0777) == 0, "mkdir");
  check(mkdir("/data/dir", 0777) != 0 && errno == EEXIST, "mkdir twice");
  check(rename("/data/a", "/data/dir/b") == 0, "rename");
  check(stat("/data/a", &st) != 0 && errno == ENOENT, "stat of what is gone");
  check(link("/data/dir/b", "/data/dir/c") == 0, "link");
  check(stat("/data/dir/b", &st) == 0 && stat("/data/dir/c", &other) == 0, "stat");
  check(st.st_ino == other.st_ino && st.st_nlink == 2, "same file");
  check(symlink("dir/b", "/data/link") == 0, "symlink");
  check(lstat("/data/link", &st) == 0 && S_ISLNK(st.st_mode), "lstat");
  check(readlink("/data/link", text, sizeof text) == 5, "readlink");
  has("/data/link", "one\ntwo\n");
  check(truncate("/data/dir/b", 4) == 0, "truncate");
  has("/data/dir/c", "one\n");

  int n = 0;
  DIR *d = opendir("/data/dir");
  check(d != NULL, "opendir");
  for (struct dirent *e; (e = readdir(d)) != NULL; n++) {
    if (e->d_name[0] != '.') check(e->d_type == DT_REG && e->d_ino == other.st_ino, "entry");
  }
  check(n == 4, "entries");
  rewinddir(d);
  check(readdir(d) != NULL, "rewinddir");
  check(closedir(d) == 0, "closedir");

  int fd = open("/data/dir/b", O_RDWR);
  check(fd >= 0, "open");
  check(pwrite(fd, "ONE", 3, 0) == 3 && pread(fd, text, 2, 1) == 2 && text[0] == 'N', "pread");
  struct timespec times[2] = {{1000000000, 5}, {1000000001, 7}};
  check(futimens(fd, times) == 0 && fstat(fd, &st) == 0, "futimens");
  check(st.st_mtim.tv_sec == 1000000001 && st.st_mtim.tv_nsec == 7, "mtime");
  check(fsync(fd) == 0 && close(fd) == 0, "close");

  check(open("/data/../etc/passwd", O_RDONLY) < 0, "escape");
  check(unlink("/data/dir") != 0, "unlink a directory");
  check(rmdir("/data/dir") != 0 && errno == ENOTEMPTY, "rmdir");
  check(unlink("/data/dir/c") == 0 && unlink("/data/link") == 0, "unlink");
  puts("files: ok");
}

static void sleep_a_little(void) {
  struct timespec before, after, ms = {0, 2000000};
  clock_gettime(CLOCK_MONOTONIC, &before);
  check(nanosleep(&ms, NULL) == 0, "nanosleep");
  clock_gettime(CLOCK_MONOTONIC, &after);
  long long ns = (after.tv_sec - before.tv_sec) * 1000000000ll + after.tv_nsec - before.tv_nsec;
  check(ns >= 2000000, "slept too short");
  puts("slept");
}

int main(int argc, char **argv) {
  static char text[64 << 10];
  check(argc > 0 && argv[0] != NULL, "arguments");
  size_t n = fread(text, 1, sizeof text - 1, stdin);
  if (strcmp(text, "noop") == 0) return 0;
  if (strcmp(text, "files") == 0) {
    files();
  } else if (strcmp(text, "sleep") == 0) {
    sleep_a_little();
  } else if (strncmp(text, "exit ", 5) == 0) {
    fputs("about to exit\n", stderr);
    exit(atoi(text + 5));
  } else {
    for (size_t i = 0; i < n; i++) putchar(toupper((unsigned char)text[i]));
  }
  return 0;
}
