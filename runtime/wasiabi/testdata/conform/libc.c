// The same by way of a libc, as most programs do it. The host puts files into given/: "text" holds
// 0123456789, and "two" the files one and two. Checks whose name begins with bare/ find no mount.
#include "conform.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void resolution(clockid_t clock) {
  struct timespec step = {-1, -1};
  HOLDS(clock_getres(clock, &step) == 0);
  HOLDS(step.tv_sec == 0 && step.tv_nsec > 0);
}
static void monotonic_resolution(void) { resolution(CLOCK_MONOTONIC); }
static void realtime_resolution(void) { resolution(CLOCK_REALTIME); }

static void monotonic_time(void) {
  struct timespec first, second;
  HOLDS(clock_gettime(CLOCK_MONOTONIC, &first) == 0 && clock_gettime(CLOCK_MONOTONIC, &second) == 0);
  HOLDS(first.tv_sec > 0 || first.tv_nsec > 0);
  HOLDS(first.tv_sec < second.tv_sec || (first.tv_sec == second.tv_sec && first.tv_nsec <= second.tv_nsec));
}

static void realtime(void) {
  struct timespec now;
  HOLDS(clock_gettime(CLOCK_REALTIME, &now) == 0);
  HOLDS(now.tv_sec > 1700000000); // this was written later
}

static void listing(void) {
  int dir = open("given/two", O_RDONLY | O_DIRECTORY);
  HOLDS(dir >= 0);
  DIR *d = fdopendir(dir);
  HOLDS(d != NULL);
  ino_t one = 0, two = 0;
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    struct stat st;
    HOLDS(fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == e->d_ino);
    ino_t *seen = strcmp(e->d_name, "one") == 0 ? &one : &two;
    HOLDS(*seen == 0 && (seen == &one || strcmp(e->d_name, "two") == 0));
    *seen = e->d_ino;
  }
  HOLDS(closedir(d) == 0 && one != 0 && two != 0 && one != two);
}

static void fopen_given(void) {
  FILE *f = fopen("given/text", "r");
  HOLDS(f != NULL && fgetc(f) == '0' && fclose(f) == 0);
}

static void fopen_nothing(void) {
  HOLDS(fopen("given/text", "r") == NULL);
  HOLDS(errno == ENOTCAPABLE || errno == ENOENT);
  // The libc knows of no mount and asks nobody; no descriptor leads there either.
  for (fd dir = 0; dir < 64; dir++) REFUSED(open_in(dir, "given/text", HOW(), &(fd){0}), dir < preopen ? ENOTDIR : EBADF);
}

static void seek(void) {
  FILE *f = fopen("given/text", "r");
  HOLDS(f != NULL);
  char buf[4];
  HOLDS(fread(buf, 1, 4, f) == 4 && fflush(f) == 0); // which gives back what was read ahead
  HOLDS(lseek(fileno(f), 0, SEEK_CUR) == 4);
  HOLDS(fread(buf, 1, 1, f) == 1 && buf[0] == '4' && fflush(f) == 0);
  HOLDS(lseek(fileno(f), 0, SEEK_CUR) == 5);
  HOLDS(lseek(fileno(f), 0, SEEK_SET) == 0);
  HOLDS(lseek(fileno(f), 0, SEEK_END) == 10);
}

static void read_at(void) {
  int f = open("given/text", O_RDONLY);
  HOLDS(f >= 0);
  char buf[3];
  HOLDS(pread(f, buf, 3, 4) == 3 && memcmp(buf, "456", 3) == 0);
  HOLDS(lseek(f, 0, SEEK_CUR) == 0 && close(f) == 0);
}

static void write_at(void) {
  HOLDS(access("f", F_OK) != 0);
  int f = open("f", O_WRONLY | O_CREAT, 0666);
  HOLDS(f >= 0);
  HOLDS(pwrite(f, "a long sentence", 15, 0) == 15);
  HOLDS(pwrite(f, "word", 4, 2) == 4 && close(f) == 0);
  f = open("f", O_RDONLY);
  char buf[20];
  HOLDS(f >= 0 && read(f, buf, sizeof buf) == 15 && memcmp(buf, "a word sentence", 15) == 0);
  HOLDS(close(f) == 0 && remove("f") == 0 && access("f", F_OK) != 0);
}

// What is written at a place goes there by POSIX, and to the end on Linux.
static void write_at_and_append(void) {
  int f = open("f", O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0666);
  HOLDS(f >= 0);
  HOLDS(write(f, "ab", 2) == 2);
  HOLDS(lseek(f, 0, SEEK_SET) == 0 && write(f, "cd", 2) == 2);
  HOLDS(lseek(f, 0, SEEK_CUR) == 4);
  HOLDS(pwrite(f, "efg", 3, 0) == 3);
  HOLDS(lseek(f, 0, SEEK_CUR) == 4);
  off_t end = lseek(f, 0, SEEK_END);
  HOLDS(end == 4 || end == 7);
}

static void shutdown_nothing(void) { HOLDS(shutdown(preopen, SHUT_RD) != 0 && errno == EBADF); }
static void shutdown_output(void) { HOLDS(shutdown(STDOUT_FILENO, SHUT_RD) != 0 && errno == ENOTSOCK); }

static void inodes(void) {
  struct stat one, two;
  HOLDS(fstat(open("given/two/one", O_RDONLY), &one) == 0 && fstat(open("given/two/two", O_RDONLY), &two) == 0);
  HOLDS(one.st_dev == two.st_dev && one.st_ino != two.st_ino);
}

const struct check libc_checks[] = {
    {"libc/monotonic_resolution", monotonic_resolution},
    {"libc/realtime_resolution", realtime_resolution},
    {"libc/monotonic_time", monotonic_time},
    {"libc/realtime", realtime},
    {"libc/listing", listing},
    {"libc/fopen", fopen_given},
    {"bare/fopen", fopen_nothing},
    {"libc/seek", seek},
    {"libc/read_at", read_at},
    {"libc/write_at", write_at},
    {"libc/write_at_and_append", write_at_and_append},
    {"bare/shutdown", shutdown_nothing},
    {"libc/shutdown", shutdown_output},
    {"libc/inodes", inodes},
    {0},
};
