// What the checks share: how they are listed, what they hold calls against, and how they open files.
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <wasi/api.h>

typedef __wasi_fd_t fd;

struct check {
  const char *name; // NULL = the end of a list
  void (*run)(void);
};
extern const struct check process_checks[], stream_checks[], mount_checks[], open_checks[], directory_checks[],
    file_checks[], stat_checks[], link_checks[], rename_checks[], libc_checks[];

// root is the mount at /, opened once more; preopen is where the host put it. The program ends
// at the first expectation that doesn't hold, so nothing is closed or removed on the way there.
extern fd root;
enum { preopen = 3 };

_Noreturn void failed(const char *file, int line, const char *what, int answer);

void refused(const char *file, int line, const char *what, int answer, const int *want);

// OK wants a call to succeed, REFUSED to answer one of some errnos, HOLDS a condition to be true.
#define OK(call) refused(__FILE_NAME__, __LINE__, #call, (call), (const int[]){0, -1})
#define REFUSED(call, ...) refused(__FILE_NAME__, __LINE__, #call, (call), (const int[]){__VA_ARGS__, -1})
#define HOLDS(condition) ((condition) ? (void)0 : failed(__FILE_NAME__, __LINE__, #condition, -1))

enum { FOLLOW = 1, CREATE = 1, DIRECTORY = 2, EXCLUSIVE = 4, TRUNCATE = 8 };

#define RIGHT(name) __WASI_RIGHTS_##name
#define READ RIGHT(FD_READ)
#define WRITE RIGHT(FD_WRITE)

// how a file is opened; what isn't said is 0.
struct how {
  int follow, oflags, fdflags;
  uint64_t rights;
};
#define HOW(...) ((struct how){__VA_ARGS__})

int open_in(fd dir, const char *path, struct how how, fd *opened);
fd open_file(const char *file, int line, const char *path, struct how how);

// CANT_OPEN wants a path to be refused; OPEN returns the descriptor, which is none of the streams.
#define CANT_OPEN(path, how, ...) REFUSED(open_in(root, path, how, &(fd){0}), __VA_ARGS__)
#define OPEN(path, how) open_file(__FILE_NAME__, __LINE__, path, how)

// CLOSE, RMDIR and UNLINK see that what they are for is gone.
#define CLOSE(f)                                                \
  do {                                                          \
    fd closed_ = f;                                             \
    OK(__wasi_fd_close(closed_));                               \
    REFUSED(__wasi_fd_fdstat_get(closed_, &(__wasi_fdstat_t){0}), EBADF); \
  } while (0)
#define GONE(path) REFUSED(__wasi_path_filestat_get(root, 0, path, &(__wasi_filestat_t){0}), ENOENT)
#define RMDIR(path)                                 \
  do {                                              \
    OK(__wasi_path_remove_directory(root, path));   \
    GONE(path);                                     \
  } while (0)
#define UNLINK(path)                                \
  do {                                              \
    OK(__wasi_path_unlink_file(root, path));        \
    GONE(path);                                     \
  } while (0)

// TOUCH makes a file that is empty, OPENS wants a path to be one that can be opened.
#define TOUCH(path) CLOSE(OPEN(path, HOW(.oflags = CREATE)))
#define OPENS(path, how) CLOSE(OPEN(path, how))
#define MKDIR(path) OK(__wasi_path_create_directory(root, path))
#define SYMLINK(target, path) OK(__wasi_path_symlink(target, root, path))

static inline int write_to(fd f, const void *data, size_t n, size_t *written) {
  return __wasi_fd_write(f, &(__wasi_ciovec_t){data, n}, 1, written);
}
static inline int read_from(fd f, void *data, size_t n, size_t *got) {
  return __wasi_fd_read(f, &(__wasi_iovec_t){data, n}, 1, got);
}

// WRITES and READS want all of some bytes to go through at once.
#define WRITES(f, text)                                       \
  do {                                                        \
    size_t written_ = -1;                                     \
    OK(write_to(f, text, strlen(text), &written_));           \
    HOLDS(written_ == strlen(text));                          \
  } while (0)
#define READS(f, text)                                            \
  do {                                                            \
    char buf_[64] = {0};                                          \
    size_t got_ = -1;                                             \
    OK(read_from(f, buf_, sizeof buf_, &got_));                   \
    HOLDS(got_ == strlen(text) && memcmp(buf_, text, got_) == 0); \
  } while (0)
#define SEEKS(f, offset, whence, want)                                              \
  do {                                                                              \
    __wasi_filesize_t at_ = -1;                                                     \
    OK(__wasi_fd_seek(f, offset, __WASI_WHENCE_##whence, &at_));                    \
    HOLDS(at_ == (want));                                                           \
  } while (0)

// FDSTAT, STAT and PATHSTAT return what a call tells of a descriptor or a path.
#define FDSTAT(f) ({ __wasi_fdstat_t st_; OK(__wasi_fd_fdstat_get(f, &st_)); st_; })
#define STAT(f) ({ __wasi_filestat_t st_; OK(__wasi_fd_filestat_get(f, &st_)); st_; })
#define PATHSTAT(path, follow) ({ __wasi_filestat_t st_; OK(__wasi_path_filestat_get(root, follow, path, &st_)); st_; })
#define HAS_TYPE(path, follow, type) HOLDS(PATHSTAT(path, follow).filetype == __WASI_FILETYPE_##type)
