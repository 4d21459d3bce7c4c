package wasiabi_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// escapes are paths out of a mount whose secret lies beside it.
var escapes = []string{
	"../secret", "../../../../../../../../etc/passwd", "/etc/passwd", "/", "//etc/passwd", "..", "../", "d/../../secret",
	"/proc/self/environ", "out", "out/", "outdir/secret", "absolute", "proc", "proc/environ", "chain", "d/up/secret",
	"./../secret", "d/./.././../secret", "../mount/../secret",
}

// TestNoEscape is attack G20: no function follows a path out of a mount.
func TestNoEscape(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	tree(t, above, map[string]string{
		"secret": "canary", "dir/secret": "canary", "mount/d/x": "",
		"mount/out": "->../secret", "mount/outdir": "->../dir", "mount/absolute": "->" + above + "/secret",
		"mount/proc": "->/proc/self", "mount/chain": "->d/up/secret", "mount/d/up": "->../..",
	})
	before := paths(t, above)
	b := newBox(t, wasiabi.Config{Mounts: []wasiabi.Mount{{Host: above + "/mount", Guest: "/"}}})
	for _, path := range escapes {
		for _, o := range []opening{{}, {rights: readOnly}, {oflags: create}, {oflags: create | truncate}, {rights: readOnly, oflags: directory}} {
			fd, e := b.open(mountFD, path, o)
			if e == wasiabi.OK {
				t.Errorf("opened %s as %d", path, fd)
			}
		}
		at, n := b.put([]byte(path)), uint64(len(path))
		inside := b.put([]byte("new"))
		for name, e := range map[string]wasiabi.Errno{
			"stat":         b.call("path_filestat_get", mountFD, follow, at, n, heap*32),
			"times":        b.call("path_filestat_set_times", mountFD, follow, at, n, 0, 0, 10),
			"create below": b.path("path_create_directory", mountFD, path+"/new"),
			"rename into":  b.rename(mountFD, "d/x", mountFD, path+"/new"),
			"rename from":  b.rename(mountFD, path+"/secret", mountFD, "new"),
			"link into":    b.link(mountFD, "d/x", mountFD, path+"/new"),
			"link from":    b.call("path_link", mountFD, 0, b.put([]byte(path+"/secret")), n+7, mountFD, inside, 3),
			"unlink":       b.path("path_unlink_file", mountFD, path+"/secret"),
			"rmdir":        b.path("path_remove_directory", mountFD, path+"/dir"),
			"readlink":     b.path("path_readlink", mountFD, path+"/exe", 4096, 100, result),
			"symlink into": b.symlink("d", mountFD, path+"/new"),
		} {
			if e == wasiabi.OK {
				t.Errorf("%s by %s worked", name, path)
			}
		}
	}
	if after := paths(t, above); after != before {
		t.Errorf("there are now %s", after)
	}
}

// TestNoPlantedLinks: links that lead out of the mount aren't created, since
// the operator's tools would follow them.
func TestNoPlantedLinks(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	tree(t, dir, map[string]string{"d/e/": ""})
	sub := b.mustOpen("d", opening{rights: readOnly})
	for target, fd := range map[string]uint32{"/etc/passwd": mountFD, "..": mountFD, "d/../../x": mountFD, "../../x": sub} {
		if e := b.symlink(target, fd, "l"); e != wasiabi.EPERM {
			t.Errorf("link to %s: errno %d", target, e)
		}
	}
	if e := b.symlink("../x", sub, "l"); e != wasiabi.OK {
		t.Errorf("link to ../x below the mount: errno %d", e)
	}
}

// TestNoMovedLinks: nor are links moved, or renamed, to where they lead out, by
// themselves or with their folder. Links to folders don't hide the depth of a name.
func TestNoMovedLinks(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	tree(t, dir, map[string]string{"a/b/c/": "", "a/other/": ""})
	for name, target := range map[string]string{"a/b/l": "../../x", "a/b/c/l": "../../x", "a/b/up": "../..", "here": "."} {
		if e := b.symlink(target, mountFD, name); e != wasiabi.OK {
			t.Fatalf("link %s to %s: errno %d", name, target, e)
		}
	}
	sub := b.mustOpen("a", opening{rights: readOnly})
	for what, e := range map[string]wasiabi.Errno{
		"a link":                      b.rename(mountFD, "a/b/l", mountFD, "planted"),
		"a link, from another folder": b.rename(sub, "b/l", mountFD, "planted"),
		"a second name":               b.link(mountFD, "a/b/l", mountFD, "planted"),
		"a folder with a link":        b.rename(mountFD, "a/b", mountFD, "b"),
		"a folder with one below":     b.rename(sub, "b/c", mountFD, "c"),
		"a link by way of a link":     b.symlink("../../x", mountFD, "a/b/up/planted"),
		"a way that climbs later":     b.symlink("here/../x", mountFD, "planted"),
	} {
		if e != wasiabi.EPERM {
			t.Errorf("%s: errno %d", what, e)
		}
	}
	for what, e := range map[string]wasiabi.Errno{
		"a link as deep":   b.rename(mountFD, "a/b/l", mountFD, "a/other/l"),
		"a folder as deep": b.rename(mountFD, "a/b/c", mountFD, "a/other/c"),
	} {
		if e != wasiabi.OK {
			t.Errorf("%s: errno %d", what, e)
		}
	}
}

// TestOddPaths: names that Linux doesn't accept.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	for path, want := range map[string]wasiabi.Errno{
		"":                                 wasiabi.ENOENT,
		"a\x00b":                           wasiabi.EINVAL,
		"\x00":                             wasiabi.EINVAL,
		strings.Repeat("n", 256):           wasiabi.ENAMETOOLONG,
		strings.Repeat("n", 4097):          wasiabi.ENAMETOOLONG,
		strings.Repeat("m/", 2000) + "n":   wasiabi.ENOENT,
		strings.Repeat("./", 2000) + "n":   wasiabi.OK,
		strings.Repeat("../", 1000) + "n":  wasiabi.EPERM,
		"new\nline\x1b[31m":                wasiabi.OK,
		"not UTF-8 \xff":                   wasiabi.OK,
		`back\slash`:                       wasiabi.OK,
		"CON":                              wasiabi.OK,
		strings.Repeat("d/../", 500) + "x": wasiabi.ENOENT,
	} {
		b.wantOpen(want, path, opening{oflags: create})
		b.want(wasiabi.EFAULT, "path_create_directory", mountFD, 65000, 1000)
	}
	b.want(wasiabi.ENAMETOOLONG, "path_create_directory", mountFD, 0, 1<<32-1)
	if got := len(strings.Fields(paths(t, dir))); got == 0 {
		t.Error("nothing was made")
	}
}

// TestReadOnly: a read-only mount refuses every kind of change.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	tree(t, dir, map[string]string{"f": "text", "d/": "", "l": "->f"})
	b := newBox(t, wasiabi.Config{Mounts: []wasiabi.Mount{
		{Host: dir, Guest: "/ro", ReadOnly: true},
		{Host: other, Guest: "/rw"},
	}})
	const rw = mountFD + 1
	before, _ := os.Stat(filepath.Join(dir, "f"))
	for _, o := range []opening{{}, {rights: writeRight}, {rights: readOnly, oflags: truncate}, {rights: readOnly, oflags: create}, {rights: writeRight, fdflags: appending}} {
		b.wantOpen(wasiabi.EROFS, "f", o)
		b.wantOpen(wasiabi.EROFS, "l", o)
	}
	b.wantOpen(wasiabi.EROFS, "new", opening{oflags: create})
	sub := b.mustOpen("d", opening{rights: allRights &^ writeRight})
	fd := b.mustOpen("f", opening{rights: allRights &^ writeRight})
	f := b.put([]byte("f"))
	for name, e := range map[string]wasiabi.Errno{
		"mkdir":          b.path("path_create_directory", mountFD, "new"),
		"mkdir below":    b.path("path_create_directory", sub, "new"),
		"rmdir":          b.path("path_remove_directory", mountFD, "d"),
		"unlink":         b.path("path_unlink_file", mountFD, "f"),
		"rename":         b.rename(mountFD, "f", mountFD, "g"),
		"rename out":     b.rename(mountFD, "f", rw, "g"),
		"rename in":      b.rename(rw, "f", mountFD, "g"),
		"link":           b.link(mountFD, "f", mountFD, "g"),
		"link out":       b.link(mountFD, "f", rw, "g"),
		"symlink":        b.symlink("f", mountFD, "g"),
		"times":          b.call("path_filestat_set_times", mountFD, 0, f, 1, 0, 0, 10),
		"times of mount": b.call("fd_filestat_set_times", mountFD, 0, 0, 10),
	} {
		if e != wasiabi.EROFS {
			t.Errorf("%s: errno %d", name, e)
		}
	}
	for name, e := range map[string]wasiabi.Errno{
		"write":    b.call("fd_write", uint64(fd), b.iovecs("x"), 1, result),
		"pwrite":   b.call("fd_pwrite", uint64(fd), b.iovecs("x"), 1, 0, result),
		"size":     b.call("fd_filestat_set_size", uint64(fd), 0),
		"allocate": b.call("fd_allocate", uint64(fd), 0, 10),
		"times":    b.call("fd_filestat_set_times", uint64(fd), 0, 0, 10),
		"rights":   b.call("fd_fdstat_set_rights", uint64(fd), allRights, allRights),
	} {
		if e != wasiabi.EBADF && e != wasiabi.ENOTCAPABLE {
			t.Errorf("%s: errno %d", name, e)
		}
	}
	after, _ := os.Stat(filepath.Join(dir, "f"))
	if got := paths(t, dir); got != "d f l" || content(t, dir, "f") != "text" || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("there are %s", got)
	}
}

// TestManyFiles: descriptors are limited, and no file is created without one.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{MaxOpen: 10})
	for i := range 10_000 {
		want := wasiabi.OK
		if i >= 10-mountFD-1 {
			want = wasiabi.EMFILE
		}
		b.wantOpen(want, "f"+string(rune('a'+min(i, 20))), opening{oflags: create})
	}
	if got := len(strings.Fields(paths(t, dir))); got != 6 {
		t.Errorf("%d files", got)
	}
	b.must("fd_close", 5)
	if fd := b.mustOpen("fa", opening{}); fd != 5 {
		t.Errorf("the lowest that is free is %d, want 5", fd)
	}
	b.End()
	if open := openFiles(t, dir); open != 1 {
		t.Errorf("%d files are left open", open)
	}
}

// TestHugeBuffers: nothing is allocated for what a guest merely claims.
func TestHugeBuffers(t *testing.T) {
	t.Parallel()
	b, _ := mounted(t, wasiabi.Config{})
	fd := uint64(b.mustOpen("f", opening{oflags: create}))
	overlapping := make([]byte, 0, 1024*8)
	for range 1024 {
		overlapping = binary.LittleEndian.AppendUint32(overlapping, 0)
		overlapping = binary.LittleEndian.AppendUint32(overlapping, 4096)
	}
	list := b.put(overlapping)
	b.must("fd_write", fd, list, 1024, result) // 4 MiB from a page
	if n := b.u32(); n != 4<<20 {
		t.Errorf("wrote %d", n)
	}
	for name, e := range map[string]wasiabi.Errno{
		"too many":     b.call("fd_write", fd, list, 1025, result),
		"most":         b.call("fd_write", fd, list, math.MaxUint32, result),
		"wrapping":     b.call("fd_write", fd, list, 1<<29, result),
		"read":         b.call("fd_read", fd, list, math.MaxUint32, result),
		"pread":        b.call("fd_pread", fd, list, 1<<29+1, 0, result),
		"pwrite":       b.call("fd_pwrite", fd, list, 1<<29+1, 0, result),
		"pwrite, -1":   b.call("fd_pwrite", fd, list, 1, math.MaxUint64, result),
		"pread, -1":    b.call("fd_pread", fd, list, 1, math.MaxUint64, result),
		"seek, -1":     b.call("fd_seek", fd, math.MaxUint64, 0, result),
		"seek, whence": b.call("fd_seek", fd, 0, 3, result),
		"allocate":     b.call("fd_allocate", fd, math.MaxUint64, 1),
		"allocate 0":   b.call("fd_allocate", fd, 0, 0),
		"size":         b.call("fd_filestat_set_size", fd, math.MaxUint64),
	} {
		if e != wasiabi.EINVAL {
			t.Errorf("%s: errno %d", name, e)
		}
	}
	b.want(wasiabi.EFBIG, "fd_pwrite", fd, list, 1, math.MaxInt64, result)
	b.want(wasiabi.EFBIG, "fd_allocate", fd, math.MaxInt64, math.MaxInt64)
	b.want(wasiabi.EINVAL, "fd_pread", fd, list, 1, math.MaxInt64, result)
	b.must("fd_pread", fd, list, 1, math.MaxInt64-pageSize, result)
	if b.u32() != 0 {
		t.Errorf("read %d bytes behind the end", b.u32())
	}
	b.want(wasiabi.EFAULT, "fd_write", fd, pageSize-4, 1, result)
	b.want(wasiabi.EFAULT, "fd_write", fd, list, 1, pageSize-3)
	b.want(wasiabi.EFAULT, "fd_write", 1, b.put([]byte{0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0}), 1, result)
	b.must("fd_write", 1, b.put([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}), 1, result)
}

// TestStopEndsBigWrites: a write of gigabytes from overlapping buffers ends
// with the guest, wherever it goes.
func TestStopEndsBigWrites(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	close(stop)
	b, dir := mounted(t, wasiabi.Config{Stop: stop})
	b.Begin(b.at, wasiabi.Log)
	b.module.memory.b = bytes.Repeat([]byte("\n"), 8<<20)
	fd := uint64(b.mustOpen("f", opening{oflags: create}))
	for _, tt := range []struct {
		name        string
		count, size uint32
	}{{"one buffer", 1, 8 << 20}, {"many buffers", 1000, 64 << 10}} {
		var list []byte
		for range tt.count {
			list = binary.LittleEndian.AppendUint32(list, 0)
			list = binary.LittleEndian.AppendUint32(list, tt.size)
		}
		at := b.put(list)
		for _, fd := range []uint64{fd, 1, 2} {
			b.must("fd_write", fd, at, uint64(tt.count), result)
			if n := b.u32(); n != 256<<10 {
				t.Errorf("%s: wrote %d bytes to %d", tt.name, n, fd)
			}
		}
		b.must("fd_pread", fd, at, 1, 0, 0)
	}
	if info, err := os.Stat(filepath.Join(dir, "f")); err != nil || info.Size() != 512<<10 {
		t.Errorf("%d bytes in the file, %v", info.Size(), err)
	}
}

// TestBadPointers gives every function all combinations of pointers and
// lengths from attack G11, on descriptors that exist, and looks at what is left open.
func TestBadPointers(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	close(stop)
	b, dir := mounted(t, wasiabi.Config{Stop: stop, MaxWrite: 1 << 20})
	values := []uint64{0, 1, 3, 65535, 65536, 65537, 0xffffffff}
	for name, f := range functions {
		if name == "proc_exit" {
			continue
		}
		// Those with many arguments take a part of all combinations.
		stride := 1
		for range max(len(f.Params)-5, 0) {
			stride *= len(values)
		}
		args := make([]uint64, len(f.Params))
		total := int(math.Pow(float64(len(values)), float64(len(args))))
		for i := 0; i < total; i += stride {
			for j, rest := 0, i; j < len(args); j, rest = j+1, rest/len(values) {
				args[j] = values[(rest+i/stride)%len(values)]
			}
			if e := b.call(name, args...); e > wasiabi.ENOTCAPABLE {
				t.Fatalf("%s%v = %d", name, args, e)
			}
		}
		b.End()
		b.Begin(b.at, wasiabi.Command)
	}
	if open := openFiles(t, dir); open != 1 {
		t.Errorf("%d files are left open", open)
	}
}
