package wasm_test

import (
	"context"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// residentBytes is the memory that this process has in RAM, by the name of a
// line of /proc/self/status; it skips the test where there is none.
func residentBytes(t testing.TB) int64 { return statusBytes(t, "VmRSS") }

func statusBytes(t testing.TB, line string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("only Linux tells how much memory is resident: ", err)
	}
	_, after, _ := strings.Cut(string(status), "\n"+line+":")
	kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// peakOf returns by how much do raised the peak of the resident memory, which
// it makes the kernel reset before.
func peakOf(t testing.TB, do func()) int64 {
	t.Helper()
	before := residentBytes(t)
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	do()
	return statusBytes(t, "VmHWM") - before
}

// TestGrownMemoryIsOnce: a guest that grows to its limit bit by bit, and writes
// to all of it, takes little more than the limit: memory that grows isn't
// copied. It is not parallel, since it measures the whole process.
func TestGrownMemoryIsOnce(t *testing.T) {
	const limit = 128 << 20
	const grow = "\x02\x40" + loop + // until growing is refused
		"\x41\x01\x40\x00\x41\x7f\x46\x0d\x01" + // grow by a page; refused: leave
		"\x3f\x00\x41\x01\x6b\x41\x10\x74\x41\x07\x41\x80\x80\x04\xfc\x0b\x00" + // fill it with sevens
		again + "\x0b"
	probe, err := os.ReadFile("../extismabi/testdata/probe.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, entry string
		module      []byte
	}{
		{"memory of a guest", "jh_run", attack(1, false, grow)},
		{"memory of a plugin's kernel", "hog", probe},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := opener(c.module)(t, runtime.Source{Entry: c.entry, Isolation: runtime.IsolateInstance, Limits: runtime.Limits{MemoryBytes: limit}})
			i := runtimetest.Instance(t, p)
			debug.FreeOSMemory()
			peak := peakOf(t, func() {
				if got := i.Run(t.Context(), runtimetest.Attempt("", "")); got.Outcome.Kind != jobhost.OutcomeSucceeded {
					t.Fatalf("%+v", got)
				}
			})
			if peak < limit*9/10 || peak > limit*13/10 {
				t.Errorf("with a limit of %d MiB it took %d MiB", limit>>20, peak>>20)
			}
		})
	}
}

// overflowBytes is the memory of a guest that nests its calls until its stack
// overflows: the stack, and what any sandbox takes.
const overflowBytes = (runtime.StackBytes + 1<<20) * raceFactor

// overflow has guests nest their calls endlessly, all at once, and returns the
// maximum memory that they took.
func overflow(t testing.TB, p runtime.Plugin, guests int) int64 {
	t.Helper()
	debug.FreeOSMemory()
	return peakOf(t, func() {
		var running sync.WaitGroup
		for range guests {
			running.Go(func() {
				i, err := p.Instantiate(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				got := i.Run(context.Background(), runtimetest.Attempt("recurse", ""))
				if f := got.Outcome.Failure; f == nil || f.Code != jobhost.FailStack || got.Replace != runtime.ReplacedStack {
					t.Errorf("%+v, replaced for %q", f, got.Replace)
				}
				_ = i.Close(context.Background())
			})
		}
		running.Wait()
	})
}

// TestStacksAreBounded: endless recursions take one stack each, and leave
// nothing.
func TestStacksAreBounded(t *testing.T) {
	const count = 64 / raceFactor
	p := load(t, newEngine(t), guests.Outcomes, runtime.Limits{})
	before := residentBytes(t)
	if peak := overflow(t, p, count); peak > count*overflowBytes {
		t.Errorf("%d stacks took %d MiB", count, peak>>20)
	}
	debug.FreeOSMemory()
	// The race detector doesn't give back what it noted about them.
	if left := residentBytes(t) - before; left > count<<20/4 && raceFactor == 1 {
		t.Errorf("%d MiB are left", left>>20)
	}
}

// TestStacksAreTrimmed: after a deep recursion a sandbox takes no more memory
// than others until its next job.
func TestStacksAreTrimmed(t *testing.T) {
	const count, depth = 32, 60_000 // of activations of some 50 bytes
	deep := bump(1) + counter + number(depth) + "\x49\x04\x40" + call(0) + "\x0b"
	p := load(t, newEngine(t), attack(1, false, deep), runtime.Limits{})
	before := residentBytes(t)
	for range count {
		got := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", ""))
		if got.Outcome.Kind != jobhost.OutcomeSucceeded || got.Replace != "" || got.Outcome.Fuel < depth {
			t.Fatalf("%+v", got)
		}
	}
	if left := residentBytes(t) - before; left > count<<20/2*raceFactor {
		t.Errorf("%d sandboxes take %d MiB", count, left>>20)
	}
}

// BenchmarkOverflow reports the memory that endless recursions take at once.
func BenchmarkOverflow(b *testing.B) {
	for _, count := range []int{1, 8, 64} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			p := load(b, newEngine(b), guests.Outcomes, runtime.Limits{})
			peak := int64(0)
			for b.Loop() {
				peak = max(peak, overflow(b, p, count))
			}
			b.ReportMetric(float64(peak>>20), "peak-MiB")
		})
	}
}
