package process_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestNothingIsLeft kills a process again and again: neither goroutines nor descriptors nor files in the folder of
// sockets accumulate. It isn't parallel, since it counts those of the whole test.
func TestNothingIsLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := process.NewSandboxes(process.SandboxConfig{Command: []string{exe, "sandbox"}, CacheDir: cacheDir})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Load(t.Context(), runtime.Source{Worker: "test", Bytes: guests.Echo})
	if err != nil {
		t.Fatal(err)
	}
	i := runtimetest.Instance(t, p)
	crash := func() {
		for _, pid := range process.Pids(p) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for { // until the death is noticed, it may run in the old one
			o := i.Run(t.Context(), runtimetest.Attempt("", "x")).Outcome
			if string(o.Output) == "x" {
				return
			}
		}
	}
	crash()
	before := process.Left(p)
	for range 20 {
		crash()
	}
	var after process.Leftovers
	end := time.Now().Add(5 * time.Second)
	for after = process.Left(p); more(before, after) && time.Now().Before(end); after = process.Left(p) { // the last ones take a moment to go
		i.Run(t.Context(), runtimetest.Attempt("", "x"))
	}
	if more(before, after) {
		t.Errorf("before %+v, after 20 crashes %+v", before, after)
	}
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func more(before, after process.Leftovers) bool {
	return after.Descriptors > before.Descriptors || after.Sockets > before.Sockets || after.Goroutines > before.Goroutines
}
