package extismabi_test

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/extism"
	"github.com/jobhost/jobhost/runtime/extismabi"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	i := open(t, setup{}, "probe")
	for _, tt := range []struct{ name, entry, input, output, message string }{
		{name: "no output", entry: "noop"},
		{name: "output", entry: "echo", input: "hello", output: "hello"},
		{name: "no exit code", entry: "no_result", input: "hello", output: "hello"},
		{name: "error", entry: "fail", input: "no \x1b[0m such file\r\n", message: `no \x1b[0m such file`},
		{name: "error of JSON", entry: "fail", input: `{"code": "x", "retryable": false}`, message: `{"code": "x", "retryable": false}`},
		{name: "empty error", entry: "fail"},
		{name: "long error", entry: "fail", input: strings.Repeat("x", 10_000), message: strings.Repeat("x", 4096) + " …(cut)"},
		{name: "exit code", entry: "code", input: "x", message: "the plugin returned -7 and no error text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := i.run(tt.entry, attempt(tt.input))
			if err != nil || string(got.Output) != tt.output {
				t.Errorf("%q, %v", got.Output, err)
			}
			if f := got.Failure; (f == nil) != (tt.message == "") {
				t.Errorf("%+v", f)
			} else if f != nil && (f.Message != tt.message || f.Code != jobhost.FailWorker || !f.Retryable) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestFailThenTrap: the error that a plugin reported is available even if it trapped afterwards.
func TestFailThenTrap(t *testing.T) {
	t.Parallel()
	i := open(t, setup{}, "probe")
	at := attempt("out of luck")
	if got, err := i.call(i.main.ExportedFunction("fail_trap"), at); err == nil {
		t.Fatalf("%+v", got)
	}
	if got, failed := i.plugin.Failed(at); !failed || got.Failure.Message != "out of luck" {
		t.Errorf("%t, %+v", failed, got)
	}
}

// TestLimits: memory of the kernel, and of the result.
func TestLimits(t *testing.T) {
	t.Parallel()
	i := open(t, setup{options: extismabi.Options{Limits: extism.Limits{MemoryBytes: 4 << 20}}}, "probe")
	got, err := i.run("echo", attempt(strings.Repeat("x", 4<<20)))
	if err != nil || got.Failure == nil || got.Failure.Code != jobhost.FailMemory || got.Failure.Category != jobhost.CategoryResource || !strings.Contains(got.Failure.Message, "no room for the input of 4194304 bytes") {
		t.Errorf("%+v, %v", got.Failure, err)
	}
	got, err = i.run("echo", attempt(strings.Repeat("x", 1500<<10)))
	if err != nil || got.Failure == nil || got.Failure.Code != jobhost.FailOutputTooLarge {
		t.Errorf("%+v, %v", got.Failure, err)
	}
	if got := i.must(t, "hog", attempt("")); got != "3" || !i.plugin.Refused() {
		t.Errorf("%s MiB, refused %t", got, i.plugin.Refused())
	}
	at := attempt("name")
	at.Config = map[string]string{"name": strings.Repeat("v", 5<<20)}
	if trap := i.trapOf(t, "config", at); trap.Category != jobhost.CategoryResource || trap.Error() != "extism:host/env.alloc: there is no room for an answer of 5242880 bytes in the memory of at most 4194304" {
		t.Errorf("%+v", trap)
	}
	if i.plugin.Reset() {
		t.Error("a kernel of 4 MiB is kept")
	}
	i = open(t, setup{}, "probe")
	// 250 MB in all, in blocks of up to 5,000 bytes.
	if got, err := strconv.Atoi(i.must(t, "churn", attempt(""))); err != nil || got > 300_000 {
		t.Errorf("after taking and freeing there are %d bytes", got)
	}
	if !i.plugin.Reset() {
		t.Error("a small kernel is not kept")
	}
}

// TestPristine: an attempt sees nothing of the one before, whatever that did.
func TestPristine(t *testing.T) {
	t.Parallel()
	i := open(t, setup{}, "probe")
	secret := strings.Repeat("secret", 10_000)
	for _, before := range []func() (jobhost.Outcome, error){
		func() (jobhost.Outcome, error) { return i.run("echo", attempt(secret)) },
		func() (jobhost.Outcome, error) { return i.run("fail", attempt(secret)) },
		func() (jobhost.Outcome, error) { return i.run("fail_trap", attempt(secret)) },
		func() (jobhost.Outcome, error) { return i.run("var", attempt("name="+secret)) },
		func() (jobhost.Outcome, error) { return i.run("scribble", attempt("all")) },
		func() (jobhost.Outcome, error) { return i.run("scribble", attempt("forge")) },
		func() (jobhost.Outcome, error) { return i.run("scribble", attempt("reset")) },
	} {
		_, _ = before() // some trap, which doesn't matter here
		if got := i.must(t, "peek", attempt("")); got != "8" {
			t.Errorf("%s bytes are not zero; 8 are of peek's own block", got)
		}
		if got := i.must(t, "var", attempt("name")); got != "" {
			t.Errorf("a var is there: %.20s", got)
		}
		if got := i.must(t, "vowels", attempt("hello world")); got != "3" {
			t.Errorf("%s vowels", got)
		}
		if got, err := i.run("noop", attempt("")); err != nil || got.Failure != nil || len(got.Output) > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// TestKernelSurvives calls the kernel with any arguments, near the blocks that it has handed
// out. Nothing traps, nothing is outside the heap, and a reset clears everything.
func TestKernelSurvives(t *testing.T) {
	t.Parallel()
	p, k := newPlugin(t, extismabi.Options{Limits: extism.Limits{MemoryBytes: 2 << 20}})
	var functions []extismabi.Function
	for _, f := range extismabi.Functions() {
		if strings.HasSuffix(f.Name, "_get") && f.Name != "error_get" || strings.HasPrefix(f.Name, "http") ||
			strings.HasPrefix(f.Name, "log") || f.Name == "var_set" || f.Name == "get_log_level" {
			continue // needs an attempt
		}
		functions = append(functions, f)
	}
	rapid.Check(t, func(rt *rapid.T) {
		k := kernel{rt, k.module}
		p.Reset()
		if failure := p.Begin(attempt(rapid.String().Draw(rt, "input"))); failure != nil {
			rt.Fatal(failure)
		}
		place := rapid.OneOf(
			rapid.Uint64Range(500, 1200), rapid.Map(rapid.Uint64Range(66, 200), func(n uint64) uint64 { return n * 8 }),
			rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1<<32 - 1, 1 << 32, 1<<64 - 1, 1<<64 - 8, 1 << 20}),
		)
		for range rapid.IntRange(1, 50).Draw(rt, "steps") {
			f := rapid.SampledFrom(functions).Draw(rt, "function")
			args := make([]uint64, len(f.Params))
			for n := range args {
				args[n] = place.Draw(rt, "argument")
			}
			if got := k.call(f.Name, args...); f.Name == "alloc" && got != 0 && (got < 528 || got >= 2<<20) {
				rt.Fatalf("a block at %d", got)
			}
		}
		p.End(attempt(""), 0)
		p.Reset()
		if !k.isNew() {
			rt.Fatal("memory is not zero after a reset")
		}
	})
}

func TestLogs(t *testing.T) {
	t.Parallel()
	i := open(t, setup{}, "probe")
	lines := []string{"debug a\n", "debug a\n", "info a\n", "warn a\n", "error a\n"}
	for level, want := range map[slog.Level]struct {
		answer string
		from   int
	}{-8: {"0", 0}, -7: {"1", 1}, -4: {"1", 1}, 0: {"2", 2}, 1: {"3", 3}, 4: {"3", 3}, 8: {"4", 4}, 9: {"2147483647", 5}} {
		at := attempt("a")
		at.Limits.LogLevel = level
		if got := i.must(t, "logs", at); got != want.answer {
			t.Errorf("level %d: the guest got %s", level, got)
		}
		if got, _ := at.TakeLog(); string(got) != strings.Join(lines[want.from:], "") {
			t.Errorf("level %d: %q", level, got)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	i := open(t, setup{}, "probe")
	for name, want := range map[string]string{"greeting": "hello", "empty": "", "none": "", "": ""} {
		at := attempt(name)
		at.Config = map[string]string{"greeting": "hello", "empty": ""}
		if got := i.must(t, "config", at); got != want {
			t.Errorf("%s = %q", name, got)
		}
	}
}

// TestTrapIsFound: an engine recognizes a trap by the error of the call.
func TestTrapIsFound(t *testing.T) {
	t.Parallel()
	i := open(t, setup{}, "probe")
	_, err := i.run("http", attempt(`{"url": "http://a.example"}`))
	if trap, ok := errors.AsType[*extismabi.Trap](err); !ok || trap.Call != "http_request" || trap.Category != jobhost.CategoryValidation {
		t.Errorf("%v", err)
	}
}
