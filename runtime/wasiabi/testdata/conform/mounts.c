// Descriptors that the host opened: they are found, closed, replaced and opened again like any other.
#include "conform.h"

static void close_one(void) {
  HOLDS(root > preopen);
  CLOSE(preopen);
  HOLDS(FDSTAT(root).fs_filetype == __WASI_FILETYPE_DIRECTORY);
}

static void replace(void) {
  HOLDS(root > preopen);
  __wasi_filestat_t before = STAT(root);
  OK(__wasi_fd_renumber(root, preopen));
  __wasi_filestat_t after = STAT(preopen);
  HOLDS(before.ino != 0 && before.ino == after.ino && before.dev == after.dev);
  REFUSED(__wasi_fd_fdstat_get(root, &(__wasi_fdstat_t){0}), EBADF);
  CLOSE(preopen);
}

static int again(int oflags, uint64_t base, uint64_t inheriting) {
  return __wasi_path_open(preopen, 0, ".", oflags, base, inheriting, 0, &(fd){0});
}

// Programs ask for what they know of, so all of this must be there to be inherited.
static void open_again(void) {
  __wasi_prestat_t pre;
  OK(__wasi_fd_prestat_get(preopen, &pre));
  HOLDS(pre.tag == __WASI_PREOPENTYPE_DIR && pre.u.dir.pr_name_len == 1);
  __wasi_fdstat_t st = FDSTAT(preopen);
  const uint64_t base = RIGHT(PATH_CREATE_DIRECTORY) | RIGHT(PATH_CREATE_FILE) | RIGHT(PATH_LINK_SOURCE) |
                        RIGHT(PATH_LINK_TARGET) | RIGHT(PATH_OPEN) | RIGHT(FD_READDIR) | RIGHT(PATH_READLINK) |
                        RIGHT(PATH_RENAME_SOURCE) | RIGHT(PATH_RENAME_TARGET) | RIGHT(PATH_SYMLINK) |
                        RIGHT(PATH_REMOVE_DIRECTORY) | RIGHT(PATH_UNLINK_FILE) | RIGHT(PATH_FILESTAT_GET) |
                        RIGHT(PATH_FILESTAT_SET_TIMES) | RIGHT(FD_FILESTAT_GET) | RIGHT(FD_FILESTAT_SET_TIMES);
  const uint64_t inherited = RIGHT(FD_DATASYNC) | READ | RIGHT(FD_SEEK) | RIGHT(FD_FDSTAT_SET_FLAGS) | RIGHT(FD_SYNC) |
                             RIGHT(FD_TELL) | WRITE | RIGHT(FD_ADVISE) | RIGHT(FD_ALLOCATE) | RIGHT(FD_FILESTAT_GET) |
                             RIGHT(FD_FILESTAT_SET_SIZE) | RIGHT(FD_FILESTAT_SET_TIMES) | RIGHT(POLL_FD_READWRITE);
  HOLDS((st.fs_rights_base & base) == base);
  HOLDS((st.fs_rights_inheriting & (base | inherited)) == (base | inherited));
  OK(again(0, st.fs_rights_base, st.fs_rights_inheriting));
  OK(again(0, 0, 0));
  OK(again(DIRECTORY, 0, 0));
  OK(again(DIRECTORY, READ, 0));
  REFUSED(again(DIRECTORY, READ | WRITE, 0), EISDIR);
}

const struct check mount_checks[] = {
    {"mounts/close", close_one}, {"mounts/replace", replace}, {"mounts/open_again", open_again}, {0},
};
