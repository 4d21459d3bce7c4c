// A WASI command that checks what its host does. The payload is the name of a check, or "list" for
// all names. It exits with 1 where an expectation doesn't hold, which it says on standard error.
#include "conform.h"

#include <stdlib.h>
#include <unistd.h>

fd root = -1;

static const struct check *const lists[] = {process_checks,   stream_checks, mount_checks, open_checks,
                                            directory_checks, file_checks,   stat_checks,  link_checks,
                                            rename_checks,    libc_checks};

static void say(int out, const char *text) {
  if (write(out, text, strlen(text)) < 0) exit(2);
}

static void say_number(int out, unsigned n) {
  char digits[12] = {0};
  char *at = digits + sizeof digits - 1;
  do *--at = '0' + n % 10;
  while ((n /= 10) > 0);
  say(out, at);
}

_Noreturn void failed(const char *file, int line, const char *what, int answer) {
  say(2, file);
  say(2, ":");
  say_number(2, line);
  say(2, ": ");
  say(2, what);
  say(2, answer < 0 ? " does not hold" : " answers errno ");
  if (answer >= 0) say_number(2, answer);
  say(2, "\n");
  exit(1);
}

void refused(const char *file, int line, const char *what, int answer, const int *want) {
  for (; *want != -1; want++)
    if (answer == *want) return;
  failed(file, line, what, answer);
}

int open_in(fd dir, const char *path, struct how how, fd *opened) {
  return __wasi_path_open(dir, how.follow, path, how.oflags, how.rights, 0, how.fdflags, opened);
}

fd open_file(const char *file, int line, const char *path, struct how how) {
  fd opened = 0;
  int answer = open_in(root, path, how, &opened);
  if (answer != 0 || opened < preopen) failed(file, line, path, answer);
  return opened;
}

// open_root opens the mount at / with all rights that it gives.
static void open_root(void) {
  __wasi_prestat_t pre;
  for (fd f = preopen; __wasi_fd_prestat_get(f, &pre) == 0; f++) {
    char name[2] = {0};
    if (pre.u.dir.pr_name_len != 1) continue;
    OK(__wasi_fd_prestat_dir_name(f, (uint8_t *)name, 1));
    if (name[0] != '/') continue;
    __wasi_fdstat_t st = FDSTAT(f);
    OK(__wasi_path_open(f, 0, ".", DIRECTORY, st.fs_rights_base, st.fs_rights_inheriting, 0, &root));
    return;
  }
}

int main(void) {
  char name[100] = {0};
  if (read(0, name, sizeof name - 1) < 0) failed("main.c", __LINE__, "read(0)", errno);
  open_root();
  bool list = strcmp(name, "list") == 0;
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
    for (const struct check *c = lists[i]; c->name; c++) {
      if (list) {
        say(1, c->name);
        say(1, "\n");
      } else if (strcmp(c->name, name) == 0) {
        c->run();
        return 0;
      }
    }
  if (!list) failed(name, 0, "the check of that name", -1);
  return 0;
}
