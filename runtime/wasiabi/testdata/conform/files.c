// Files that are open: reading and writing at places, flags, rights and numbers of descriptors.
#include "conform.h"

#define READ_WRITE (READ | WRITE | RIGHT(FD_SEEK) | RIGHT(FD_TELL))

static void descriptors(void) {
  // What was closed is no longer in the way of removing and making it again.
  TOUCH("f");
  OPENS("f", HOW());
  UNLINK("f");
  OPENS("f", HOW(.oflags = CREATE | EXCLUSIVE));
  UNLINK("f");
  MKDIR("d");
  OPENS("d", HOW(.oflags = DIRECTORY));
  RMDIR("d");
  MKDIR("d");
  RMDIR("d");
}

static void size_and_advice(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = READ | WRITE | RIGHT(FD_ADVISE) | RIGHT(FD_FILESTAT_GET) |
                                                   RIGHT(FD_FILESTAT_SET_SIZE) | RIGHT(FD_ALLOCATE)));
  HOLDS(STAT(f).size == 0);
  OK(__wasi_fd_filestat_set_size(f, 100));
  HOLDS(STAT(f).size == 100);
  OK(__wasi_fd_advise(f, 10, 50, __WASI_ADVICE_NORMAL));
  HOLDS(STAT(f).size == 100);
  OK(__wasi_fd_allocate(f, 100, 100));
  HOLDS(STAT(f).size == 200);
}

static void allocate(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = READ | WRITE | RIGHT(FD_ALLOCATE) | RIGHT(FD_FILESTAT_GET)));
  HOLDS(STAT(f).size == 0);
  OK(__wasi_fd_allocate(f, 0, 100));
  HOLDS(STAT(f).size == 100);
  OK(__wasi_fd_allocate(f, 10, 10)); // inside: nothing changes
  HOLDS(STAT(f).size == 100);
  OK(__wasi_fd_allocate(f, 90, 20)); // over the end
  HOLDS(STAT(f).size == 110);
}

#define PWRITES(f, list, at, want)                                                      \
  do {                                                                                  \
    size_t n_ = 0;                                                                      \
    OK(__wasi_fd_pwrite(f, list, sizeof list / sizeof list[0], at, &n_));               \
    HOLDS(n_ == (want));                                                                \
  } while (0)

// has reads a file at a place in two pieces, which don't fill up when there is less.
static void has(fd f, __wasi_filesize_t at, const char *want) {
  char one[2] = {0}, two[4] = {0}, all[6];
  __wasi_iovec_t into[] = {{(uint8_t *)one, sizeof one}, {(uint8_t *)two, sizeof two}};
  size_t n = 0;
  OK(__wasi_fd_pread(f, into, 2, at, &n));
  memcpy(all, one, sizeof one);
  memcpy(all + sizeof one, two, sizeof two);
  HOLDS(n == strlen(want) && memcmp(all, want, n) == 0);
  for (size_t i = n; i < sizeof all; i++) HOLDS(all[i] == 0);
}

static void at_places(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = READ_WRITE));
  const __wasi_ciovec_t whole[] = {{(const uint8_t *)"abcd", 4}};
  const __wasi_ciovec_t parts[] = {{(const uint8_t *)"ab", 2}, {(const uint8_t *)"CD", 2}};
  const __wasi_ciovec_t tail[] = {{(const uint8_t *)"x", 1}, {(const uint8_t *)"y", 1}};
  PWRITES(f, whole, 0, 4);
  has(f, 0, "abcd");
  PWRITES(f, parts, 0, 4);
  has(f, 0, "abCD");
  has(f, 2, "CD");
  PWRITES(f, tail, 2, 2);
  has(f, 0, "abxy");
  has(f, 4, "");
  SEEKS(f, 0, CUR, 0); // none of these moved it
}

static void seek_and_tell(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = READ_WRITE));
  __wasi_filesize_t at = -1;
  OK(__wasi_fd_tell(f, &at));
  HOLDS(at == 0);
  WRITES(f, "0123456789");
  OK(__wasi_fd_tell(f, &at));
  HOLDS(at == 10);
  SEEKS(f, -5, CUR, 5);
  SEEKS(f, 0, SET, 0);
  SEEKS(f, 1000, CUR, 1000); // behind the end
  REFUSED(__wasi_fd_seek(f, -2000, __WASI_WHENCE_CUR, &at), EINVAL);
  SEEKS(f, 0, SET, 0);
  READS(f, "0123456789");
  OK(__wasi_fd_tell(f, &at));
  HOLDS(at == 10);
}

static void unbuffered(void) {
  fd in = OPEN("f", HOW(.oflags = CREATE, .rights = READ));
  fd out = OPEN("f", HOW(.rights = WRITE));
  WRITES(out, "now");
  READS(in, "now");
}

static void append_flag(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = READ_WRITE | RIGHT(FD_FDSTAT_SET_FLAGS),
                       .fdflags = __WASI_FDFLAGS_APPEND));
  WRITES(f, "aaaa");
  SEEKS(f, 0, SET, 0);
  READS(f, "aaaa");
  SEEKS(f, 0, SET, 0);
  WRITES(f, "bbbb"); // at the end all the same
  SEEKS(f, 4, SET, 4);
  READS(f, "bbbb");

  OK(__wasi_fd_fdstat_set_flags(f, 0));
  SEEKS(f, 0, SET, 0);
  WRITES(f, "cccc");
  SEEKS(f, 0, SET, 0);
  READS(f, "ccccbbbb");
  CLOSE(f);
  HOLDS(PATHSTAT("f", 0).size == 8);
}

static void give_up_rights(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = READ_WRITE));
  WRITES(f, "abcd");
  SEEKS(f, 0, SET, 0);
  READS(f, "abcd");
  __wasi_fdstat_t st = FDSTAT(f);
  OK(__wasi_fd_fdstat_set_rights(f, st.fs_rights_base & ~(READ | WRITE), st.fs_rights_inheriting));
  __wasi_fdstat_t less = FDSTAT(f);
  HOLDS((less.fs_rights_base & (READ | WRITE)) == 0 && (less.fs_rights_base & RIGHT(FD_SEEK)) != 0);
  SEEKS(f, 0, SET, 0);
  REFUSED(read_from(f, &(char){0}, 1, &(size_t){0}), EBADF, ENOTCAPABLE);
  REFUSED(write_to(f, "x", 1, &(size_t){0}), EBADF, ENOTCAPABLE);
  REFUSED(__wasi_fd_fdstat_set_rights(f, less.fs_rights_base | READ | WRITE, less.fs_rights_inheriting), ENOTCAPABLE);
}

static void renumber(void) {
  fd from = OPEN("f", HOW(.oflags = CREATE, .rights = READ | WRITE, .fdflags = __WASI_FDFLAGS_APPEND));
  fd to = OPEN("g", HOW(.oflags = CREATE, .rights = READ));
  HOLDS(from > preopen && to > preopen);
  __wasi_fdstat_t st = FDSTAT(from);
  OK(__wasi_fd_renumber(from, to));
  REFUSED(__wasi_fd_close(from), EBADF);
  __wasi_fdstat_t moved = FDSTAT(to);
  HOLDS(st.fs_filetype == __WASI_FILETYPE_REGULAR_FILE && moved.fs_filetype == st.fs_filetype);
  HOLDS(moved.fs_flags == st.fs_flags);
  HOLDS(moved.fs_rights_base == st.fs_rights_base && moved.fs_rights_inheriting == st.fs_rights_inheriting);
  REFUSED(__wasi_fd_renumber(to, from), EBADF); // nothing is open there
  CLOSE(to);
  UNLINK("f");
  UNLINK("g");
}

const struct check file_checks[] = {
    {"files/descriptors", descriptors},
    {"files/size_and_advice", size_and_advice},
    {"files/allocate", allocate},
    {"files/at_places", at_places},
    {"files/seek_and_tell", seek_and_tell},
    {"files/unbuffered", unbuffered},
    {"files/append_flag", append_flag},
    {"files/give_up_rights", give_up_rights},
    {"files/renumber", renumber},
    {0},
};
