// Renaming: what gives way to what.
#include "conform.h"

#define RENAME(from, to)                            \
  do {                                              \
    OK(__wasi_path_rename(root, from, root, to));   \
    GONE(from);                                     \
  } while (0)
#define CANT_RENAME(from, to, ...) REFUSED(__wasi_path_rename(root, from, root, to), __VA_ARGS__)

// moved sees that a path has gone where another is, and removes that.
static void moved(bool directory) {
  CANT_OPEN("from", HOW(), ENOENT);
  if (directory) {
    OPENS("to", HOW(.oflags = DIRECTORY));
    RMDIR("to");
    return;
  }
  HAS_TYPE("to", 0, REGULAR_FILE);
  OPENS("to", HOW());
  UNLINK("to");
}

static void directories(void) {
  MKDIR("from");
  RENAME("from", "to");
  moved(true);

  MKDIR("from");
  MKDIR("to"); // an empty one gives way
  RENAME("from", "to");
  moved(true);

  MKDIR("from");
  MKDIR("to");
  TOUCH("to/f");
  CANT_RENAME("from", "to", ENOTEMPTY, EEXIST);
  CANT_RENAME("from", "to/f", ENOTDIR);
  RMDIR("from");
  UNLINK("to/f");
  RMDIR("to");
}

static void files(void) {
  TOUCH("from");
  RENAME("from", "to");
  moved(false);

  TOUCH("from");
  TOUCH("to");
  __wasi_inode_t ino = PATHSTAT("from", 0).ino;
  RENAME("from", "to");
  HOLDS(PATHSTAT("to", 0).ino == ino);
  moved(false);

  TOUCH("from");
  MKDIR("to");
  CANT_RENAME("from", "to", EISDIR, EEXIST); // os.Root or the kernel says so
  RMDIR("to");
  UNLINK("from");
}

static void both(void) {
  directories();
  files();
}

static void trailing_slashes(void) {
  MKDIR("from");
  RENAME("from/", "to");
  RENAME("to", "from/");
  RENAME("from/", "to/");
  RENAME("to", "from");
  RMDIR("from");
}

const struct check rename_checks[] = {{"renames/both", both}, {"renames/trailing_slashes", trailing_slashes}, {0}};
