package wasiabi_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// rename, link and symlink of paths in two directories.
func (b *box) rename(from uint32, old string, to uint32, name string) wasiabi.Errno {
	return b.path("path_rename", from, old, uint64(to), b.put([]byte(name)), uint64(len(name)))
}

func (b *box) link(from uint32, old string, to uint32, name string) wasiabi.Errno {
	return b.call("path_link", uint64(from), 0, b.put([]byte(old)), uint64(len(old)), uint64(to), b.put([]byte(name)), uint64(len(name)))
}

func (b *box) symlink(target string, fd uint32, name string) wasiabi.Errno {
	return b.call("path_symlink", b.put([]byte(target)), uint64(len(target)), uint64(fd), b.put([]byte(name)), uint64(len(name)))
}

// paths returns what is in a directory.
func paths(t testing.TB, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." {
			all = append(all, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		do    func(b *box) wasiabi.Errno
		errno wasiabi.Errno
		left  string // "" = as before
	}{
		{"mkdir", func(b *box) wasiabi.Errno { return b.path("path_create_directory", mountFD, "new/") }, wasiabi.OK, "d d/f e f new"},
		{"mkdir, exists", func(b *box) wasiabi.Errno { return b.path("path_create_directory", mountFD, "d") }, wasiabi.EEXIST, ""},
		{"mkdir, no parent", func(b *box) wasiabi.Errno { return b.path("path_create_directory", mountFD, "x/y") }, wasiabi.ENOENT, ""},
		{"rmdir", func(b *box) wasiabi.Errno { return b.path("path_remove_directory", mountFD, "e") }, wasiabi.OK, "d d/f f"},
		{"rmdir, full", func(b *box) wasiabi.Errno { return b.path("path_remove_directory", mountFD, "d") }, wasiabi.ENOTEMPTY, ""},
		{"rmdir, a file", func(b *box) wasiabi.Errno { return b.path("path_remove_directory", mountFD, "f") }, wasiabi.ENOTDIR, ""},
		{"rmdir, the mount", func(b *box) wasiabi.Errno { return b.path("path_remove_directory", mountFD, ".") }, wasiabi.EINVAL, ""},
		{"unlink", func(b *box) wasiabi.Errno { return b.path("path_unlink_file", mountFD, "f") }, wasiabi.OK, "d d/f e"},
		{"unlink, a directory", func(b *box) wasiabi.Errno { return b.path("path_unlink_file", mountFD, "e") }, wasiabi.EISDIR, ""},
		{"unlink, nothing", func(b *box) wasiabi.Errno { return b.path("path_unlink_file", mountFD, "x") }, wasiabi.ENOENT, ""},
		{"rename", func(b *box) wasiabi.Errno { return b.rename(mountFD, "f", mountFD, "e/g") }, wasiabi.OK, "d d/f e e/g"},
		{"rename over a file", func(b *box) wasiabi.Errno { return b.rename(mountFD, "f", mountFD, "d/f") }, wasiabi.OK, "d d/f e"},
		{"rename over an empty directory", func(b *box) wasiabi.Errno { return b.rename(mountFD, "d", mountFD, "e") }, wasiabi.OK, "e e/f f"},
		{"rename over a full directory", func(b *box) wasiabi.Errno { return b.rename(mountFD, "e", mountFD, "d") }, wasiabi.ENOTEMPTY, ""},
		{"rename a directory to itself", func(b *box) wasiabi.Errno { return b.rename(mountFD, "e", mountFD, "./e") }, wasiabi.OK, ""},
		{"rename into itself", func(b *box) wasiabi.Errno { return b.rename(mountFD, "d", mountFD, "d/x") }, wasiabi.EINVAL, ""},
		{"rename into itself, over a directory", func(b *box) wasiabi.Errno {
			b.path("path_create_directory", mountFD, "e/x")
			return b.rename(mountFD, "e", mountFD, "e/x")
		}, wasiabi.EINVAL, "d d/f e e/x f"},
		{"rename a file over a directory", func(b *box) wasiabi.Errno { return b.rename(mountFD, "f", mountFD, "e") }, wasiabi.EISDIR, ""},
		{"rename a directory over a file", func(b *box) wasiabi.Errno { return b.rename(mountFD, "e", mountFD, "f") }, wasiabi.ENOTDIR, ""},
		{"link", func(b *box) wasiabi.Errno { return b.link(mountFD, "f", mountFD, "g") }, wasiabi.OK, "d d/f e f g"},
		{"link, exists", func(b *box) wasiabi.Errno { return b.link(mountFD, "f", mountFD, "d") }, wasiabi.EEXIST, ""},
		{"link a directory", func(b *box) wasiabi.Errno { return b.link(mountFD, "d", mountFD, "g") }, wasiabi.EPERM, ""},
		{"symlink", func(b *box) wasiabi.Errno { return b.symlink("../f", mountFD, "e/l") }, wasiabi.OK, "d d/f e e/l f"},
		{"symlink, exists", func(b *box) wasiabi.Errno { return b.symlink("f", mountFD, "d") }, wasiabi.EEXIST, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, dir := mounted(t, wasiabi.Config{})
			tree(t, dir, map[string]string{"f": "", "d/f": "", "e/": ""})
			if got := tt.do(b); got != tt.errno {
				t.Errorf("errno %d, want %d", got, tt.errno)
			}
			want := tt.left
			if want == "" {
				want = "d d/f e f"
			}
			if got := paths(t, dir); got != want {
				t.Errorf("left: %s, want %s", got, want)
			}
		})
	}
}

// TestTwoDirectories moves files between directories that are open.
func TestTwoDirectories(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	b, dir := mounted(t, wasiabi.Config{Mounts: []wasiabi.Mount{{Host: other, Guest: "/other"}}})
	tree(t, dir, map[string]string{"a/f": "", "b/c/": ""})
	a, c := b.mustOpen("a", opening{rights: readOnly}), b.mustOpen("b/c", opening{rights: readOnly})
	if e := b.link(a, "f", c, "hard"); e != wasiabi.OK {
		t.Errorf("link: errno %d", e)
	}
	if e := b.rename(a, "f", c, "g"); e != wasiabi.OK {
		t.Errorf("rename: errno %d", e)
	}
	if got := paths(t, dir); got != "a b b/c b/c/g b/c/hard" {
		t.Error(got)
	}
	if e := b.rename(c, "../x", a, "f"); e != wasiabi.EPERM {
		t.Errorf("rename from above: errno %d", e)
	}
	if e := b.rename(c, "g", mountFD+1, "g"); e != wasiabi.EXDEV {
		t.Errorf("rename to another mount: errno %d", e)
	}
	// A directory that has moved stays the same for open descriptors.
	if e := b.rename(mountFD, "b/c", mountFD, "moved"); e != wasiabi.OK {
		t.Fatalf("rename: errno %d", e)
	}
	if _, e := b.open(c, "g", opening{}); e != wasiabi.OK {
		t.Errorf("open in the moved directory: errno %d", e)
	}
	if e := b.rename(c, "g", a, "g"); e != wasiabi.EXDEV {
		t.Errorf("rename from the moved directory: errno %d", e)
	}
}

func TestReadlink(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	tree(t, dir, map[string]string{"l": "->some/where", "f": ""})
	for n, want := range map[uint64]string{0: "", 4: "some", 10: "some/where", 100: "some/where"} {
		if e := b.path("path_readlink", mountFD, "l", 4096, n, result); e != wasiabi.OK || string(b.memory.b[4096:][:b.u32()]) != want {
			t.Errorf("%d bytes: errno %d, %d bytes", n, e, b.u32())
		}
	}
	if e := b.path("path_readlink", mountFD, "f", 4096, 10, result); e != wasiabi.EINVAL {
		t.Errorf("of a file: errno %d", e)
	}
}

func TestPreopens(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	b, _ := mounted(t, wasiabi.Config{Mounts: []wasiabi.Mount{{Root: root, Guest: "/given/"}}})
	for fd, want := range map[uint64]string{mountFD: "/data", mountFD + 1: "/given"} {
		b.must("fd_prestat_get", fd, result)
		n := b.u64() >> 32
		b.must("fd_prestat_dir_name", fd, 2048, n)
		if got := string(b.memory.b[2048:][:n]); got != want {
			t.Errorf("mount %q, want %q", got, want)
		}
		b.want(wasiabi.ENAMETOOLONG, "fd_prestat_dir_name", fd, 2048, n-1)
	}
	for _, fd := range []uint64{0, 1, 2, mountFD + 2, 1<<32 - 1} {
		b.want(wasiabi.EBADF, "fd_prestat_get", fd, result)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := root.Stat("."); err != nil {
		t.Errorf("the caller's root was closed: %v", err)
	}
}
