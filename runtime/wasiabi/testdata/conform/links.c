// Links, symbolic and hard: what they are made of, where they lead, and what isn't followed.
#include "conform.h"

static void dangling(void) {
  SYMLINK("nothing", "link");
  CANT_OPEN("link", HOW(.oflags = DIRECTORY), ENOTDIR, ELOOP);
  CANT_OPEN("link", HOW(), ELOOP);
  CANT_OPEN("link", HOW(.follow = FOLLOW), ENOENT);
  UNLINK("link");
}

static void loop(void) {
  SYMLINK("link", "link");
  CANT_OPEN("link", HOW(), ELOOP);
  CANT_OPEN("link", HOW(.follow = FOLLOW), ELOOP);
  UNLINK("link");
}

static void not_followed(void) {
  MKDIR("to");
  SYMLINK("to", "link");
  CANT_OPEN("link", HOW(.oflags = DIRECTORY), ENOTDIR, ELOOP);
  CANT_OPEN("link", HOW(), ELOOP);
  OPENS("link", HOW(.follow = FOLLOW, .oflags = DIRECTORY));
  UNLINK("link");
  RMDIR("to");

  TOUCH("to");
  SYMLINK("to", "link");
  CANT_OPEN("link", HOW(.oflags = DIRECTORY), ENOTDIR, ELOOP);
  CANT_OPEN("link", HOW(), ELOOP);
  CANT_OPEN("link", HOW(.follow = FOLLOW, .oflags = DIRECTORY), ENOTDIR);
  OPENS("link", HOW(.follow = FOLLOW));
}

static void followed(void) {
  TOUCH("to");
  SYMLINK("to", "link");
  OPENS("link", HOW(.follow = FOLLOW));
  UNLINK("link");
  UNLINK("to");

  MKDIR("to");
  SYMLINK("to", "link");
  OPENS("link", HOW(.follow = FOLLOW, .oflags = DIRECTORY));
  UNLINK("link");
  RMDIR("to");

  REFUSED(__wasi_path_symlink("/", root, "link"), EPERM, ENOTCAPABLE);
  CANT_OPEN("link", HOW(), ENOENT);
}

// A buffer that is too small has as much as fits.
static void read_target(void) {
  TOUCH("target");
  SYMLINK("target", "link");
  uint8_t buf[10] = {0};
  size_t n = 0;
  OK(__wasi_path_readlink(root, "link", buf, sizeof buf, &n));
  HOLDS(n == 6 && memcmp(buf, "target\0\0\0\0", sizeof buf) == 0);
  memset(buf, 0, sizeof buf);
  OK(__wasi_path_readlink(root, "link", buf, 4, &n));
  HOLDS(n == 4 && memcmp(buf, "targ\0\0", 6) == 0);
}

static void trailing_slashes(void) {
  REFUSED(__wasi_path_symlink("a", root, "new/"), ENOENT);
  SYMLINK("a", "new");
  UNLINK("new");
  MKDIR("d");
  REFUSED(__wasi_path_symlink("a", root, "d/"), EEXIST);
  REFUSED(__wasi_path_symlink("a", root, "d"), EEXIST);
  TOUCH("f");
  REFUSED(__wasi_path_symlink("a", root, "f/"), ENOTDIR, EEXIST);
  REFUSED(__wasi_path_symlink("a", root, "f"), EEXIST);
}

#define LINKS (READ | RIGHT(PATH_LINK_SOURCE) | RIGHT(PATH_LINK_TARGET) | RIGHT(FD_FILESTAT_GET) | RIGHT(PATH_OPEN))

static void is_same(fd f, fd dir, const char *path) {
  fd other = 0;
  OK(open_in(dir, path, HOW(.rights = LINKS), &other));
  __wasi_filestat_t one = STAT(f), two = STAT(other);
  HOLDS(memcmp(&one, &two, sizeof one) == 0 && one.nlink == 2);
  __wasi_fdstat_t own = FDSTAT(f), its = FDSTAT(other);
  HOLDS(own.fs_filetype == __WASI_FILETYPE_REGULAR_FILE && its.fs_filetype == own.fs_filetype);
  HOLDS(own.fs_flags == its.fs_flags);
  HOLDS(own.fs_rights_base == its.fs_rights_base && own.fs_rights_inheriting == its.fs_rights_inheriting);
  CLOSE(other);
  OK(__wasi_path_unlink_file(dir, path));
}

#define CANT_LINK(from, to, ...) REFUSED(__wasi_path_link(root, 0, from, root, to), __VA_ARGS__)

static void hard_in_the_way(void) {
  TOUCH("there");
  CANT_LINK("f", "there", EEXIST);
  CANT_LINK("f", "f", EEXIST);
  CANT_LINK("f", "d", EEXIST);
  CANT_LINK("d", "new", EPERM, EACCES);
  CANT_LINK("f", "new/", ENOENT);
  CANT_OPEN("new", HOW(), ENOENT);
}

// To what a link says, or to nothing, a hard link is made of the link itself.
static void hard_to_links(void) {
  const char *const targets[] = {"nothing", "link"};
  for (int i = 0; i < 2; i++) {
    SYMLINK(targets[i], "link");
    OK(__wasi_path_link(root, 0, "link", root, "new"));
    HAS_TYPE("new", 0, SYMBOLIC_LINK);
    HOLDS(PATHSTAT("new", 0).ino == PATHSTAT("link", 0).ino);
    UNLINK("new");
    UNLINK("link");
  }
  SYMLINK("nothing", "link");
  CANT_LINK("f", "link", EEXIST);
  REFUSED(__wasi_path_link(root, FOLLOW, "link", root, "new"), EINVAL, ENOENT);
}

static void hard(void) {
  fd f = OPEN("f", HOW(.oflags = CREATE, .rights = LINKS));
  OK(__wasi_path_link(root, 0, "f", root, "new"));
  is_same(f, root, "new");
  MKDIR("d");
  fd d = OPEN("d", HOW(.oflags = DIRECTORY, .rights = LINKS));
  OK(__wasi_path_link(root, 0, "f", d, "new"));
  is_same(f, d, "new");
  HOLDS(STAT(f).nlink == 1);
  hard_in_the_way();
  hard_to_links();
}

const struct check link_checks[] = {
    {"links/dangling", dangling},
    {"links/loop", loop},
    {"links/not_followed", not_followed},
    {"links/followed", followed},
    {"links/read", read_target},
    {"links/trailing_slashes", trailing_slashes},
    {"links/hard", hard},
    {0},
};
