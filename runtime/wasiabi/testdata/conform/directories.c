// Directories: their listings, their removal, and that they are no files.
#include "conform.h"

enum { room = 256 };

struct entry {
  __wasi_dirent_t head;
  char name[32];
};

// list reads entries from a cookie on. It returns how many are whole, and whether these are all.
static size_t list(fd dir, __wasi_dircookie_t cookie, struct entry entries[room], bool *all) {
  uint8_t buf[room];
  size_t used = 0, n = 0;
  OK(__wasi_fd_readdir(dir, buf, room, cookie, &used));
  HOLDS(used <= room);
  *all = used < room;
  for (size_t at = 0; at + sizeof(__wasi_dirent_t) <= used; n++) {
    struct entry *e = &entries[n];
    memset(e, 0, sizeof *e);
    memcpy(&e->head, buf + at, sizeof e->head);
    at += sizeof e->head;
    if (at + e->head.d_namlen > used) break;
    HOLDS(e->head.d_namlen < sizeof e->name);
    memcpy(e->name, buf + at, e->head.d_namlen);
    at += e->head.d_namlen;
  }
  return n;
}

static const struct entry *named(const struct entry *entries, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(entries[i].name, name) == 0) return &entries[i];
  failed(__FILE_NAME__, __LINE__, name, -1);
}

static struct entry entries[room];

static void list_few(void) {
  bool all = false;
  MKDIR("d");
  fd dir = OPEN("d", HOW(.oflags = DIRECTORY));
  HOLDS(list(dir, 0, entries, &all) == 2 && all);
  const struct entry *own = named(entries, 2, ".");
  HOLDS(own->head.d_type == __WASI_FILETYPE_DIRECTORY && own->head.d_namlen == 1);
  HOLDS(own->head.d_ino == STAT(dir).ino);
  HOLDS(named(entries, 2, "..")->head.d_type == __WASI_FILETYPE_DIRECTORY);

  // A file that came after the first listing is found by one from the beginning.
  fd f = OPEN("d/f", HOW(.oflags = CREATE, .rights = RIGHT(FD_FILESTAT_GET)));
  __wasi_inode_t ino = STAT(f).ino;
  CLOSE(f);
  HOLDS(list(dir, 0, entries, &all) == 3 && all);
  named(entries, 3, ".");
  named(entries, 3, "..");
  const struct entry *file = named(entries, 3, "f");
  HOLDS(file->head.d_type == __WASI_FILETYPE_REGULAR_FILE && file->head.d_ino == ino);

  // The cookie of an entry leads to the one behind it.
  char last[32];
  memcpy(last, entries[2].name, sizeof last);
  HOLDS(list(dir, entries[1].head.d_next, entries, &all) == 1 && all);
  HOLDS(strcmp(entries[0].name, last) == 0);
}

static void list_many(void) {
  MKDIR("d");
  fd dir = OPEN("d", HOW(.oflags = DIRECTORY));
  char name[] = "d/file.00";
  for (int i = 0; i < 100; i++) {
    name[7] = '0' + i / 10;
    name[8] = '0' + i % 10;
    TOUCH(name);
  }
  bool all = false, seen[100] = {false};
  int files = 0, own = 0;
  for (__wasi_dircookie_t cookie = 0; !all;) {
    size_t n = list(dir, cookie, entries, &all);
    HOLDS(n > 0 || all);
    for (size_t i = 0; i < n; i++) {
      const char *e = entries[i].name;
      cookie = entries[i].head.d_next;
      if (e[0] == '.') {
        own++;
        continue;
      }
      HOLDS(strlen(e) == 7);
      int number = (e[5] - '0') * 10 + e[6] - '0';
      HOLDS(!seen[number]);
      seen[number] = true;
      files++;
    }
  }
  HOLDS(files == 100 && own == 2);
}

static void list_both(void) {
  list_few();
  UNLINK("d/f");
  RMDIR("d");
  list_many();
}

static void seek(void) {
  MKDIR("d");
  fd dir = OPEN("d", HOW(.oflags = DIRECTORY, .rights = RIGHT(FD_SEEK)));
  REFUSED(__wasi_fd_seek(dir, 0, __WASI_WHENCE_CUR, &(__wasi_filesize_t){0}), EISDIR);
  __wasi_fdstat_t st = FDSTAT(dir);
  HOLDS(st.fs_filetype == __WASI_FILETYPE_DIRECTORY && (st.fs_rights_base & RIGHT(FD_SEEK)) == 0);
  CLOSE(dir);
  RMDIR("d");
}

static void name_of_mount(void) {
  __wasi_prestat_t pre;
  OK(__wasi_fd_prestat_get(preopen, &pre));
  size_t n = pre.u.dir.pr_name_len;
  uint8_t name[8] = {0};
  HOLDS(n == 1);
  REFUSED(__wasi_fd_prestat_dir_name(preopen, name, 0), EINVAL, ENAMETOOLONG);
  OK(__wasi_fd_prestat_dir_name(preopen, name, n + 1));
  HOLDS(name[0] == '/' && name[1] == 0);
}

static void no_file(void) {
  HOLDS(STAT(root).filetype == __WASI_FILETYPE_DIRECTORY);
  name_of_mount();
  uint8_t buf[8] = {0};
  __wasi_iovec_t into = {buf, sizeof buf};
  __wasi_ciovec_t from = {buf, sizeof buf};
  size_t n = 0;
  __wasi_filesize_t at = 0;
  REFUSED(__wasi_fd_read(root, &into, 1, &n), EISDIR);
  REFUSED(__wasi_fd_pread(root, &into, 1, 0, &n), EISDIR);
  REFUSED(__wasi_fd_write(root, &from, 1, &n), ENOTCAPABLE, EISDIR);
  REFUSED(__wasi_fd_pwrite(root, &from, 1, 0, &n), EISDIR);
  REFUSED(__wasi_fd_seek(root, 0, __WASI_WHENCE_SET, &at), EISDIR);
  REFUSED(__wasi_fd_seek(root, 0, __WASI_WHENCE_CUR, &at), EISDIR);
  REFUSED(__wasi_fd_seek(root, 0, __WASI_WHENCE_END, &at), EISDIR);
  REFUSED(__wasi_fd_tell(root, &at), EISDIR);
  REFUSED(__wasi_fd_allocate(root, 0, 1), EISDIR);
  REFUSED(__wasi_fd_filestat_set_size(root, 0), EISDIR);
}

static void remove_nonempty(void) {
  MKDIR("d");
  MKDIR("d/e");
  REFUSED(__wasi_path_remove_directory(root, "d"), ENOTEMPTY);
  RMDIR("d/e");
  RMDIR("d");
}

static void remove_with_slash(void) {
  MKDIR("d");
  RMDIR("d");
  MKDIR("d");
  RMDIR("d/");
  TOUCH("f");
  REFUSED(__wasi_path_remove_directory(root, "f"), ENOTDIR);
  REFUSED(__wasi_path_remove_directory(root, "f/"), ENOTDIR);
  UNLINK("f");
}

// Systems that come from BSD say EPERM of a directory.
static void unlink_with_slash(void) {
  MKDIR("d");
  REFUSED(__wasi_path_unlink_file(root, "d"), EISDIR, EPERM);
  REFUSED(__wasi_path_unlink_file(root, "d/"), EISDIR, EPERM);
  RMDIR("d");
  TOUCH("f");
  REFUSED(__wasi_path_unlink_file(root, "f/"), ENOTDIR);
  UNLINK("f");
}

const struct check directory_checks[] = {
    {"directories/list", list_both},
    {"directories/seek", seek},
    {"directories/no_file", no_file},
    {"directories/remove_nonempty", remove_nonempty},
    {"directories/remove_with_slash", remove_with_slash},
    {"directories/unlink_with_slash", unlink_with_slash},
    {0},
};
