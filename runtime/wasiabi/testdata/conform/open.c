// Opening: which paths lead somewhere, with which flags, and what may be done with what was opened.
#include "conform.h"

// The path with its length, for those that have a NUL inside.
__attribute__((import_module("wasi_snapshot_preview1"), import_name("path_open"))) int
raw_path_open(fd, uint32_t, const char *, size_t, uint32_t, uint64_t, uint64_t, uint32_t, fd *);

static void missing(void) { CANT_OPEN("f", HOW(), ENOENT); }

static void existing(void) {
  TOUCH("f");
  CANT_OPEN("f", HOW(.oflags = CREATE | EXCLUSIVE), EEXIST);
  UNLINK("f");
  OPENS("f", HOW(.oflags = CREATE | EXCLUSIVE));
}

static void in_file(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE));
  REFUSED(open_in(f, "g", HOW(.oflags = CREATE), &(fd){0}), ENOTDIR);
}

static void nonblocking(void) { OPENS(".", HOW(.fdflags = __WASI_FDFLAGS_NONBLOCK)); }

static void paths(void) {
  MKDIR("a");
  MKDIR("a/b");
  TOUCH("a/b/f");
  OPENS("a/.//b/../../a/b/../b///./f", HOW());
  OPENS("a/b/", HOW());
  OPENS("a/b///", HOW());
  CANT_OPEN("/a/b/f", HOW(), EPERM, ENOTCAPABLE);
  CANT_OPEN("a/b/../../../a/b/f", HOW(), EPERM, ENOTCAPABLE);
  CANT_OPEN("a/b/f/", HOW(), ENOTDIR);
  CANT_OPEN("a/b/f///", HOW(), ENOTDIR);
  static const char nul[] = "a/b/f";
  REFUSED(raw_path_open(root, 0, nul, sizeof nul, 0, 0, 0, 0, &(fd){0}), EINVAL, EILSEQ, ENOENT);
  OK(raw_path_open(root, 0, nul, sizeof nul - 1, 0, 0, 0, 0, &(fd){0}));
  UNLINK("a/b/f");
  RMDIR("a/b");
  RMDIR("a");
}

static void access_of_read_only(void) {
  fd f = OPEN("f", HOW(.rights = READ));
  HOLDS((FDSTAT(f).fs_rights_base & (READ | WRITE)) == READ);
  READS(f, "");
  REFUSED(write_to(f, "x", 1, &(size_t){0}), EBADF);
  CLOSE(f);
}

static void access_of_write_only(void) {
  fd f = OPEN("f", HOW(.rights = WRITE));
  HOLDS((FDSTAT(f).fs_rights_base & (READ | WRITE)) == WRITE);
  REFUSED(read_from(f, &(char){0}, 1, &(size_t){0}), EBADF);
  WRITES(f, "first, ");
  CLOSE(f);
}

static void access_modes(void) {
  TOUCH("f");
  access_of_read_only();
  access_of_write_only();
  fd f = OPEN("f", HOW(.rights = READ | WRITE | RIGHT(FD_FILESTAT_GET)));
  HOLDS((FDSTAT(f).fs_rights_base & (READ | WRITE)) == (READ | WRITE));
  READS(f, "first, ");
  WRITES(f, "second");
  HOLDS(STAT(f).size == 13);
}

// The second open empties the file, though it only asks to read it.
static void truncating(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = WRITE));
  WRITES(f, "to be thrown away");
  CLOSE(f);
  f = OPEN("f", HOW(.oflags = CREATE | TRUNCATE, .rights = READ | WRITE));
  READS(f, "");
}

static void truncating_needs_right(void) {
  TOUCH("f");
  __wasi_fdstat_t st = FDSTAT(root);
  HOLDS(st.fs_filetype == __WASI_FILETYPE_DIRECTORY && st.fs_flags == 0);
  HOLDS((st.fs_rights_base & RIGHT(FD_FILESTAT_SET_SIZE)) == 0);
  HOLDS((st.fs_rights_base & RIGHT(PATH_FILESTAT_SET_SIZE)) != 0);
  HOLDS((st.fs_rights_inheriting & RIGHT(FD_FILESTAT_SET_SIZE)) != 0);
  OPENS("f", HOW(.oflags = TRUNCATE));

  // That of descriptors is another right, which opening doesn't need.
  uint64_t base = st.fs_rights_base, inheriting = st.fs_rights_inheriting & ~RIGHT(FD_FILESTAT_SET_SIZE);
  OK(__wasi_fd_fdstat_set_rights(root, base, inheriting));
  OPENS("f", HOW(.oflags = TRUNCATE));

  base &= ~RIGHT(PATH_FILESTAT_SET_SIZE);
  OK(__wasi_fd_fdstat_set_rights(root, base, inheriting));
  HOLDS((FDSTAT(root).fs_rights_base & RIGHT(PATH_FILESTAT_SET_SIZE)) == 0);
  CANT_OPEN("f", HOW(.oflags = TRUNCATE), EPERM, ENOTCAPABLE);
  OPENS("f", HOW());
}

const struct check open_checks[] = {
    {"open/missing", missing},
    {"open/existing", existing},
    {"open/in_file", in_file},
    {"open/nonblocking", nonblocking},
    {"open/paths", paths},
    {"open/access", access_modes},
    {"open/truncating", truncating},
    {"open/truncating_needs_right", truncating_needs_right},
    {0},
};
