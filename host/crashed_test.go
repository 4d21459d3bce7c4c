package host_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/crash"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// placed is an engine whose attempts do as their payload says, and tell where they ran.
type placed struct {
	refuses bool // processes
	plain   bool // gives plugins for processes that are none

	mu  sync.Mutex // protects ran
	ran []runtime.Placement
}

// Load implements [runtime.Engine].
func (e *placed) Load(_ context.Context, src runtime.Source) (runtime.Plugin, error) {
	p := &placedPlugin{engine: e, place: runtime.SandboxInline}
	if src.Sandbox != runtime.SandboxProcess {
		return p, nil
	}
	p.place = runtime.SandboxProcess
	switch {
	case e.refuses:
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "no processes here"}
	case e.plain:
		return p, nil
	}
	return &processPlugin{placedPlugin: p}, nil
}

// Close implements [runtime.Engine].
func (e *placed) Close(context.Context) error { return nil }

// places are those of the attempts so far.
func (e *placed) places() []runtime.Placement {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]runtime.Placement(nil), e.ran...)
}

type placedPlugin struct {
	engine *placed
	place  runtime.Placement
}

func (p *placedPlugin) Info() runtime.Info { return runtime.Info{ABI: runtime.ABIJobhost} }

func (p *placedPlugin) Instantiate(context.Context) (runtime.Instance, error) { return p, nil }

func (p *placedPlugin) Close(context.Context) error { return nil }

// Run implements [runtime.Instance].
func (p *placedPlugin) Run(_ context.Context, at *hostcall.Attempt) runtime.Result {
	p.engine.mu.Lock()
	p.engine.ran = append(p.engine.ran, p.place)
	p.engine.mu.Unlock()
	switch {
	case string(at.Input) == "die" && p.place == runtime.SandboxProcess:
		return runtime.Result{Outcome: at.Failure(jobhost.FailCrash, jobhost.CategorySystem, "signal: segmentation fault"), Replace: runtime.ReplacedTrap}
	case string(at.Input) == "pretend":
		return runtime.Result{Outcome: at.Failure(jobhost.FailCrash, jobhost.CategorySystem, "says the worker")}
	}
	return runtime.Result{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeSucceeded, Output: []byte(p.place)}}
}

// processPlugin is one that can lose what it needs, as those in processes can.
type processPlugin struct{ *placedPlugin }

func (*processPlugin) OnDisabled(func(string)) {}

func (*processPlugin) Enable() {}

// crashSite is the folder of a store, in which hosts run one after the other.
type crashSite struct {
	t      *testing.T
	dir    string
	cfg    host.Config
	engine *placed
}

func newCrashSite(t *testing.T) *crashSite {
	t.Helper()
	s := &crashSite{t: t, dir: t.TempDir(), cfg: config(t), engine: &placed{}}
	s.cfg.Engine = s.engine
	return s
}

func (s *crashSite) open() (*journal.Journal, *crash.Recorder) {
	s.t.Helper()
	j, err := journal.Open(filepath.Join(s.dir, journal.FileName), func() {})
	if err != nil {
		s.t.Fatal(err)
	}
	recorder, err := crash.Open(s.dir, j, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	return j, recorder
}

// submit leaves a job in the store that no host has run.
func (s *crashSite) submit(spec jobhost.Spec) string {
	s.t.Helper()
	q, err := queue.New(s.t.Context(), s.cfg.Store, queue.Config{
		Workers: []queue.Worker{{Name: "test", Capacity: 10, Retry: s.cfg.Workers[0].Retry, Timeout: time.Minute}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	spec.Worker = "test"
	receipt, err := q.Submit(s.t.Context(), spec)
	if err := errors.Join(err, q.Close(s.t.Context())); err != nil {
		s.t.Fatal(err)
	}
	return receipt.ID
}

// die leaves what a host leaves that dies while the first attempts of jobs are in a
// phase. With a text Go has ended it.
func (s *crashSite) die(text string, phase journal.Phase, ids ...string) {
	s.t.Helper()
	j, _ := s.open()
	for _, id := range ids {
		record, err := s.cfg.Store.Job(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		task := record.Tasks[0]
		j.Begin(&journal.Task{
			Worker: "test", Job: id, Place: journal.Inline, Number: task.Attempt + 1, Key: int64(task.Key), Token: task.Token, Began: time.Now(),
		}, phase)
	}
	if text != "" {
		if err := os.WriteFile(filepath.Join(s.dir, crash.Folder, "running.txt"), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// start runs a host after that.
func (s *crashSite) start() (h *host.Host, stop func() error) {
	s.t.Helper()
	j, recorder := s.open()
	cfg := s.cfg
	cfg.Journal, cfg.Crash = j, recorder
	h, end := run(s.t, cfg)
	stop = sync.OnceValue(func() error {
		err := end()
		_ = j.Close()
		return err
	})
	s.t.Cleanup(func() { _ = stop() })
	return h, stop
}

const fatal = "fatal error: out of memory\n\ngoroutine 1 [running]:\nmain.main()\n"

func (s *crashSite) held(h *host.Host, id, reason string) {
	s.t.Helper()
	why, err := h.Why(s.t.Context(), id)
	if err != nil || why.State != jobhost.Held || why.Code != "disabled" || !strings.Contains(why.Reason, reason) {
		s.t.Errorf("why: %+v, %v", why, err)
	}
	workers, err := h.Workers(s.t.Context())
	if err != nil || !strings.Contains(workers[0].Disabled, reason) {
		s.t.Errorf("worker: %+v, %v", workers, err)
	}
}

func TestTaskThatEndedTheHostRunsApart(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	id := s.submit(jobhost.Spec{})
	s.die(fatal, journal.Running, id)
	h, _ := s.start()
	job := wait(t, h, id)
	if job.State != jobhost.Succeeded || job.Tasks[0].Attempt != 2 || len(job.Failures) != 1 {
		t.Fatalf("%+v", job)
	}
	f := job.Failures[0]
	if f.Code != jobhost.FailHostCrash || f.Category != jobhost.CategorySystem || strings.Contains(f.Message, "fatal") ||
		!strings.Contains(f.Context, `"cause":"fatal error: out of memory"`) || !strings.Contains(f.Context, `"file":"crashes/`) {
		t.Errorf("%+v", f)
	}
	if places := s.engine.places(); len(places) != 1 || places[0] != runtime.SandboxProcess {
		t.Errorf("it ran %v", places)
	}
	if other := wait(t, h, submit(t, h, jobhost.Spec{})); other.State != jobhost.Succeeded || s.engine.places()[1] != runtime.SandboxInline {
		t.Errorf("another job: %+v, %v", other, s.engine.places())
	}
}

// What was killed from outside counts too, but no worker gets a strike for it, and what had
// ended already is as if it had not begun.
func TestKilledHost(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	ran, waited, ended := s.submit(jobhost.Spec{}), s.submit(jobhost.Spec{}), s.submit(jobhost.Spec{})
	s.die("", journal.Running, ran)
	s.die("", journal.Waiting, waited)
	s.die("", journal.Settling, ended)
	h, stop := s.start()
	for id, attempts := range map[string]int{ran: 2, waited: 1, ended: 1} {
		if job := wait(t, h, id); job.State != jobhost.Succeeded || job.Tasks[0].Attempt != attempts {
			t.Errorf("%+v, want attempt %d", job, attempts)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if notes, err := s.cfg.Store.Notes(t.Context()); err != nil || len(notes) > 0 {
		t.Errorf("%v, %v", notes, err)
	}
}

// When what the host did has ended it, settling may have been that.
func TestEndedWhileItSettled(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	id := s.submit(jobhost.Spec{MaxAttempts: 1})
	s.die(fatal, journal.Settling, id)
	h, _ := s.start()
	if job := wait(t, h, id); job.State != jobhost.Dead || job.Failures[0].Code != jobhost.FailHostCrash {
		t.Errorf("%+v", job)
	}
}

// A worker that has ended the host twice is held, over restarts too, until it is resumed.
func TestTwoStrikes(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	id := s.submit(jobhost.Spec{MaxAttempts: 2, Payload: []byte("die")})
	s.die(fatal, journal.Running, id) // the first
	h, stop := s.start()
	job := wait(t, h, id) // in a process, the second
	if f := job.Failures; job.State != jobhost.Dead || len(f) != 2 || f[1].Code != jobhost.FailHostCrash || !strings.Contains(f[1].Message, "segmentation fault") {
		t.Fatalf("%+v", job)
	}
	next := submit(t, h, jobhost.Spec{})
	s.held(h, next, "has ended the host, or a process of its own in its place, 2 times")
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	h, stop = s.start()
	s.held(h, next, "crashes/")
	if _, err := h.StartFiber(t.Context(), jobhost.FiberSpec{ID: "f", Worker: "test"}); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("a fiber of it starts: %v", err)
	}
	if _, err := h.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if job := wait(t, h, next); job.State != jobhost.Succeeded {
		t.Errorf("%+v", job)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if notes, err := s.cfg.Store.Notes(t.Context()); err != nil || len(notes) > 0 {
		t.Errorf("%v, %v", notes, err)
	}
}

func TestStrikesEndWithAnotherVersion(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	first, second := s.submit(jobhost.Spec{MaxAttempts: 1}), s.submit(jobhost.Spec{MaxAttempts: 1})
	s.die(fatal, journal.Running, first)
	_, stop := s.start()
	_ = stop()
	<-time.After(time.Millisecond) // crashes are told apart by their time
	s.die(fatal, journal.Running, second)
	h, _ := s.start()
	next := submit(t, h, jobhost.Spec{})
	s.held(h, next, "2 times")
	workers := append([]host.Worker(nil), s.cfg.Workers...)
	workers[0].PoolSize = 3 // the same plugin
	if _, err := h.SetWorkers(t.Context(), workers); err != nil {
		t.Fatal(err)
	}
	s.held(h, next, "2 times")
	workers[0].Plugin = append([]byte("mended"), workers[0].Plugin...)
	if _, err := h.SetWorkers(t.Context(), workers); err != nil {
		t.Fatal(err)
	}
	if job := wait(t, h, next); job.State != jobhost.Succeeded {
		t.Errorf("%+v", job)
	}
}

// Without a process that it could run in, such a task is held rather than run inline again.
func TestNoProcessApart(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*placed){
		"refused": func(e *placed) { e.refuses = true }, "none": func(e *placed) { e.plain = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCrashSite(t)
			change(s.engine)
			id := s.submit(jobhost.Spec{})
			s.die("", journal.Running, id)
			h, _ := s.start()
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				if why, err := h.Why(t.Context(), id); err != nil || why.State == jobhost.Held {
					break
				}
			}
			s.held(h, id, "there is no process of its own")
			if places := s.engine.places(); len(places) > 0 {
				t.Errorf("it ran %v", places)
			}
		})
	}
}

// A worker that only names its failure like that has ended nothing.
func TestWorkerThatPretendsToCrash(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	id := s.submit(jobhost.Spec{MaxAttempts: 2, Payload: []byte("pretend")})
	s.die("", journal.Running, id)
	h, _ := s.start()
	job := wait(t, h, id)
	if f := job.Failures; job.State != jobhost.Dead || f[len(f)-1].Code != jobhost.FailCrash {
		t.Errorf("%+v", job)
	}
	if workers, err := h.Workers(t.Context()); err != nil || workers[0].Disabled != "" {
		t.Errorf("%+v, %v", workers, err)
	}
}
