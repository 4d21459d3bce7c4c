package wasiabi_test

import (
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// BenchmarkCommand runs a command in C that does nothing: a new module, its
// libc, reading the input, proc_exit.
func BenchmarkCommand(b *testing.B) {
	g := newGuest(b, wazero.NewRuntimeConfigCompiler(), guests.LibC, wasiabi.Config{})
	at := attempt("noop")
	b.ReportAllocs()
	for b.Loop() {
		g.run(at)
	}
}

// BenchmarkAttempt is what an attempt costs that uses nothing.
func BenchmarkAttempt(b *testing.B) {
	box := newBox(b, wasiabi.Config{})
	b.ReportAllocs()
	for b.Loop() {
		box.Begin(box.at, wasiabi.Log)
		box.End()
	}
}

// BenchmarkChangedAttempt opens and closes nothing, but leaves a mark that End removes.
func BenchmarkChangedAttempt(b *testing.B) {
	box, _ := mounted(b, wasiabi.Config{})
	b.ReportAllocs()
	for b.Loop() {
		box.Begin(box.at, wasiabi.Command)
		box.call("fd_fdstat_set_flags", 1, nonblock)
		box.End()
	}
}

func BenchmarkCalls(b *testing.B) {
	box, _ := mounted(b, wasiabi.Config{})
	fd := uint64(box.mustOpen("f", opening{oflags: create}))
	line := box.iovecs("a line of some forty bytes, as logs have\n")
	path := box.put([]byte("f"))
	for _, bb := range []struct {
		name string
		args []uint64
	}{
		{"clock_time_get", []uint64{1, 0, result}},
		{"sched_yield", nil},
		{"random_get", []uint64{2048, 16}},
		{"fd_write", []uint64{1, line, 1, result}},
		{"fd_pwrite", []uint64{fd, line, 1, 0, result}},
		{"path_filestat_get", []uint64{mountFD, follow, path, 1, 2048}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			f := functions[bb.name]
			stack := make([]uint64, 10)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%1000 == 0 {
					box.at.Reset()
					box.at.Limits.OutputBytes = 1 << 20
				}
				copy(stack, bb.args)
				f.Call(box.frame, box.module, stack)
				if stack[0] != 0 {
					b.Fatalf("errno %d", stack[0])
				}
			}
		})
	}
	b.Run("path_open and fd_close", func(b *testing.B) {
		for b.Loop() {
			box.call("fd_close", uint64(box.mustOpen("f", opening{})))
		}
	})
}
