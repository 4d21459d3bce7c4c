package wasm_test

import (
	"context"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// Pieces of modules that are made by hand.
var (
	uleb, leb, sized, number, call = runtimetest.Unsigned, runtimetest.Signed, runtimetest.Sized, runtimetest.Number, runtimetest.Call
	bump, attack                   = runtimetest.Bump, runtimetest.Handmade
)

const (
	loop    = runtimetest.Loop
	again   = runtimetest.Again
	counter = runtimetest.Counter
)

// tree is a call tree with 2^depth leaves and no loop.
func tree(depth int) []string {
	var functions []string
	for f := range depth {
		functions = append(functions, call(f+1)+call(f+1))
	}
	return append(functions, "")
}

// pulse is how late a host was while it did something: the longest delay of a
// one-millisecond ticker. It collects garbage all the time, for which every
// guest must be preemptible.
func pulse(do func()) (late time.Duration) {
	done := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		last := time.Now()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				late = max(late, time.Since(last)-time.Millisecond, time.Since(now))
				if n%20 == 0 {
					goruntime.GC()
				}
				last = time.Now()
			}
		}
	})
	do()
	close(done)
	beating.Wait()
	return late
}

// moving is a worker with an endless loop that passes values through blocks,
// each of which moves all of them by one.
func moving(values, blocks int) []byte {
	kinds := strings.Repeat("\x7e", values)
	code := "\x02\x01\x7f\x01\x7e" + number(0) + "\x28\x02\x00\x45\x21\x01" // local 1 is 1, but that isn't known; local 2 an i64
	for n := range values {
		code += number(0) + "\x29\x03" + uleb(8*n) // i64.load
	}
	code += "\x03\x02" + strings.Repeat("\x02\x02\x20\x02\x20\x01\x0d\x00\x1a\x0b", blocks) + "\x20\x01\x0d\x00\x0b" + strings.Repeat("\x1a", values-1) + "\x0b"
	return module("\x01\x03\x60\x01\x7f\x01\x7e\x60\x00\x00\x60"+uleb(values)+kinds+uleb(values)+kinds,
		function, memory1, "\x07\x02"+exportMemory+exportRun, "\x0a\x01"+sized(code))
}

// rows is a worker that repeatedly does something with a table of 100,000
// entries.
func rows(operation string) []byte {
	code := "\x00" + loop + strings.Repeat(operation, 100) + again + "\x00\x0b" // without an end
	return module(types, function, "\x04\x01\x70\x00"+uleb(100_000), memory1, "\x07\x02"+exportMemory+exportRun, "\x0a\x01"+sized(code))
}

// random is a worker that repeatedly asks for random numbers, size bytes at once.
func random(size int32) []byte {
	code := "\x00" + loop + number(0) + number(size) + call(0) + "\x1a" + again + "\x00\x0b" // without an end
	return module("\x01\x02\x60\x01\x7f\x01\x7e\x60\x02\x7f\x7f\x01\x7f", imported("wasi_snapshot_preview1", "random_get", "\x00\x01"), function,
		"\x05\x01\x00"+uleb(1024), "\x07\x02"+exportMemory+"\x06jh_run\x00\x01", "\x0a\x01"+sized(code))
}

// stuckJobs are jobs that don't end on their own, or not for years.
func stuckJobs() []runtimetest.Stuck {
	const memory = 1024 // pages
	fill := number(0) + number(7) + number(memory<<16) + "\xfc\x0b\x00"
	// A function that does next to nothing except for a loop, which calls it again.
	const depth = 60_000
	work := number(8) + "\x42\x01" + strings.Repeat("\x42\x03\x7e", 10_000) + "\x37\x03\x00"
	nested := loop + counter + "\x45\x04\x40\x0f\x0b" + bump(-1) + call(1) + work + "\x0b"
	copies := number(0) + number(memory<<15-5) + number(memory<<15) + "\xfc\x0a\x00\x00"
	grows := strings.Repeat(number(65535)+"\x40\x00\x1a", 8000) // which are refused
	return []runtimetest.Stuck{
		{Name: "a loop", Module: attack(1, false, loop+again)},
		{Name: "a tree of 2^45 calls", Module: attack(1, false, tree(45)...)},
		{Name: "rows of fills of 64 MiB", Module: attack(memory, false, loop+strings.Repeat(fill, 200)+again)},
		{Name: "rows of copies of 32 MiB", Module: attack(memory, false, loop+strings.Repeat(copies, 200)+again)},
		{Name: "a tree that is wide", Module: attack(1, false, loop+strings.Repeat(call(1), 50)+again, strings.Repeat(call(2), 50), strings.Repeat(call(3), 50), "")},
		{Name: "a recursion in a loop with much to do on the way back", Module: attack(1, false, loop+bump(depth)+call(1)+again, nested)},
		{Name: "rows of references to a function", Module: attack(1, false, loop+strings.Repeat("\xd2\x01\x1a", 1000)+again)},
		{Name: "a recursion that is followed by an endless loop", Module: attack(1, false, grows+call(0)+loop+again)},
		{Name: "a recursion in a loop, followed by an endless loop", Module: attack(1, false, loop+grows+call(0)+loop+again+again)},
		{Name: "a recursion before an endless loop, unless it returns", Module: attack(1, false, number(1)+"\x04\x40"+grows+call(0)+loop+again+"\x0b")},
		{Name: "a loop of branches that move 1,000 values", Module: moving(1000, 24)},
		{Name: "rows of fills of a table, 4,096 entries each", Module: rows(number(0) + "\xd0\x70" + number(4096) + "\xfc\x11\x00")},
		{Name: "rows of fills of a table, 512 entries each", Module: rows(number(0) + "\xd0\x70" + number(512) + "\xfc\x11\x00")},
		{Name: "rows of copies of a table, 4,096 entries each", Module: rows(number(0) + number(50_000) + number(4096) + "\xfc\x0e\x00\x00")},
		{Name: "rows of copies of a table, 512 entries each", Module: rows(number(0) + number(50_000) + number(512) + "\xfc\x0e\x00\x00")},
		{Name: "random numbers, 64 MiB at once", Module: random(64 << 20)},
		{Name: "random numbers, 16 KiB at once", Module: random(16 << 10)},
		{Name: "sleep of a worker", Module: guests.Exit, Entry: "sleep"},
		{Name: "sleep of a command", Module: guests.Command, Input: "sleep\n"},
		{Name: "spin of a plugin", Module: guests.Extism, Entry: "spin"},
	}
}

// TestAttacksAreStopped: whatever a job does, it ends within 100 ms of its
// deadline, and the host keeps working.
func TestAttacksAreStopped(t *testing.T) {
	for _, s := range append(stuckJobs(), runtimetest.Faults()...) {
		t.Run(s.Name, func(t *testing.T) {
			src := runtime.Source{Worker: "attack", Bytes: s.Module, Entry: s.Entry, Limits: runtime.Limits{MemoryBytes: s.Memory}}
			p, err := newEngine(t).Load(t.Context(), src)
			if err != nil {
				t.Fatal(err)
			}
			late := runtimetest.Best(func() (stopped time.Duration) {
				i := runtimetest.Instance(t, p)
				at := runtimetest.Attempt(s.Entry, s.Input)
				var got runtime.Result
				beat := pulse(func() {
					at.Deadline = time.Now().Add(100 * time.Millisecond)
					got = i.Run(t.Context(), at)
					stopped = time.Since(at.Deadline)
				})
				if f := got.Outcome.Failure; f == nil || f.Code != jobhost.FailTimeout || got.Replace != runtime.ReplacedStopped {
					t.Fatalf("%+v, replaced for %q", f, got.Replace)
				}
				return max(stopped, beat)
			})
			if late > runtimetest.MaxLateness {
				t.Errorf("the job was stopped, or the host was, %v late", late)
			}
		})
	}
}

// TestStartIsStopped: the same holds for the start function of a module.
func TestStartIsStopped(t *testing.T) {
	const patience = 50 * time.Millisecond
	for name, module := range map[string][]byte{
		"a loop":       attack(1, true, loop+again),
		"a tree":       attack(1, true, tree(45)...),
		"_initialize":  guests.InitSpin,
		"a long start": attack(1024, true, loop+strings.Repeat(number(0)+number(7)+number(64<<20)+"\xfc\x0b\x00", 200)+again),
	} {
		t.Run(name, func(t *testing.T) {
			p := load(t, newEngine(t), module, runtime.Limits{StartTime: patience})
			late := runtimetest.Best(func() (stopped time.Duration) {
				beat := pulse(func() {
					began := time.Now()
					_, err := p.Instantiate(t.Context())
					stopped = time.Since(began) - patience
					if err == nil || !strings.Contains(err.Error(), "not ready within 50ms") {
						t.Fatalf("%v", err)
					}
				})
				return max(stopped, beat)
			})
			if late > runtimetest.MaxLateness {
				t.Errorf("it was stopped, or the host was, %v late", late)
			}
		})
	}
}

// hanging is a host whose requests to other hosts never get an answer. Nothing
// else that a guest can ask for blocks: services must not, by contract, and in
// WASI only sleeping does.
func hanging() *runtimetest.Network {
	return &runtimetest.Network{Respond: func(ctx context.Context, _ *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
		<-ctx.Done()
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "no answer", Cause: ctx.Err()}
	}}
}

// TestNativeWaitingIsStopped: a job that waits in the host, by each call that can.
func TestNativeWaitingIsStopped(t *testing.T) {
	t.Parallel()
	p := opener(guests.Ops)(t, runtime.Source{Entry: "fetch"})
	for entry, input := range map[string]string{
		"fetch": "GET http://a.example", "many": "10\nGET http://a.example", "race": "GET http://a.example\x00GET http://b.example",
		"pause": "3600000", "until_told": "", "await": "worker: test\nid: child\n\n",
	} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			late := runtimetest.Lateness(t, p, func() *hostcall.Attempt {
				at := runtimetest.Attempt(entry, input)
				at.Services, at.MaySubmit = hanging(), []string{"test"}
				return at
			})
			if late > runtimetest.MaxLateness {
				t.Errorf("stopped %v late", late)
			}
		})
	}
}

// TestWaitingIsStopped: a job that waits in the host.
func TestWaitingIsStopped(t *testing.T) {
	t.Parallel()
	p := loadFixture(t, runtime.Source{Entry: "run_test"}, "http")
	request := func() *hostcall.Attempt {
		at := runtimetest.Attempt("", "")
		at.Services = hanging()
		return at
	}
	if late := runtimetest.Lateness(t, p, request); late > runtimetest.MaxLateness {
		t.Errorf("stopped %v late", late)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(hostcall.ErrCancelled) })
	got := runtimetest.Instance(t, p).Run(ctx, request())
	if got.Outcome.Kind != jobhost.OutcomeCancelled || got.Replace != runtime.ReplacedStopped {
		t.Errorf("cancelled: %+v, replaced for %q", got.Outcome, got.Replace)
	}
}

// TestLinkedRecursionIsStopped: modules of a plugin that call each other, one by
// a reference that the other has put into its table, so that neither sees the
// recursion; and one with most of its work on the way back.
func TestLinkedRecursionIsStopped(t *testing.T) {
	t.Parallel()
	const unary, taking, entry = "\x60\x01\x7f\x00", "\x60\x02\x70\x7f\x00", "\x60\x00\x01\x7f"
	much := "\x42\x01" + strings.Repeat("\x42\x03\x7e", 50_000) + "\x24\x00"
	body := func(code string) string { code = "\x00" + code + "\x0b"; return uleb(len(code)) + code }
	// g(f, n) puts f into its table and calls it with n.
	lib := module("\x01\x02"+unary+taking, "\x03\x01\x01", "\x04\x01\x70\x00\x01", "\x06\x01\x7e\x01\x42\x00\x0b", "\x07\x01\x01g\x00\x00",
		"\x0a\x01"+body("\x41\x00\x20\x00\x26\x00"+"\x20\x01\x41\x00\x11\x00\x00"+much))
	// f(n) calls g(f, n−1) until n is 0.
	main := module("\x01\x03"+unary+taking+entry, "\x02\x01\x03lib\x01g\x00\x01", "\x03\x02\x00\x02", "\x05\x01\x00\x01", "\x07\x01\x03run\x00\x02",
		"\x09\x01\x03\x00\x01\x01", "\x0a\x02"+body("\x20\x00\x04\x40\xd2\x01\x20\x00\x41\x01\x6b\x10\x00\x0b")+body(number(40_000)+"\x10\x01"+number(0)))
	p, err := newEngine(t).Load(t.Context(), runtime.Source{
		Worker: "attack", ABI: runtime.ABIExtism, Bytes: main, Linked: []runtime.Linked{{Name: "lib", Bytes: lib}},
	})
	if err != nil {
		t.Fatal(err)
	}
	late := runtimetest.Best(func() time.Duration {
		at := runtimetest.Attempt("", "")
		at.Deadline = time.Now().Add(50 * time.Millisecond)
		got := runtimetest.Instance(t, p).Run(t.Context(), at)
		if f := got.Outcome.Failure; f == nil || f.Code != jobhost.FailTimeout {
			t.Fatalf("%+v", got.Outcome)
		}
		return time.Since(at.Deadline)
	})
	if late > runtimetest.MaxLateness {
		t.Errorf("stopped %v late", late)
	}
}

// TestKernelIsStopped: the kernel of Extism plugins has no meter of its own. It
// clears what was freed, and touches pages, as much as the guest asks for.
func TestKernelIsStopped(t *testing.T) {
	t.Parallel()
	const env = "\x0fextism:host/env"
	clearing := module("\x01\x03\x60\x01\x7e\x01\x7e\x60\x01\x7e\x00\x60\x00\x01\x7f", "\x02\x02"+env+"\x05alloc\x00\x00"+env+"\x04free\x00\x01",
		function2, "\x05\x01\x00\x01", "\x07\x01\x03run\x00\x02", "\x0a\x01"+sized("\x00"+loop+"\x42"+leb(0x2ff00000)+call(0)+call(1)+again+number(0)+"\x0b"))
	p, err := newEngine(t).Load(t.Context(), runtime.Source{
		Worker: "attack", ABI: runtime.ABIExtism, Bytes: clearing, Limits: runtime.Limits{MemoryBytes: 1 << 30},
	})
	if err != nil {
		t.Fatal(err)
	}
	if late := runtimetest.Lateness(t, p, func() *hostcall.Attempt { return runtimetest.Attempt("", "") }); late > runtimetest.MaxLateness {
		t.Errorf("stopped %v late", late)
	}
}

// longestStop is the longest time it took to stop the world while something was done.
func longestStop(do func()) (longest time.Duration) {
	done := make(chan struct{})
	var stopping sync.WaitGroup
	stopping.Go(func() {
		var stats goruntime.MemStats
		for {
			select {
			case <-done:
				return
			default:
			}
			began := time.Now()
			goruntime.ReadMemStats(&stats)
			longest = max(longest, time.Since(began))
		}
	})
	do()
	close(done)
	stopping.Wait()
	return longest
}

// TestLargeInputStopsNothing: the input of a job may be as large as its payload,
// and the host keeps working while it is written to the guest's memory.
func TestLargeInputStopsNothing(t *testing.T) {
	const size = 512 << 20
	// jh_buf grows the memory by the requested size, and returns where that begins.
	buffer := number(0) + "\x20\x00" + number(16) + "\x76" + number(1) + "\x6a\x40\x00\x1a\x1a" + number(1<<16)
	body := func(code string) string { return sized("\x00" + code + "\x0b") }
	p := load(t, newEngine(t), module("\x01\x02\x60\x01\x7f\x01\x7f\x60\x01\x7f\x01\x7e", "\x03\x02\x00\x01", "\x05\x01\x00\x01",
		"\x07\x03"+exportMemory+"\x06jh_buf\x00\x00\x06jh_run\x00\x01", "\x0a\x02"+body(buffer)+body("\x42\x00")), runtime.Limits{MemoryBytes: size + 1<<20})
	at := runtimetest.Attempt("", "")
	at.Input = make([]byte, size)
	late := runtimetest.Best(func() time.Duration {
		i := runtimetest.Instance(t, p)
		defer func() { _ = i.Close(context.Background()) }()
		return longestStop(func() {
			if got := i.Run(t.Context(), at); got.Outcome.Kind != jobhost.OutcomeSucceeded {
				t.Fatalf("%+v", got.Outcome.Failure)
			}
		})
	})
	if late > runtimetest.MaxLateness {
		t.Errorf("the host stopped for %v", late)
	}
}

// TestKernelEndsAtOnce: a plugin uses all of the kernel's memory and returns. That
// is not cleared, as the sandbox is replaced; where the sandbox is kept, the host
// keeps working while it is cleared.
func TestKernelEndsAtOnce(t *testing.T) {
	const env = "\x0fextism:host/env"
	taking := module("\x01\x02\x60\x01\x7e\x01\x7e\x60\x00\x01\x7f", "\x02\x01"+env+"\x05alloc\x00\x00", "\x03\x01\x01", "\x05\x01\x00\x01",
		"\x07\x01\x03run\x00\x01", "\x0a\x01"+sized("\x00\x42"+leb(500<<20)+call(0)+"\x1a"+number(0)+"\x0b"))
	for _, isolation := range []runtime.Isolation{runtime.IsolateJob, runtime.IsolateInstance} {
		t.Run(string(isolation), func(t *testing.T) {
			p, err := newEngine(t).Load(t.Context(), runtime.Source{
				Worker: "attack", ABI: runtime.ABIExtism, Bytes: taking, Isolation: isolation, Limits: runtime.Limits{MemoryBytes: 1 << 30},
			})
			if err != nil {
				t.Fatal(err)
			}
			if late := runtimetest.Best(func() time.Duration {
				i := runtimetest.Instance(t, p)
				defer func() { _ = i.Close(context.Background()) }()
				return longestStop(func() {
					if got := i.Run(t.Context(), runtimetest.Attempt("", "")); got.Outcome.Kind != jobhost.OutcomeSucceeded {
						t.Fatalf("%+v", got.Outcome.Failure)
					}
				})
			}); late > runtimetest.MaxLateness {
				t.Errorf("the host stopped for %v", late)
			}
		})
	}
}

// TestReferencesTakeNoMemory: a job makes a million references to one function,
// which are the same one.
func TestReferencesTakeNoMemory(t *testing.T) {
	p := load(t, newEngine(t), attack(1, false, loop+strings.Repeat("\xd2\x01\x1a", 1000)+bump(1)+counter+number(1000)+"\x49\x0d\x00\x0b"), runtime.Limits{})
	i := runtimetest.Instance(t, p)
	used := func() int64 {
		var stats goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := used()
	if got := i.Run(t.Context(), runtimetest.Attempt("", "")); got.Outcome.Kind != jobhost.OutcomeSucceeded {
		t.Fatalf("%+v", got.Outcome.Failure)
	}
	if more := used() - before; more > 4<<20 {
		t.Errorf("they took %d bytes", more)
	}
	goruntime.KeepAlive(i)
}

// TestLongNamesAreStopped: a plugin asks for a config entry with a name of
// gigabytes, which the host can't compare with those of a large config in pieces.
func TestLongNamesAreStopped(t *testing.T) {
	t.Parallel()
	const env = "\x0fextism:host/env"
	asking := module("\x01\x02\x60\x01\x7e\x01\x7e\x60\x00\x01\x7f", "\x02\x02"+env+"\x05alloc\x00\x00"+env+"\x0aconfig_get\x00\x00",
		"\x03\x01\x01", "\x05\x01\x00\x01", "\x07\x01\x03run\x00\x02",
		"\x0a\x01"+sized("\x01\x01\x7e\x42"+leb(0x7ff00000)+call(0)+"\x21\x00"+loop+"\x20\x00"+call(1)+"\x1a"+again+number(0)+"\x0b"))
	p, err := newEngine(t).Load(t.Context(), runtime.Source{
		Worker: "attack", ABI: runtime.ABIExtism, Bytes: asking, Limits: runtime.Limits{MemoryBytes: 3 << 30},
	})
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]string{}
	for n := range 20 {
		config["key"+strconv.Itoa(n)] = "value"
	}
	if late := runtimetest.Lateness(t, p, func() *hostcall.Attempt {
		at := runtimetest.Attempt("", "")
		at.Config = config
		return at
	}); late > runtimetest.MaxLateness {
		t.Errorf("stopped %v late", late)
	}
}

const function2 = "\x03\x01\x02" // one function, of type 2
