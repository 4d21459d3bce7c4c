package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// speaker is a guest in some language.
type speaker struct {
	name  string
	open  func(*testing.T, runtime.Source) runtime.Plugin
	entry string
	// once means that it is a command, which no instance runs twice without a reset.
	once bool
	// grows means that it uses so much memory that it is replaced instead.
	grows bool
}

func speakers() []speaker {
	sdk := func(names string) func(*testing.T, runtime.Source) runtime.Plugin {
		return func(t *testing.T, src runtime.Source) runtime.Plugin { return loadFixture(t, src, names) }
	}
	return []speaker{
		{"C", opener(guests.Outcomes), "echo", false, false},
		{"C with a failure", opener(guests.Outcomes), "fail_retry", false, false},
		{"C command", opener(guests.LibC), "_start", true, false},
		{"C by Extism", opener(guests.Extism), "echo", false, false},
		{"Rust by Extism", sdk("count_vowels"), "count_vowels", false, false},
		{"TinyGo by Extism", sdk("replace"), "run_test", false, false},
		{"TinyGo by Extism, two modules", sdk("lib main"), "run_test", false, false},
		{"Haskell by Extism", sdk("hello_haskell"), "testing", false, false},
		{"Go by Extism", sdk("std_command"), "_start", true, true},
		{"Go", built(goWorker), "jh_run", false, false},
		{"Go command", built(goCommand), "_start", true, false},
	}
}

// built opens a guest in Go.
func built(module func(*testing.T) []byte) func(*testing.T, runtime.Source) runtime.Plugin {
	return func(t *testing.T, src runtime.Source) runtime.Plugin { return opener(module(t))(t, src) }
}

// TestNothingRemains: after a job, a sandbox is byte for byte the same as a new
// one, in any guest language. That the job's payload is found in sandboxes that
// aren't reset shows that it could have stayed.
func TestNothingRemains(t *testing.T) {
	t.Parallel()
	const canary = "a canary that sings of what it was told"
	payload := strings.Repeat(canary+"\n", 100)
	for _, s := range speakers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := s.open(t, runtime.Source{Entry: s.entry})
			used := runtimetest.Instance(t, p)
			for n := range 3 {
				got := used.Run(t.Context(), runtimetest.Attempt("", payload))
				if s.grows && got.Replace == runtime.ReplacedGrown {
					return
				}
				if got.Replace != "" || got.Reset == 0 {
					t.Fatalf("job %d: replaced for %q, %+v", n, got.Replace, got.Outcome.Failure)
				}
				sameContents(t, wasm.ContentsOf(used), wasm.ContentsOf(runtimetest.Instance(t, p)))
			}
			if s.once {
				return
			}
			keeping := runtimetest.Instance(t, s.open(t, runtime.Source{Entry: s.entry, Isolation: runtime.IsolateInstance}))
			keeping.Run(t.Context(), runtimetest.Attempt("", payload))
			if !slices.ContainsFunc(wasm.ContentsOf(keeping).Memories, func(m []byte) bool { return bytes.Contains(m, []byte(canary)) }) {
				t.Error("the payload is not even in a sandbox that keeps everything: this test is blind")
			}
			fresh := runtimetest.Instance(t, s.open(t, runtime.Source{Entry: s.entry, Isolation: runtime.IsolateFresh}))
			if got := fresh.Run(t.Context(), runtimetest.Attempt("", payload)); got.Replace != runtime.ReplacedFresh {
				t.Errorf("isolation fresh: replaced for %q", got.Replace)
			}
		})
	}
}

// sameContents compares a sandbox that was used with a new one, the size of its
// memory included.
func sameContents(t *testing.T, used, fresh wasm.Contents) {
	t.Helper()
	if !slices.Equal(used.Globals, fresh.Globals) {
		t.Errorf("globals %v instead of %v", used.Globals, fresh.Globals)
	}
	if len(used.Memories) != len(fresh.Memories) {
		t.Fatalf("%d memories instead of %d", len(used.Memories), len(fresh.Memories))
	}
	for n, want := range fresh.Memories {
		got := used.Memories[n]
		if !bytes.Equal(got, want) {
			t.Errorf("memory %d differs from that of a new sandbox: it has %d bytes instead of %d, or others", n, len(got), len(want))
		}
	}
}

// TestCommandForgets: what a Go command leaves in its variables, its
// environment and its descriptors is gone.
func TestCommandForgets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600), os.Mkdir(filepath.Join(dir, "folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	module := goCommand(t)
	for _, isolation := range []runtime.Isolation{runtime.IsolateJob, runtime.IsolateFresh} {
		p := opener(module)(t, runtime.Source{Isolation: isolation, System: runtime.System{Mounts: []runtime.Mount{{Host: dir, Guest: "/data"}}}})
		sandbox := runtime.NewSandbox(p, nil)
		t.Cleanup(func() { _ = sandbox.Close(context.Background()) })
		for _, step := range [][2]string{{"look", "found "}, {"plant", "planted"}, {"look", "found "}, {"plant", "planted"}, {"look", "found "}} {
			at := runtimetest.Attempt("", step[0])
			got := sandbox.Run(t.Context(), at)
			if log, _ := at.TakeLog(); string(got.Output) != step[1] {
				t.Errorf("%s, isolation %s: %q, %+v, log %s", step[0], isolation, got.Output, got.Failure, log)
			}
		}
	}
}

// TestRandomDiffers: two jobs in a row of one sandbox draw different numbers in
// each language, from each generator. What the generators of a Go worker that
// need no source draw is an exception: see plugins/sdk/go/rand.go.
func TestRandomDiffers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, entry, input string
		open               func(*testing.T, runtime.Source) runtime.Plugin
		fields             int // of the output, to be compared
	}{
		{name: "C", entry: "random", open: opener(guests.Exit)},
		{name: "C command", input: "random\n", open: opener(guests.Command)},
		{name: "Go", entry: "luck", fields: 1, open: built(goWorker)},
		{name: "Go command", input: "random", fields: 3, open: built(goCommand)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			i := runtimetest.Instance(t, c.open(t, runtime.Source{}))
			seen := map[string]bool{}
			draws := 0
			for range 4 {
				got := i.Run(t.Context(), runtimetest.Attempt(c.entry, c.input))
				if got.Outcome.Kind != jobhost.OutcomeSucceeded || got.Replace != "" {
					t.Fatalf("%+v, replaced for %q", got.Outcome.Failure, got.Replace)
				}
				numbers := []string{string(got.Outcome.Output)}
				if c.fields > 0 {
					numbers = strings.Fields(numbers[0])[:c.fields]
				}
				for _, n := range numbers {
					seen[n] = true
					draws++
				}
			}
			if len(seen) != draws {
				t.Errorf("%d different numbers out of %d", len(seen), draws)
			}
		})
	}
}
