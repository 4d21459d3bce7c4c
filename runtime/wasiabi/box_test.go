package wasiabi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// frame is the context of calls, as an engine makes it.
type frame struct {
	context.Context
	system *wasiabi.System
}

func (f *frame) WASI() *wasiabi.System { return f.system }

// module has a memory and nothing else.
type module struct {
	api.Module
	memory byteMemory
}

func (m *module) Memory() api.Memory { return &m.memory }

type byteMemory struct {
	api.Memory
	b []byte
}

func (m *byteMemory) Size() uint32 { return uint32(len(m.b)) }
func (m *byteMemory) Read(at, n uint32) ([]byte, bool) {
	if uint64(at)+uint64(n) > uint64(len(m.b)) {
		return nil, false
	}
	return m.b[at:][:n:n], true
}

// box calls functions as a guest would, from a memory of one page. Results
// are written to the place `result`.
type box struct {
	*wasiabi.System
	t      testing.TB
	at     *hostcall.Attempt
	frame  *frame
	module *module
	memory *byteMemory
	next   uint32
}

const (
	pageSize = 64 << 10
	result   = 16
	heap     = 1024
	// The first mount, after the streams.
	mountFD = 3
)

var functions = func() map[string]wasiabi.Function {
	all := map[string]wasiabi.Function{}
	for _, f := range wasiabi.Functions() {
		all[f.Name] = f
	}
	return all
}()

func newBox(t testing.TB, cfg wasiabi.Config) *box {
	t.Helper()
	s, err := wasiabi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.End()
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	b := &box{
		System: s, t: t, frame: &frame{context.Background(), s}, next: heap,
		module: &module{memory: byteMemory{b: make([]byte, pageSize)}},
		at: &hostcall.Attempt{
			Job: "j1", Worker: "w", Tasks: 1, Number: 1, Input: []byte("payload"),
			Limits: hostcall.Limits{OutputBytes: 1000, LogBytes: 1000, LineBytes: 100},
		},
	}
	b.memory = &b.module.memory
	s.Begin(b.at, wasiabi.Command)
	return b
}

// mounted returns a box with a directory at /data, and the directory.
func mounted(t testing.TB, cfg wasiabi.Config) (*box, string) {
	t.Helper()
	dir := t.TempDir()
	cfg.Mounts = append([]wasiabi.Mount{{Host: dir, Guest: "/data"}}, cfg.Mounts...)
	return newBox(t, cfg), dir
}

func (b *box) call(name string, args ...uint64) wasiabi.Errno {
	f, ok := functions[name]
	if !ok || len(args) != len(f.Params) {
		b.t.Fatalf("%s with %d arguments", name, len(args))
	}
	stack := append(make([]uint64, 0, 10), args...)[:max(len(args), 1)]
	f.Call(b.frame, b.module, stack)
	return wasiabi.Errno(stack[0])
}

// must calls a function that has to succeed.
func (b *box) must(name string, args ...uint64) {
	b.t.Helper()
	b.want(wasiabi.OK, name, args...)
}

func (b *box) want(e wasiabi.Errno, name string, args ...uint64) {
	b.t.Helper()
	if got := b.call(name, args...); got != e {
		b.t.Errorf("%s%v = errno %d, want %d", name, args, got, e)
	}
}

// put writes bytes to fresh memory.
func (b *box) put(data []byte) uint64 {
	if int(b.next)+len(data) > pageSize {
		b.next = heap
	}
	at := b.next
	copy(b.memory.b[at:], data)
	b.next += (uint32(len(data)) + 15) &^ 7
	return uint64(at)
}

func (b *box) u32() uint32 { return binary.LittleEndian.Uint32(b.memory.b[result:]) }
func (b *box) u64() uint64 { return binary.LittleEndian.Uint64(b.memory.b[result:]) }

// iovecs puts down a list of buffers that hold data.
func (b *box) iovecs(data ...string) uint64 {
	var list []byte
	for _, d := range data {
		list = binary.LittleEndian.AppendUint32(list, uint32(b.put([]byte(d))))
		list = binary.LittleEndian.AppendUint32(list, uint32(len(d)))
	}
	return b.put(list)
}

func (b *box) write(fd uint32, data ...string) (int, wasiabi.Errno) {
	e := b.call("fd_write", uint64(fd), b.iovecs(data...), uint64(len(data)), result)
	return int(b.u32()), e
}

// read reads up to n bytes.
func (b *box) read(fd uint32, n int) (string, wasiabi.Errno) {
	list := b.iovecs(string(make([]byte, n)))
	e := b.call("fd_read", uint64(fd), list, 1, result)
	if e != wasiabi.OK {
		return "", e
	}
	at := binary.LittleEndian.Uint32(b.memory.b[list:])
	return string(b.memory.b[at:][:b.u32()]), e
}

// path calls a function that begins with a directory and a path.
func (b *box) path(name string, fd uint32, path string, args ...uint64) wasiabi.Errno {
	return b.call(name, append([]uint64{uint64(fd), b.put([]byte(path)), uint64(len(path))}, args...)...)
}

// How to open.
const (
	follow = 1

	create    = 1
	directory = 2
	exclusive = 4
	truncate  = 8

	appending = 1
	nonblock  = 4
	syncing   = 16

	readRight  = 1 << 1
	writeRight = 1 << 6
	allRights  = 1<<30 - 1
	readOnly   = allRights &^ (writeRight | 1<<8 | 1<<22)
)

type opening struct {
	nofollow bool
	oflags   uint64
	rights   uint64 // 0 = all
	fdflags  uint64
}

func (b *box) open(fd uint32, path string, o opening) (uint32, wasiabi.Errno) {
	lookup := uint64(follow)
	if o.nofollow {
		lookup = 0
	}
	if o.rights == 0 {
		o.rights = allRights
	}
	e := b.call("path_open", uint64(fd), lookup, b.put([]byte(path)), uint64(len(path)), o.oflags, o.rights, allRights, o.fdflags, result)
	return b.u32(), e
}

func (b *box) mustOpen(path string, o opening) uint32 {
	b.t.Helper()
	fd, e := b.open(mountFD, path, o)
	if e != wasiabi.OK {
		b.t.Fatalf("open %s: errno %d", path, e)
	}
	return fd
}

func (b *box) wantOpen(e wasiabi.Errno, path string, o opening) {
	b.t.Helper()
	if _, got := b.open(mountFD, path, o); got != e {
		b.t.Errorf("open %.100q %+v = errno %d, want %d", path, o, got, e)
	}
}

func (b *box) log() string {
	lines, _ := b.at.TakeLog()
	return string(lines)
}

// tree makes files in a directory: a name that ends with a slash is a
// directory, a value that begins with -> a link.
func tree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if target, link := bytes.CutPrefix([]byte(text), []byte("->")); err != nil {
			t.Fatal(err)
		} else if link {
			err = os.Symlink(string(target), path)
		} else if name[len(name)-1] == '/' {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func content(t testing.TB, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
