package exec_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jobhost/jobhost/host/exec"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is longer than any test here may take.
const long = 5 * time.Minute

func shell(script string) exec.Command {
	return exec.Command{Path: "sh", Args: []string{"-c", script}}
}

func start(t *testing.T, s *scope.Scope, c exec.Command) *exec.Process {
	t.Helper()
	p, err := exec.Start(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// perform performs with a limit that only a fault reaches.
func perform[T any](t *testing.T, o op.Op[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v, err := op.Perform(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func join(t *testing.T, s *scope.Scope) {
	t.Helper()
	if r, err := s.Join(t.Context()); err != nil || r.Status == scope.StatusFailed {
		t.Errorf("join: %+v, %v", r, err)
	}
}

// ready waits until a script has said that it is.
func ready(t *testing.T, out *stream.Pipe) {
	t.Helper()
	if line := perform(t, out.LineOp()); string(line) != "ready\n" {
		t.Fatalf("got %q", line)
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	s := scope.New(t.Context(), "test")
	in, out, errs := stream.NewPipe(64), stream.NewPipe(64), stream.NewPipe(64)
	c := shell(`tr a-z A-Z; echo "in $PWD with $WORD" >&2; exit 3`)
	c.Stdin, c.Stdout, c.Stderr = in, out, errs
	c.Dir, c.Env = "/", append(os.Environ(), "WORD=salt")
	p := start(t, s, c)
	text := strings.Repeat("hello ", 10000)
	go func() {
		_, _ = io.WriteString(in, text)
		_ = in.Close()
	}()
	if got, err := io.ReadAll(out); string(got) != strings.ToUpper(text) || err != nil {
		t.Errorf("output has %d bytes, %v", len(got), err)
	}
	if got, err := io.ReadAll(errs); string(got) != "in / with salt\n" || err != nil {
		t.Errorf("errors are %q, %v", got, err)
	}
	if state := perform(t, p.Exit()); state.ExitCode() != 3 {
		t.Errorf("got %v", state)
	}
	join(t, s)
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	const stubborn = `trap '' TERM; echo ready; while :; do read line || sleep 1; done`
	tests := []struct {
		name, script string
		end          func(t *testing.T, s *scope.Scope, p *exec.Process)
		want         string
	}{
		{
			"asked", `trap 'exit 7' TERM; echo ready; while :; do read line; done`,
			func(t *testing.T, _ *scope.Scope, p *exec.Process) { perform(t, p.Shutdown(long)) }, "exit status 7",
		},
		{
			"killed after the grace", stubborn,
			func(t *testing.T, _ *scope.Scope, p *exec.Process) { perform(t, p.Shutdown(time.Millisecond)) }, "signal: killed",
		},
		{
			"the shorter grace counts", stubborn,
			func(t *testing.T, _ *scope.Scope, p *exec.Process) {
				_, _, _ = op.TryPerform(p.Shutdown(long))
				_, _, _ = op.TryPerform(p.Shutdown(time.Millisecond))
				perform(t, p.Shutdown(long))
			}, "signal: killed",
		},
		{
			"a lost shutdown goes on", stubborn,
			func(t *testing.T, _ *scope.Scope, p *exec.Process) {
				_, _, _ = op.TryPerform(p.Shutdown(time.Millisecond))
			}, "signal: killed",
		},
		{"killed", stubborn, func(_ *testing.T, _ *scope.Scope, p *exec.Process) { p.Kill() }, "signal: killed"},
		{
			"end of the scope", stubborn,
			func(_ *testing.T, s *scope.Scope, _ *exec.Process) { s.Cancel(nil) }, "signal: killed",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := scope.New(t.Context(), "test")
			c := shell(tt.script)
			c.Stdin, c.Stdout = stream.NewPipe(64), stream.NewPipe(64)
			p := start(t, s, c)
			ready(t, c.Stdout)
			tt.end(t, s, p)
			if state := perform(t, p.Exit()); state.String() != tt.want {
				t.Errorf("got %v, want %s", state, tt.want)
			}
			join(t, s)
			if _, err := op.PerformRaw(c.Stdin.WriteOp([]byte("x"))); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("write after the exit: %v", err)
			}
		})
	}
}

// TestGraceOfScope: a process whose scope is cancelled may say its last words.
func TestGraceOfScope(t *testing.T) {
	t.Parallel()
	s := scope.New(t.Context(), "test")
	c := shell(`trap 'echo bye; exit' TERM; echo ready; while :; do read line; done`)
	c.Stdin, c.Stdout, c.Grace = stream.NewPipe(64), stream.NewPipe(64), long
	start(t, s, c)
	ready(t, c.Stdout)
	s.Cancel(nil)
	if line := perform(t, c.Stdout.LineOp()); string(line) != "bye\n" {
		t.Errorf("got %q", line)
	}
	join(t, s)
}

// TestUnread: output that isn't read holds up the join only until the scope is
// cancelled.
func TestUnread(t *testing.T) {
	t.Parallel()
	s := scope.New(t.Context(), "test")
	c := shell(`head -c 100000 /dev/zero; exit 0`)
	c.Stdout, c.Stderr = stream.NewPipe(16), nil
	c.Stderr = c.Stdout
	p := start(t, s, c)
	perform(t, c.Stdout.ReadOp(1))
	s.Cancel(nil)
	perform(t, p.Exit())
	join(t, s)
}

// TestOrphan: what a process has started doesn't keep its streams open.
func TestOrphan(t *testing.T) {
	t.Parallel()
	s := scope.New(t.Context(), "test")
	c := shell(`sleep 30 & echo $!`)
	c.Stdout = stream.NewPipe(64)
	p := start(t, s, c)
	got, err := io.ReadAll(c.Stdout)
	if err != nil {
		t.Error(err)
	}
	perform(t, p.Exit())
	join(t, s)
	kill := start(t, scope.New(t.Context(), "kill"), exec.Command{Path: "kill", Args: []string{strings.TrimSpace(string(got))}})
	if state := perform(t, kill.Exit()); !state.Success() {
		t.Errorf("the orphan had ended before: %v", state)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	s := scope.New(t.Context(), "test")
	c := exec.Command{Path: "/no/such/file", Stdin: stream.NewPipe(1), Stdout: stream.NewPipe(1)}
	if _, err := exec.Start(s, c); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := op.PerformRaw(c.Stdout.ReadOp(1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its output ends with %v", err)
	}
	s.Close(nil)
	_, err := exec.Start(s, shell("sleep 1000"))
	if _, ok := errors.AsType[*scope.AdmissionError](err); !ok {
		t.Errorf("got %v", err)
	}
	join(t, s)
}

// TestHammer starts and ends processes in all ways at once.
func TestHammer(t *testing.T) {
	t.Parallel()
	s := scope.New(t.Context(), "test")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 6 {
				c := shell("read line")
				c.Stdin = stream.NewPipe(64)
				p, err := exec.Start(s, c)
				if err != nil {
					t.Error(err)
					return
				}
				wg.Go(func() {
					switch i % 3 {
					case 0:
						p.Kill()
					case 1:
						_, _ = c.Stdin.Write([]byte("x\n"))
					default:
						_ = c.Stdin.Close()
					}
				})
				if _, err := op.PerformRaw(op.Choice(p.Exit(), p.Shutdown(long))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	join(t, s)
}
