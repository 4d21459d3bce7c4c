package process_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// newNatives returns an engine that is closed at the end of t.
func newNatives(t testing.TB, cfg process.NativeConfig) *process.Natives {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Guard = []string{exe, "guard"}; cfg.Logger == nil {
		cfg.Logger = testLogger(t)
	}
	e, err := process.NewNatives(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// rogueSource is this test's own binary as a plugin that starts in a given way.
func rogueSource(t testing.TB, how string) runtime.Source {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.Source{
		Worker: "native", Path: exe, Bytes: program, ABI: runtime.ABIProcess, Limits: runtime.Limits{MemoryBytes: 1 << 30},
		System: runtime.System{Args: []string{"rogue", how}}, Slots: 4,
	}
}

// rogueOf loads it, and closes it at the end of t.
func rogueOf(t testing.TB, e *process.Natives) runtime.Plugin {
	t.Helper()
	p, err := e.Load(t.Context(), rogueSource(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// run runs an attempt at an entry, in a slot of its own.
func run(t testing.TB, p runtime.Plugin, entry, input string) jobhost.Outcome {
	t.Helper()
	return runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt(entry, input)).Outcome
}

// wantOutput fails unless an outcome is a success with that output.
func wantOutput(t testing.TB, o jobhost.Outcome, want string) {
	t.Helper()
	if o.Kind != jobhost.OutcomeSucceeded || string(o.Output) != want {
		t.Fatalf("%v %.200q %v, want %q", o.Kind, o.Output, o.Failure, want)
	}
}

// wantFailure fails unless an outcome is a failure with a code, of which the message says something.
func wantFailure(t testing.TB, o jobhost.Outcome, code, says string) {
	t.Helper()
	if o.Kind != jobhost.OutcomeFailed || o.Failure.Code != code || !strings.Contains(o.Failure.Message, says) {
		t.Fatalf("%v %+v, want failure %s that says %q", o.Kind, o.Failure, code, says)
	}
}

// TestNativeThatDoesNotStart checks the errors for a plugin that isn't one, or that hangs.
func TestNativeThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		"exit":      "ended before it had shaken hands (exit status 7; it said: no configuration)",
		"hang":      "has not shaken hands within 2s",
		"garbage":   "the first line that it printed is no handshake: hello, world",
		"long":      "the first line that it printed is no handshake",
		"version":   "it speaks version 2 of the protocol, and this host speaks version 1",
		"protocol":  "speaks version 7 of the protocol, and this host speaks version 1",
		"entries":   `has an entry "\x1b[2J", which no job can name`,
		"elsewhere": "its socket is not in the folder that it was given",
		"above":     "its socket is not in the folder that it was given",
		"abstract":  "its socket is not in the folder that it was given",
		"link":      "what it calls its socket is none",
		"file":      "what it calls its socket is none",
		"tcp":       "it listens on tcp instead of a unix socket",
		"netrpc":    "unsupported plugin protocol",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			_, err := newNatives(t, process.NativeConfig{StartTime: 2 * time.Second}).Load(t.Context(), rogueSource(t, how))
			if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v, want %q", err, want)
			}
			if len(err.Error()) > 20<<10 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		_, err := newNatives(t, process.NativeConfig{}).Load(t.Context(), runtime.Source{Worker: "text", Path: "/text", Bytes: []byte("hello"), Limits: runtime.Limits{MemoryBytes: 1 << 30}})
		if err == nil || !strings.Contains(err.Error(), "neither a program for this machine nor a script") {
			t.Error(err)
		}
	})
	t.Run("interpreter", func(t *testing.T) {
		t.Parallel()
		_, err := newNatives(t, process.NativeConfig{}).Load(t.Context(), runtime.Source{Worker: "text", Path: "/text", Bytes: []byte("#!/no/such\nhello"), Limits: runtime.Limits{MemoryBytes: 1 << 30}})
		if err == nil || !strings.Contains(err.Error(), "the interpreter that its #! line names is not there") {
			t.Error(err)
		}
	})
}

// TestNativeEnds has a plugin that dies, and one that hangs, during an attempt.
func TestNativeEnds(t *testing.T) {
	t.Parallel()
	p := rogueOf(t, newNatives(t, process.NativeConfig{}))
	wantOutput(t, run(t, p, "echo", "first"), "first")
	wantFailure(t, run(t, p, "exit", ""), jobhost.FailCrash, "exit status 3")
	wantOutput(t, run(t, p, "echo", "after a crash"), "after a crash")

	wantFailure(t, hang(t, p), jobhost.FailTimeout, "")
	wantOutput(t, run(t, p, "echo", "after a hang"), "after a hang")

	ctx, cancel := context.WithCancelCause(t.Context())
	at := runtimetest.Attempt("until", "")
	at.Services = &runtimetest.Services{Emitted: func(string) { cancel(hostcall.ErrCancelled) }}
	if o := runtimetest.Instance(t, p).Run(ctx, at).Outcome; o.Kind != jobhost.OutcomeCancelled {
		t.Errorf("cancelled: %v %v", o.Kind, o.Failure)
	}
	wantFailure(t, run(t, p, "stopped", ""), "stopped", "nobody has stopped it")
	wantOutput(t, run(t, p, "nothing", ""), "")
	wantFailure(t, run(t, p, "huge", ""), jobhost.FailOutputTooLarge, "")
	wantOutput(t, run(t, p, "emit", ""), "said")
	wantFailure(t, run(t, p, "broken", ""), jobhost.FailWorker, "a \uFFFD")
	wantFailure(t, run(t, p, "memory", ""), jobhost.FailCrash, "")
}

// hang runs an attempt that has to be killed.
func hang(t testing.TB, p runtime.Plugin) jobhost.Outcome {
	t.Helper()
	i, at := runtimetest.Instance(t, p), runtimetest.Attempt("hang", "")
	hangs := false
	at.Services = &runtimetest.Services{Emitted: func(string) { hangs = true }}
	at.Deadline = time.Now().Add(time.Second)
	o := i.Run(t.Context(), at).Outcome
	if !hangs {
		t.Error("the attempt was over before it could hang")
	}
	return o
}

// TestInnocent has one attempt crash its process: other attempts in it are not counted, and suspects run alone
// the next time.
func TestInnocent(t *testing.T) {
	t.Parallel()
	p := rogueOf(t, newNatives(t, process.NativeConfig{}))
	beside := func(job string, bad func() jobhost.Outcome) (innocent, guilty jobhost.Outcome) {
		there := make(chan struct{})
		at := runtimetest.Attempt("until", "")
		at.Job = job
		at.Services = &runtimetest.Services{Emitted: func(string) { close(there) }}
		ended := make(chan jobhost.Outcome, 1)
		i := runtimetest.Instance(t, p)
		go func() { ended <- i.Run(context.Background(), at).Outcome }()
		<-there
		guilty = bad()
		return <-ended, guilty
	}
	innocent, guilty := beside("innocent", func() jobhost.Outcome { return hang(t, p) })
	wantFailure(t, guilty, jobhost.FailTimeout, "")
	if innocent.Kind != jobhost.OutcomeReturned {
		t.Errorf("beside one that hangs: %v %v", innocent.Kind, innocent.Failure)
	}

	exit := func() jobhost.Outcome {
		at := runtimetest.Attempt("exit", "")
		at.Job = "guilty"
		return runtimetest.Instance(t, p).Run(t.Context(), at).Outcome
	}
	innocent, guilty = beside("unlucky", exit)
	if innocent.Kind != jobhost.OutcomeReturned || guilty.Kind != jobhost.OutcomeReturned {
		t.Fatalf("two in a process that dies: %v, %v", innocent.Kind, guilty.Kind)
	}
	// Alone, its guilt shows, and it doesn't hurt others.
	there := make(chan struct{})
	at := runtimetest.Attempt("until", "")
	at.Services = &runtimetest.Services{Emitted: func(string) { close(there) }}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan jobhost.Outcome, 1)
	i := runtimetest.Instance(t, p)
	go func() { ended <- i.Run(ctx, at).Outcome }()
	<-there
	wantFailure(t, exit(), jobhost.FailCrash, "exit status 3")
	unlucky := runtimetest.Attempt("echo", "fine")
	unlucky.Job = "unlucky"
	wantOutput(t, runtimetest.Instance(t, p).Run(t.Context(), unlucky).Outcome, "fine")
	cancel()
	if o := <-ended; o.Kind != jobhost.OutcomeReturned {
		t.Errorf("the one beside: %v %v", o.Kind, o.Failure)
	}
}

// TestDisabled has a plugin that fails five times, and then stays disabled until it is enabled again.
func TestDisabled(t *testing.T) {
	t.Parallel()
	p := rogueOf(t, newNatives(t, process.NativeConfig{}))
	told := make(chan string, 10)
	p.(runtime.Fallible).OnDisabled(func(reason string) { told <- reason })
	for range 5 {
		wantFailure(t, run(t, p, "exit", ""), jobhost.FailCrash, "")
	}
	if reason := <-told; !strings.Contains(reason, "5 failures within a minute") || !strings.Contains(reason, "exit status 3") {
		t.Errorf("told: %s", reason)
	}
	if o := run(t, p, "echo", ""); o.Kind != jobhost.OutcomeReturned {
		t.Errorf("while it is disabled: %v %v", o.Kind, o.Failure)
	}
	p.(runtime.Fallible).Enable()
	if reason := <-told; reason != "" {
		t.Errorf("told: %s", reason)
	}
	wantOutput(t, run(t, p, "echo", "again"), "again")
}

// countingLog counts what is logged.
type countingLog struct{ lines, bytes atomic.Int64 }

// Write implements [io.Writer].
func (c *countingLog) Write(p []byte) (int, error) {
	c.lines.Add(1)
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// TestFlood has a plugin write 16 MB to its error output, and in a chaos run 1 GB: it isn't blocked, and the log is
// bounded.
func TestFlood(t *testing.T) {
	t.Parallel()
	lines, most := "8000", int64(4<<20)
	if os.Getenv("JOBHOST_CHAOS") != "" {
		lines, most = "500000", 16<<20
	}
	log := &countingLog{}
	p := rogueOf(t, newNatives(t, process.NativeConfig{Logger: slog.New(slog.NewTextHandler(log, nil))}))
	wantOutput(t, run(t, p, "flood", lines), "said")
	// What may be logged within ten seconds, times a few since this may take longer.
	if n := log.bytes.Load(); n > most {
		t.Errorf("%d bytes in %d lines were logged", n, log.lines.Load())
	}
}

// TestSurroundings checks what a plugin sees: nothing of the host's environment, limits in force, and no
// other processes.
func TestSurroundings(t *testing.T) {
	t.Setenv("JOBHOST_CANARY", "a-secret-of-the-host")
	src := rogueSource(t, "")
	src.Env = map[string]string{"GREETING": "hello there"}
	p, err := newNatives(t, process.NativeConfig{}).Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	env := string(run(t, p, "env", "").Output)
	if strings.Contains(env, "a-secret-of-the-host") || !strings.Contains(env, "GREETING=hello there") || !strings.Contains(env, "JOBHOST_WORKER=native") {
		t.Errorf("the environment is\n%s", env)
	}
	limits := string(run(t, p, "limits", "").Output)
	for _, want := range []string{
		"Max core file size        0                    0", "Max open files            1024                 1024",
		"Max data size             1073741824           1073741824", "NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		if !strings.Contains(limits, want) {
			t.Errorf("no %q in\n%s", want, limits)
		}
	}
	if os.Geteuid() == 0 {
		if seen := strings.Fields(string(run(t, p, "numbers", "").Output)); len(seen) > 2 {
			t.Errorf("it sees the processes %v", seen)
		}
	}
}

// TestSwappedProgram replaces the file of a running plugin: restarts use what was loaded.
func TestSwappedProgram(t *testing.T) {
	t.Parallel()
	src := rogueSource(t, "")
	src.Path = filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(src.Path, src.Bytes, 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := newNatives(t, process.NativeConfig{}).Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	if err := os.WriteFile(src.Path, []byte("#!/bin/sh\necho swapped\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, run(t, p, "exit", ""), jobhost.FailCrash, "")
	wantOutput(t, run(t, p, "echo", "the same"), "the same")
}
