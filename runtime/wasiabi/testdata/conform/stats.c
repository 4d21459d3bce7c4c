// What is told of files, and set: sizes, times, types.
#include "conform.h"

#include <unistd.h>

#define TIMES(flags) __WASI_FSTFLAGS_##flags

static void set_by_descriptor(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = READ | WRITE | RIGHT(FD_FILESTAT_GET) | RIGHT(FD_FILESTAT_SET_SIZE) |
                                                   RIGHT(FD_FILESTAT_SET_TIMES)));
  HOLDS(STAT(f).size == 0);
  OK(__wasi_fd_filestat_set_size(f, 100));
  __wasi_filestat_t before = STAT(f);
  HOLDS(before.size == 100);
  OK(__wasi_fd_filestat_set_times(f, before.mtim - 100, before.mtim - 100, TIMES(MTIM)));
  __wasi_filestat_t after = STAT(f);
  HOLDS(after.size == 100 && after.mtim == before.mtim - 100 && after.atim == before.atim);
}

static void exact_or_now(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = READ | RIGHT(FD_FILESTAT_SET_TIMES)));
  REFUSED(__wasi_fd_filestat_set_times(f, 100, 200, TIMES(MTIM) | TIMES(MTIM_NOW)), EINVAL);
  REFUSED(__wasi_fd_filestat_set_times(f, 100, 200, TIMES(ATIM) | TIMES(ATIM_NOW)), EINVAL);
  OK(__wasi_fd_filestat_set_times(f, 100, 200, TIMES(ATIM) | TIMES(MTIM)));
  HOLDS(PATHSTAT("f", 0).mtim == 200);
}

static void set_by_path(void) {
  HOLDS((FDSTAT(root).fs_rights_base & RIGHT(PATH_FILESTAT_GET)) != 0);
  const int flags = __WASI_FDFLAGS_APPEND | __WASI_FDFLAGS_SYNC;
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = READ | WRITE | RIGHT(PATH_FILESTAT_GET), .fdflags = flags));
  HOLDS((FDSTAT(f).fs_flags & flags) == flags);
  __wasi_filestat_t st = PATHSTAT("f", 0);
  HOLDS(st.size == 0);
  __wasi_timestamp_t past = st.mtim - 100;
  OK(__wasi_path_filestat_set_times(root, 0, "f", 0, past, TIMES(MTIM)));
  HOLDS(PATHSTAT("f", 0).mtim == past);
  REFUSED(__wasi_path_filestat_set_times(root, 0, "f", 0, past + 1, TIMES(MTIM) | TIMES(MTIM_NOW)), EINVAL);
  REFUSED(__wasi_path_filestat_set_times(root, 0, "f", 0, 0, TIMES(ATIM) | TIMES(ATIM_NOW)), EINVAL);
  HOLDS(PATHSTAT("f", 0).mtim == past);
}

static void types(void) {
  MKDIR("d");
  TOUCH("d/f");
  SYMLINK("d/f", "to_file");
  SYMLINK("d", "to_directory");
  HAS_TYPE("d", 0, DIRECTORY);
  HAS_TYPE("d", FOLLOW, DIRECTORY);
  HAS_TYPE("d/f", 0, REGULAR_FILE);
  HAS_TYPE("d/f", FOLLOW, REGULAR_FILE);
  HAS_TYPE("to_file", 0, SYMBOLIC_LINK);
  HAS_TYPE("to_file", FOLLOW, REGULAR_FILE);
  HAS_TYPE("to_directory", 0, SYMBOLIC_LINK);
  HAS_TYPE("to_directory", FOLLOW, DIRECTORY);
}

static void of_links(void) {
  HOLDS((FDSTAT(root).fs_rights_base & RIGHT(PATH_FILESTAT_GET)) != 0);
  TOUCH("f");
  SYMLINK("f", "link");
  __wasi_filestat_t file = PATHSTAT("f", 0), link = PATHSTAT("link", 0);
  HOLDS(file.size == 0 && link.ino != file.ino);

  __wasi_timestamp_t past = link.mtim - 200;
  OK(__wasi_path_filestat_set_times(root, 0, "link", 0, past, TIMES(MTIM)));
  HOLDS(PATHSTAT("link", 0).mtim == past);
  HOLDS(PATHSTAT("f", 0).mtim == file.mtim && PATHSTAT("link", FOLLOW).mtim == file.mtim);

  OK(__wasi_path_filestat_set_times(root, FOLLOW, "link", 0, past - 200, TIMES(MTIM)));
  HOLDS(PATHSTAT("f", 0).mtim == past - 200 && PATHSTAT("link", 0).mtim == past);
}

static void no_terminal(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE));
  errno = 0;
  HOLDS(isatty(f) == 0 && errno == ENOTTY);
}

const struct check stat_checks[] = {
    {"stats/set_by_descriptor", set_by_descriptor},
    {"stats/exact_or_now", exact_or_now},
    {"stats/set_by_path", set_by_path},
    {"stats/types", types},
    {"stats/of_links", of_links},
    {"stats/no_terminal", no_terminal},
    {0},
};
