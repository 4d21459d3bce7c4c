// Package sdktest is the suite that every SDK passes: a guest that is written
// with it says the same to a host as those of the others.
package sdktest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// Subject is an SDK under test, in the form of a guest whose entries are named
// after the cases of the suite: plugins/sdk/go/conform says what each has to do.
type Subject struct {
	Module []byte
	// Open opens what is no Wasm, such as a process, until the end of t; nil = Module is loaded.
	Open func(t *testing.T, src runtime.Source) runtime.Plugin
	// Default is what the guest calls the entry jh_run; empty = jh_run.
	Default string
	// Lacks are cases that the SDK has no way to express.
	Lacks []string
}

// open loads the guest.
func (s *Subject) open(t *testing.T) runtime.Plugin {
	if s.Open != nil {
		return s.Open(t, runtime.Source{Worker: "sdk", Config: map[string]string{"greeting": "hello", "wide": wide, "empty": ""}})
	}
	p := load(t, s.Module)
	if got := p.Info().ABI; got != runtime.ABIJobhost {
		t.Fatalf("the guest's ABI is %s", got)
	}
	return p
}

// name is what the guest calls an entry.
func (s *Subject) name(entry string) string {
	if entry == "jh_run" {
		return cmp.Or(s.Default, entry)
	}
	return entry
}

// cases are what the suite looks at, in the order in which one sandbox runs them:
// what one leaves behind, the next ones must not meet.
var cases = []struct {
	entry string
	test  func(t *testing.T, s *sandbox)
}{
	{"jh_run", testUpper},
	{"fresh", testFresh},
	{"echo", testEcho},
	{"info", testInfo},
	{"log", testLog},
	{"fail", testFail},
	{"retry", testRetry},
	{"snooze", testSnooze},
	{"draw", testDraw},
	{"count", testCount},
	{"keep", testKeep},
	{"swap", testSwap},
	{"panic", testPanic},
	{"fetch", testFetch},
	{"race", testRace},
	{"timeout", testTimeout},
	{"child", testChild},
	{"spread", testSpread},
	{"defer", testDefer},
	{"inbox", testInbox},
	{"fresh", testFresh},
}

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	p := s.open(t)
	box := newSandbox(t, p)
	for _, c := range cases {
		if slices.Contains(s.Lacks, c.entry) {
			continue
		}
		t.Run(c.entry, func(t *testing.T) {
			box.entry = s.name(c.entry)
			if !slices.Contains(p.Info().Entries, box.entry) {
				t.Fatalf("the guest doesn't export %s; it has %q", box.entry, p.Info().Entries)
			}
			// Twice, since a guest that works once may leave something behind.
			c.test(t, box)
			c.test(t, box)
		})
	}
	if !slices.Contains(s.Lacks, "instance") {
		t.Run("instance", func(t *testing.T) {
			if s.Open == nil {
				p = loadAs(t, s.Module, runtime.IsolateInstance)
			}
			testInstance(t, p)
		})
	}
}

// testInstance: in a sandbox that is not put back, an SDK that keeps what a job
// allocated runs out of memory in the end.
func testInstance(t *testing.T, p runtime.Plugin) {
	box := newSandbox(t, p)
	w := newWorld()
	for i := range 72 { // of 64 MiB there is less than one for each
		large := strings.Repeat("0123456789abcdef", 1<<16)[i+1:]
		w.keys["k"] = item{value: []byte(large)}
		box.entry = "keep"
		check(t, box.succeed(t, w, ""), large)
		if box.entry = "echo"; i%8 > 0 {
			continue
		}
		check(t, box.succeed(t, w, large), large)
		check(t, box.succeed(t, w, large[:i]), large[:i])
	}
}

// cacheDir is shared by all tests and their later runs, so that each guest is
// compiled once.
var cacheDir = filepath.Join(os.TempDir(), fmt.Sprintf("jobhost-test-cache-%d", os.Getuid()))

// load loads a guest into an engine that is closed at the end of t.
func load(t *testing.T, module []byte) runtime.Plugin {
	t.Helper()
	return loadAs(t, module, runtime.IsolateJob)
}

func loadAs(t *testing.T, module []byte, isolation runtime.Isolation) runtime.Plugin {
	t.Helper()
	e, err := wasm.New(wasm.Config{CacheDir: cacheDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	p, err := e.Load(t.Context(), runtime.Source{Worker: "sdk", Path: "sdk.wasm", Bytes: module, Isolation: isolation})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return p
}

// sandbox runs one job after the other, as a slot of a pool does.
type sandbox struct {
	box   *runtime.Sandbox
	entry string
	// ended is called when a job has ended and nothing of it was given up yet; may
	// be nil.
	ended func()
}

func newSandbox(t *testing.T, p runtime.Plugin) *sandbox {
	s := &sandbox{}
	s.box = runtime.NewSandbox(p, func(*runtime.Result) {
		if s.ended != nil {
			s.ended()
		}
	})
	t.Cleanup(func() {
		if err := s.box.Close(context.Background()); err != nil {
			t.Errorf("close the sandbox: %v", err)
		}
	})
	return s
}

// attempt returns an attempt at the entry in a world.
func (s *sandbox) attempt(w *world, input string) *hostcall.Attempt {
	at := runtimetest.Attempt(s.entry, input)
	at.Services, at.MaySubmit = w, []string{"other"}
	return at
}

// run runs a job and returns what became of it, and its log.
func (s *sandbox) run(t *testing.T, at *hostcall.Attempt) (jobhost.Outcome, string) {
	t.Helper()
	got := s.box.Run(t.Context(), at)
	log, _ := at.TakeLog()
	return got, string(log)
}

// succeed runs a job that must succeed, and returns its result.
func (s *sandbox) succeed(t *testing.T, w *world, input string) string {
	t.Helper()
	got, log := s.run(t, s.attempt(w, input))
	if got.Kind != jobhost.OutcomeSucceeded {
		t.Fatalf("%s(%.80q) %v: %+v\n%s", s.entry, input, got.Kind, got.Failure, log)
	}
	return string(got.Output)
}

// fail runs a job that must fail.
func (s *sandbox) fail(t *testing.T, w *world, input string) *jobhost.Failure {
	t.Helper()
	got, log := s.run(t, s.attempt(w, input))
	if got.Kind != jobhost.OutcomeFailed {
		t.Fatalf("%s(%.80q) %v with %.80q\n%s", s.entry, input, got.Kind, got.Output, log)
	}
	return got.Failure
}

// check compares a result.
func check(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%.200q (%d bytes) instead of %.200q (%d bytes)", got, len(got), want, len(want))
	}
}
