package sdktest

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// RunProcess runs the suite of all SDKs, and then what is of processes only.
func RunProcess(t *testing.T, e Executable) {
	said := &lines{}
	var p runtime.Plugin
	Run(t, Subject{
		Open: func(t *testing.T, src runtime.Source) runtime.Plugin {
			src.Path, src.ABI, src.Env = e.Path, runtime.ABIProcess, e.Env
			p = open(t, src, slog.New(slog.NewTextHandler(said, nil)))
			return p
		},
		Default: "default",
		Lacks:   []string{"fresh"}, // a process keeps its memory
	})
	if p == nil {
		return // it was not asked for
	}
	for name, test := range map[string]func(t *testing.T, p runtime.Plugin){
		"large": testLarge, "meet": testMeet, "cancelled": testCancelled, "late": testLate, "survives": testSurvives, "no entry": testNoEntry,
	} {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
	t.Run("lines", func(t *testing.T) {
		newSandbox(t, p).call(t, "lines")
		for _, line := range []string{"to the output", "to the error output"} {
			said.await(t, line)
		}
	})
	t.Run("leaves", func(t *testing.T) {
		began := time.Now()
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 1500*time.Millisecond { // after 2 s it would be killed
			t.Errorf("it takes %v to end by itself", took)
		}
	})
}

// call runs a job at an entry, which must succeed.
func (s *sandbox) call(t *testing.T, entry string) string {
	t.Helper()
	s.entry = entry
	return s.succeed(t, newWorld(), "")
}

// size passes its input on, piece by piece; echo in one. Both are too large for a frame.
func testLarge(t *testing.T, p runtime.Plugin) {
	input := strings.Repeat("0123456789abcdef", 5<<16+7)
	for _, entry := range []string{"size", "echo"} {
		s := newSandbox(t, p)
		s.entry = entry
		at := s.attempt(newWorld(), input)
		at.Limits.OutputBytes = 8 << 20
		got, log := s.run(t, at)
		if got.Kind != jobhost.OutcomeSucceeded {
			t.Fatalf("%s %v: %+v", entry, got.Kind, got.Failure)
		}
		check(t, string(got.Output), input)
		if want := "info " + strconv.Itoa(len(input)) + "\n"; entry == "size" && log != want {
			t.Errorf("log %q instead of %q", log, want)
		}
	}
}

// meet waits until there are four of it at the same time.
func testMeet(t *testing.T, p runtime.Plugin) {
	var jobs sync.WaitGroup
	for range 4 {
		s := newSandbox(t, p)
		jobs.Go(func() {
			if got, log := s.run(t, at(s, "meet")); got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != "True" {
				t.Errorf("%v with %q: %+v\n%s", got.Kind, got.Output, got.Failure, log)
			}
		})
	}
	jobs.Wait()
}

func at(s *sandbox, entry string) *hostcall.Attempt {
	s.entry = entry
	return s.attempt(newWorld(), "")
}

// waited is a world that tells when somebody wants to wait for a timer.
type waited struct {
	*world

	once  sync.Once
	asked chan struct{}
}

// After implements [hostcall.Ops].
func (w *waited) After(a *hostcall.Attempt, d time.Duration) hostcall.Pending {
	w.once.Do(func() { close(w.asked) })
	return w.world.After(a, d)
}

// wait waits for an hour. When its job is cancelled it notes that.
func testCancelled(t *testing.T, p runtime.Plugin) {
	s := newSandbox(t, p)
	attempt := at(s, "wait")
	w := &waited{world: newWorld(), asked: make(chan struct{})}
	attempt.Services = w
	go func() {
		<-w.asked
		attempt.Cancel()
	}()
	began := time.Now()
	if got, log := s.run(t, attempt); got.Kind != jobhost.OutcomeCancelled {
		t.Errorf("%v with %q: %+v\n%s", got.Kind, got.Output, got.Failure, log)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
	if _, told := w.keys["told"]; !told {
		t.Error("the handler was not told, or could not ask any more")
	}
}

// wait is stopped at its deadline, and the process goes on.
func testLate(t *testing.T, p runtime.Plugin) {
	s := newSandbox(t, p)
	before := s.call(t, "fresh")
	attempt := at(s, "wait")
	attempt.Deadline = time.Now().Add(50 * time.Millisecond)
	if got, _ := s.run(t, attempt); got.Failure == nil || got.Failure.Code != jobhost.FailTimeout {
		t.Errorf("%v with %q: %+v", got.Kind, got.Output, got.Failure)
	}
	checkNext(t, s, before)
}

// fresh counts jobs, so that it shows whether the process is the same.
func checkNext(t *testing.T, s *sandbox, before string) {
	t.Helper()
	n, _ := strconv.Atoi(before)
	check(t, s.call(t, "fresh"), strconv.Itoa(n+1))
}

// A handler that breaks down breaks nothing else, and leaves where it was.
func testSurvives(t *testing.T, p runtime.Plugin) {
	s := newSandbox(t, p)
	before := s.call(t, "fresh")
	s.entry = "panic"
	if f := s.fail(t, newWorld(), ""); !f.Retryable || !strings.Contains(f.Stack, "panic") {
		t.Errorf("%+v", f)
	}
	checkNext(t, s, before)
}

func testNoEntry(t *testing.T, p runtime.Plugin) {
	s := newSandbox(t, p)
	for _, entry := range []string{"nonsense", "__class__", "constructor"} {
		s.entry = entry
		if f := s.fail(t, newWorld(), ""); f.Retryable || f.Code != "no_entry" || f.Category != jobhost.CategoryValidation {
			t.Errorf("%+v", f)
		}
	}
}

// lines are what an engine logs.
type lines struct {
	mu   sync.Mutex // protects the rest
	text strings.Builder
	more chan struct{} // closed with the next line; nil = nobody waits
}

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return l.text.Write(p)
}

// await waits for a text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		l.mu.Lock()
		said := l.text.String()
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		if strings.Contains(said, text) {
			return
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("no %q in the log:\n%s", text, said)
		}
	}
}

// BenchProcess tells how many jobs a second go through an SDK, that do nothing.
func BenchProcess(b *testing.B, e Executable) {
	p := open(b, runtime.Source{Worker: "sdk", Path: e.Path, ABI: runtime.ABIProcess, Env: e.Env}, nil)
	b.SetParallelism(processSlots / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		i, err := p.Instantiate(context.Background())
		if err != nil {
			b.Error(err)
			return
		}
		at := runtimetest.Attempt("noop", "hello")
		for pb.Next() {
			if got := i.Run(context.Background(), at).Outcome; got.Kind != jobhost.OutcomeSucceeded {
				b.Errorf("%+v", got.Failure)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
