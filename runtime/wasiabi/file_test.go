package wasiabi_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/runtime/wasiabi"
)

func TestReadAndWrite(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	fd := b.mustOpen("f", opening{oflags: create | exclusive})
	if n, e := b.write(fd, "one ", "", "two"); n != 7 || e != wasiabi.OK {
		t.Errorf("wrote %d, errno %d", n, e)
	}
	b.must("fd_tell", uint64(fd), result)
	if b.u64() != 7 {
		t.Errorf("at %d", b.u64())
	}
	if got, e := b.read(fd, 10); got != "" || e != wasiabi.OK {
		t.Errorf("at the end: %q, errno %d", got, e)
	}
	b.must("fd_seek", uint64(fd), uint64(0xfffffffffffffffd), 2, result)
	if got, _ := b.read(fd, 10); got != "two" {
		t.Errorf("read %q", got)
	}
	b.must("fd_pwrite", uint64(fd), b.iovecs("ONE"), 1, 0, result)
	list := b.iovecs("....", "....")
	b.must("fd_pread", uint64(fd), list, 2, 2, result)
	at := binary.LittleEndian.Uint32(b.memory.b[list:])
	if got := string(b.memory.b[at:][:4]); b.u32() != 5 || got != "E tw" {
		t.Errorf("read %d bytes, %q", b.u32(), got)
	}
	b.must("fd_filestat_set_size", uint64(fd), 3)
	b.must("fd_allocate", uint64(fd), 3, 2)
	b.must("fd_sync", uint64(fd))
	b.must("fd_datasync", uint64(fd))
	b.must("fd_advise", uint64(fd), 0, 0, 5)
	b.want(wasiabi.EINVAL, "fd_advise", uint64(fd), 0, 0, 6)
	b.must("fd_close", uint64(fd))
	if got := content(t, dir, "f"); got != "ONE\x00\x00" {
		t.Errorf("the file has %q", got)
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	one := b.mustOpen("f", opening{oflags: create, fdflags: appending | syncing})
	two := b.mustOpen("f", opening{})
	b.write(one, "a")
	b.write(two, "B") // at its own position, over the a
	b.write(one, "c")
	b.must("fd_tell", uint64(one), result)
	b.must("fd_pwrite", uint64(one), b.iovecs("p"), 1, 0, heap)
	if at := b.u64(); at != 2 {
		t.Errorf("at %d after a write at a place", at)
	}
	b.must("fd_fdstat_set_flags", uint64(two), appending|nonblock)
	b.write(two, "d")
	b.must("fd_fdstat_set_flags", uint64(two), 0)
	b.must("fd_seek", uint64(two), 1, io.SeekStart, result)
	b.write(two, "C")
	b.want(wasiabi.ENOTSUP, "fd_fdstat_set_flags", uint64(two), syncing)
	b.want(wasiabi.EINVAL, "fd_fdstat_set_flags", uint64(two), 32)
	b.must("fd_fdstat_set_flags", uint64(one), syncing)
	b.must("fd_pwrite", uint64(one), b.iovecs("P"), 1, 0, result)
	if got := content(t, dir, "f"); got != "PCpd" {
		t.Errorf("the file has %q", got)
	}
	b.must("fd_fdstat_get", uint64(one), result)
	if got := b.memory.b[result+2]; got != syncing {
		t.Errorf("flags %d", got)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	tree(t, dir, map[string]string{"f": "text", "d/f": "", "link": "->f", "dirlink": "->d", "dangling": "->new", "loop": "->loop"})
	for _, tt := range []struct {
		path  string
		how   opening
		errno wasiabi.Errno
	}{
		{"f", opening{}, wasiabi.OK},
		{"./d/../f", opening{}, wasiabi.OK},
		{"d", opening{rights: readOnly}, wasiabi.OK},
		{"d/", opening{rights: readOnly, oflags: directory}, wasiabi.OK},
		{".", opening{rights: readOnly}, wasiabi.OK},
		{"link", opening{}, wasiabi.OK},
		{"dirlink/f", opening{nofollow: true}, wasiabi.OK},
		{"dirlink", opening{rights: readOnly, oflags: directory}, wasiabi.OK},
		{"dangling", opening{oflags: create}, wasiabi.OK}, // makes new
		{"new", opening{}, wasiabi.OK},
		{"link", opening{nofollow: true}, wasiabi.ELOOP},
		{"loop", opening{}, wasiabi.ELOOP},
		{"no", opening{}, wasiabi.ENOENT},
		{"no/f", opening{oflags: create}, wasiabi.ENOENT},
		{"no/", opening{oflags: create}, wasiabi.ENOENT},
		{"f", opening{oflags: directory}, wasiabi.ENOTDIR},
		{"f/", opening{}, wasiabi.ENOTDIR},
		{"f/x", opening{}, wasiabi.ENOTDIR},
		{"f", opening{oflags: create | exclusive}, wasiabi.EEXIST},
		{"link", opening{oflags: create | exclusive, nofollow: true}, wasiabi.EEXIST},
		{"d", opening{}, wasiabi.EISDIR},
		{"d", opening{rights: readOnly, oflags: create}, wasiabi.EISDIR},
		{"x", opening{oflags: create | directory}, wasiabi.EINVAL},
		{"x", opening{oflags: 16}, wasiabi.EINVAL},
		{"x", opening{fdflags: 32}, wasiabi.EINVAL},
		{"", opening{}, wasiabi.ENOENT},
	} {
		b.wantOpen(tt.errno, tt.path, tt.how)
	}
	if fd := b.mustOpen("f", opening{oflags: truncate, rights: readOnly}); content(t, dir, "f") != "" {
		t.Errorf("descriptor %d: the file wasn't emptied", fd)
	}
	if _, e := b.open(b.mustOpen("f", opening{}), "x", opening{}); e != wasiabi.ENOTDIR {
		t.Errorf("in a file: errno %d", e)
	}
}

// TestRights: what a descriptor was not opened for, or has dropped, can't be done.
func TestRights(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	tree(t, dir, map[string]string{"f": "text"})
	r := b.mustOpen("f", opening{rights: readOnly})
	if _, e := b.write(r, "x"); e != wasiabi.EBADF {
		t.Errorf("write: errno %d", e)
	}
	b.want(wasiabi.EBADF, "fd_filestat_set_size", uint64(r), 0)
	w := b.mustOpen("f", opening{rights: writeRight})
	if _, e := b.read(w, 1); e != wasiabi.EBADF {
		t.Errorf("read: errno %d", e)
	}
	b.want(wasiabi.ENOTCAPABLE, "fd_seek", uint64(w), 0, 0, result)
	b.want(wasiabi.ENOTCAPABLE, "fd_fdstat_set_rights", uint64(w), allRights, 0)
	b.want(wasiabi.EISDIR, "fd_seek", mountFD, 0, 0, result)
	b.want(wasiabi.EISDIR, "fd_read", mountFD, 0, 0, result)
	b.want(wasiabi.ENOTDIR, "fd_readdir", uint64(r), heap, 10, 0, result)

	const onlyOpen = 1 << 13
	b.must("fd_fdstat_set_rights", mountFD, onlyOpen, readRight)
	b.wantOpen(wasiabi.OK, "f", opening{rights: readRight})
	b.wantOpen(wasiabi.ENOTCAPABLE, "f", opening{rights: writeRight})
	b.wantOpen(wasiabi.ENOTCAPABLE, "f", opening{rights: readRight, oflags: truncate})
	b.wantOpen(wasiabi.ENOTCAPABLE, "g", opening{rights: readRight, oflags: create})
	if e := b.path("path_unlink_file", mountFD, "f"); e != wasiabi.ENOTCAPABLE {
		t.Errorf("unlink: errno %d", e)
	}
	b.End()
	b.wantOpen(wasiabi.OK, "f", opening{})
}

func TestStat(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	tree(t, dir, map[string]string{"f": "text", "link": "->f", "d/": ""})
	old := time.Unix(1234567890, 123456789)
	stat := func(name string, flags uint64) (kind byte, size, mtime uint64) {
		if e := b.call("path_filestat_get", mountFD, flags, b.put([]byte(name)), uint64(len(name)), heap*32); e != wasiabi.OK {
			t.Fatalf("stat %s: errno %d", name, e)
		}
		st := b.memory.b[heap*32:]
		return st[16], binary.LittleEndian.Uint64(st[32:]), binary.LittleEndian.Uint64(st[48:])
	}
	set := func(name string, flags, atim, mtim, which uint64) wasiabi.Errno {
		return b.call("path_filestat_set_times", mountFD, flags, b.put([]byte(name)), uint64(len(name)), atim, mtim, which)
	}
	if e := set("link", follow, 0, uint64(old.UnixNano()), 4); e != wasiabi.OK {
		t.Errorf("set times: errno %d", e)
	}
	if kind, size, mtime := stat("f", 0); kind != 4 || size != 4 || mtime != uint64(old.UnixNano()) {
		t.Errorf("f: type %d, size %d, time %d", kind, size, mtime)
	}
	if kind, _, _ := stat("link", 0); kind != 7 {
		t.Errorf("link: type %d", kind)
	}
	if kind, _, _ := stat("link", follow); kind != 4 {
		t.Errorf("what link leads to: type %d", kind)
	}
	if kind, _, _ := stat("d", 0); kind != 3 {
		t.Errorf("d: type %d", kind)
	}
	for _, which := range []uint64{3, 12, 16, 1 << 31} {
		if e := set("f", follow, 0, 0, which); e != wasiabi.EINVAL {
			t.Errorf("times %d: errno %d", which, e)
		}
	}
	if e := set("f", follow, 0, math.MaxUint64, 4); e != wasiabi.EINVAL {
		t.Errorf("far future: errno %d", e)
	}
	if e := set("link", 0, 0, 123456789, 4); e != wasiabi.OK {
		t.Errorf("times of a link: errno %d", e)
	}
	for name, want := range map[string]uint64{"link": 123456789, "f": uint64(old.UnixNano())} {
		if _, _, mtime := stat(name, 0); mtime != want {
			t.Errorf("%s has time %d, want %d", name, mtime, want)
		}
	}

	for _, fd := range []uint32{b.mustOpen("f", opening{}), b.mustOpen("d", opening{rights: readOnly}), mountFD} {
		b.must("fd_filestat_set_times", uint64(fd), 0, uint64(old.UnixNano()), 4)
		b.must("fd_filestat_get", uint64(fd), heap*32)
		if got := binary.LittleEndian.Uint64(b.memory.b[heap*32+48:]); got != uint64(old.UnixNano()) {
			t.Errorf("descriptor %d: time %d", fd, got)
		}
		b.must("fd_filestat_set_times", uint64(fd), 0, 0, 10)
	}
	if info, err := os.Stat(filepath.Join(dir, "f")); err != nil || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("the time now: %v, %v", info.ModTime(), err)
	}
	b.must("fd_filestat_get", 1, heap*32)
}

// TestMaxWrite: an attempt can fill the mount only up to the limit, by any means.
func TestMaxWrite(t *testing.T) {
	t.Parallel()
	const most = 10_000 // 4096 of them for the name
	for _, tt := range []struct {
		name string
		fill func(b *box, fd uint32) wasiabi.Errno
	}{
		{"write", func(b *box, fd uint32) wasiabi.Errno {
			_, e := b.write(fd, strings.Repeat("x", 1000))
			return e
		}},
		{"pwrite over and over", func(b *box, fd uint32) wasiabi.Errno {
			return b.call("fd_pwrite", uint64(fd), b.iovecs(strings.Repeat("x", 1000)), 1, 0, result)
		}},
		{"gaps", func(b *box, fd uint32) wasiabi.Errno {
			b.must("fd_seek", uint64(fd), 999, io.SeekEnd, result)
			_, e := b.write(fd, "x")
			return e
		}},
		{"gaps by pwrite", func(b *box, fd uint32) wasiabi.Errno {
			return b.call("fd_pwrite", uint64(fd), b.iovecs("x"), 1, 1<<40, result)
		}},
		{"size", func(b *box, fd uint32) wasiabi.Errno {
			b.must("fd_filestat_set_size", uint64(fd), 0)
			return b.call("fd_filestat_set_size", uint64(fd), 1000)
		}},
		{"allocate", func(b *box, fd uint32) wasiabi.Errno { return b.call("fd_allocate", uint64(fd), 0, 1000) }},
		{"names", func(b *box, _ uint32) wasiabi.Errno {
			_, e := b.open(mountFD, fmt.Sprint(b.next), opening{oflags: create})
			return e
		}},
		{"directories", func(b *box, _ uint32) wasiabi.Errno {
			return b.path("path_create_directory", mountFD, fmt.Sprint(b.next))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, dir := mounted(t, wasiabi.Config{MaxWrite: most})
			for range 2 {
				fd := b.mustOpen("f", opening{oflags: create})
				e := wasiabi.OK
				for range 20 {
					if e = tt.fill(b, fd); e != wasiabi.OK {
						break
					}
				}
				if e != wasiabi.EDQUOT {
					t.Errorf("errno %d", e)
				}
				if info, err := os.Stat(filepath.Join(dir, "f")); err != nil || info.Size() > most {
					t.Errorf("the file has %d bytes, %v", info.Size(), err)
				}
				b.End()
				if err := os.Remove(filepath.Join(dir, "f")); err != nil {
					t.Fatal(err)
				}
				b.Begin(b.at, wasiabi.Command)
			}
		})
	}
}

// TestLikeTheSystem does the same to a file with the functions and with package os.
func TestLikeTheSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		b := newBox(t, wasiabi.Config{Mounts: []wasiabi.Mount{{Host: dir, Guest: "/"}}, MaxWrite: 1 << 30})
		defer b.End()
		name := fmt.Sprint(rapid.Uint64().Draw(rt, "name"))
		fd := b.mustOpen(name, opening{oflags: create | truncate})
		f, err := os.Create(filepath.Join(dir, name+".os"))
		if err != nil {
			rt.Fatal(err)
		}
		defer f.Close()
		offset := rapid.Int64Range(-2, 50)
		same := func(what string, got int64, e wasiabi.Errno, want int64, err error) {
			if (e == wasiabi.OK) != (err == nil || err == io.EOF) || e == wasiabi.OK && got != want {
				rt.Fatalf("%s: %d, errno %d; package os: %d, %v", what, got, e, want, err)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				one, two := rapid.String().Draw(rt, "one"), rapid.String().Draw(rt, "two")
				n, e := b.write(fd, one, two)
				want, err := f.WriteString(one + two)
				same("write", int64(n), e, int64(want), err)
			},
			"pwrite": func(rt *rapid.T) {
				text, at := rapid.StringN(1, 20, -1).Draw(rt, "text"), offset.Draw(rt, "at")
				e := b.call("fd_pwrite", uint64(fd), b.iovecs(text), 1, uint64(at), result)
				want, err := f.WriteAt([]byte(text), at)
				same("pwrite", int64(b.u32()), e, int64(want), err)
			},
			"read": func(rt *rapid.T) {
				n := rapid.IntRange(0, 30).Draw(rt, "n")
				got, e := b.read(fd, n)
				buf := make([]byte, n)
				want, err := f.Read(buf)
				same("read", int64(len(got)), e, int64(want), err)
				if got != string(buf[:want]) {
					rt.Fatalf("read %q, package os %q", got, buf[:want])
				}
			},
			"seek": func(rt *rapid.T) {
				to, whence := offset.Draw(rt, "to"), rapid.IntRange(0, 2).Draw(rt, "whence")
				e := b.call("fd_seek", uint64(fd), uint64(to), uint64(whence), result)
				want, err := f.Seek(to, whence)
				same("seek", int64(b.u64()), e, want, err)
			},
			"truncate": func(rt *rapid.T) {
				size := offset.Draw(rt, "size")
				e := b.call("fd_filestat_set_size", uint64(fd), uint64(size))
				same("truncate", 0, e, 0, f.Truncate(size))
			},
			"": func(rt *rapid.T) {
				if got, want := content(t, dir, name), content(t, dir, name+".os"); got != want {
					rt.Fatalf("the file has %q, package os %q", got, want)
				}
			},
		})
	})
}
