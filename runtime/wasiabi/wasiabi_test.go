package wasiabi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// TestSignatures compares names and types with what another host offers.
func TestSignatures(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	theirs := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer theirs.Close(context.WithoutCancel(ctx))
	wasi_snapshot_preview1.MustInstantiate(ctx, theirs)
	ours := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer ours.Close(context.WithoutCancel(ctx))
	if err := wasiabi.Instantiate(ctx, ours); err != nil {
		t.Fatal(err)
	}
	want := signatures(theirs.Module(wasiabi.Module))
	got := signatures(ours.Module(wasiabi.Module))
	if len(got) != 46 || !slices.Equal(got, want) {
		t.Errorf("%d functions:\n%s\nwant:\n%s", len(got), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := wasiabi.Instantiate(ctx, ours); err == nil {
		t.Error("defined twice")
	}
}

func signatures(m api.Module) []string {
	var all []string
	for name, f := range m.ExportedFunctionDefinitions() {
		all = append(all, fmt.Sprintf("%s %x %x", name, f.ParamTypes(), f.ResultTypes()))
	}
	slices.Sort(all)
	return all
}

func TestConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree(t, dir, map[string]string{"file": ""})
	for _, tt := range []struct {
		name string
		cfg  wasiabi.Config
		code jobhost.Code
	}{
		{"too few descriptors", wasiabi.Config{MaxOpen: 2}, jobhost.CodeInvalid},
		{"too few for the mount", wasiabi.Config{MaxOpen: 3, Mounts: []wasiabi.Mount{{Host: dir, Guest: "/"}}}, jobhost.CodeInvalid},
		{"relative", wasiabi.Config{Mounts: []wasiabi.Mount{{Host: dir, Guest: "data"}}}, jobhost.CodeInvalid},
		{"NUL", wasiabi.Config{Mounts: []wasiabi.Mount{{Host: dir, Guest: "/\x00"}}}, jobhost.CodeInvalid},
		{"twice", wasiabi.Config{Mounts: []wasiabi.Mount{{Host: dir, Guest: "/a"}, {Host: dir, Guest: "/a/"}}}, jobhost.CodeInvalid},
		{"missing", wasiabi.Config{Mounts: []wasiabi.Mount{{Host: dir + "/no", Guest: "/a"}}}, jobhost.CodeInternal},
		{"a file", wasiabi.Config{Mounts: []wasiabi.Mount{{Host: dir + "/file", Guest: "/a"}}}, jobhost.CodeInternal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := wasiabi.New(tt.cfg); err == nil || jobhost.CodeOf(err) != tt.code {
				t.Errorf("%v, code %v", err, jobhost.CodeOf(err))
			}
		})
	}
}

// TestReset: what one attempt did to its descriptors is nothing to the next.
func TestReset(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	tree(t, dir, map[string]string{"a/x": "text", "b/y": ""})
	for attempt := range 3 {
		b.at = &hostcall.Attempt{Job: b.at.Job, Worker: b.at.Worker, Input: b.at.Input, Limits: b.at.Limits}
		b.Begin(b.at, wasiabi.Command)
		if got, e := b.read(0, 100); got != "payload" || e != wasiabi.OK {
			t.Errorf("attempt %d: input %q, errno %d", attempt, got, e)
		}
		fd := b.mustOpen("a/x", opening{})
		if fd != mountFD+1 {
			t.Errorf("attempt %d: the first descriptor is %d", attempt, fd)
		}
		sub := b.mustOpen("a", opening{rights: readOnly})
		b.must("fd_readdir", mountFD, 2048, 500, 0, result)
		b.must("fd_readdir", uint64(sub), 2048, 500, 0, result)
		for _, fd := range []uint64{0, 1, 2, mountFD} {
			b.must("fd_fdstat_set_rights", fd, 0, 0)
			b.must("fd_close", fd)
			b.want(wasiabi.EBADF, "fd_close", fd)
		}
		b.want(wasiabi.EBADF, "fd_prestat_get", mountFD, result)
		b.must("fd_renumber", uint64(sub), uint64(fd))
		b.want(wasiabi.EBADF, "fd_fdstat_get", uint64(sub), result)
		b.want(wasiabi.EBADF, "fd_renumber", 900, uint64(fd))
		b.End()
		b.must("fd_prestat_get", mountFD, result)
		for fd := range uint64(mountFD + 1) {
			b.must("fd_fdstat_get", fd, result)
		}
		b.want(wasiabi.EBADF, "fd_fdstat_get", mountFD+1, result)
	}
	if open := openFiles(t, dir); open != 1 {
		t.Errorf("%d files of the host are open in the mount, want its root only", open)
	}
}

// TestEndIsFree: an attempt that left the table alone costs nothing at its end.
func TestEndIsFree(t *testing.T) {
	b := newBox(t, wasiabi.Config{})
	if n := testing.AllocsPerRun(100, func() {
		b.Begin(b.at, wasiabi.Log)
		b.End()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	b := newBox(t, wasiabi.Config{})
	for _, code := range []uint32{0, 1, 255, 1<<32 - 1} {
		func() {
			defer func() {
				var exit *wasiabi.Exit
				if err, ok := recover().(error); !ok || !errors.As(err, &exit) || exit.Code != code {
					t.Errorf("exit(%d): %v", code, err)
				}
			}()
			b.call("proc_exit", uint64(code))
		}()
	}
	b.want(wasiabi.ENOSYS, "proc_raise", 6)
	b.must("sched_yield")
	b.want(wasiabi.ENOTSOCK, "sock_accept", 0, 0, result)
	b.want(wasiabi.EBADF, "sock_shutdown", 77, 0)
}
