package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/crash"
	"github.com/jobhost/jobhost/host/hosttest"
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
	s.leave(text)
}

// leave leaves the text with which Go has ended a host, unless it is empty.
func (s *crashSite) leave(text string) {
	s.t.Helper()
	if text == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(s.dir, crash.Folder, "running.txt"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// start runs a host after that, until the test ends or stop is called.
func (s *crashSite) start() (h *hosttest.Host, stop func()) {
	s.t.Helper()
	j, recorder := s.open()
	cfg := s.cfg
	cfg.Journal, cfg.Crash = j, recorder
	h, end := run(s.t, cfg)
	stop = sync.OnceFunc(func() {
		if err := errors.Join(end(), j.Close()); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return h, stop
}

const fatal = "fatal error: out of memory\n\ngoroutine 1 [running]:\nmain.main()\n"

func (s *crashSite) held(h *hosttest.Host, id, reason string) {
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

// forgotten checks that nothing is held against a worker or task any more.
func (s *crashSite) forgotten() {
	s.t.Helper()
	notes, err := s.cfg.Store.Notes(s.t.Context())
	delete(notes, "clock.seen")
	if err != nil || len(notes) > 0 {
		s.t.Errorf("%v, %v", notes, err)
	}
}

// reload reloads the host with another pool of the first worker, and with another
// version of its plugin unless that is empty.
func (s *crashSite) reload(h *hosttest.Host, slots int, version string) {
	s.t.Helper()
	workers := slices.Clone(s.cfg.Workers)
	workers[0].PoolSize = slots
	workers[0].Plugin = append([]byte(version), workers[0].Plugin...)
	if _, err := h.SetWorkers(s.t.Context(), workers); err != nil {
		s.t.Fatal(err)
	}
}

// dieLoading leaves what a host leaves that dies while it loads the plugins of workers.
func (s *crashSite) dieLoading(text string, workers ...string) {
	s.t.Helper()
	j, _ := s.open()
	for i := range s.cfg.Workers {
		for _, name := range workers {
			if w := &s.cfg.Workers[i]; w.Name == name {
				j.Begin(&journal.Task{Worker: name, Job: digest(w.Plugin), Load: true, Place: journal.Inline, Began: time.Now()}, journal.Running)
			}
		}
	}
	s.leave(text)
}

func digest(plugin []byte) string {
	sum := sha256.Sum256(plugin)
	return hex.EncodeToString(sum[:])
}

func (s *crashSite) status(h *hosttest.Host, worker string) jobhost.WorkerStatus {
	s.t.Helper()
	workers, err := h.Workers(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range workers {
		if workers[i].Name == worker {
			return workers[i]
		}
	}
	s.t.Fatalf("no worker %s", worker)
	return jobhost.WorkerStatus{}
}

// runs checks where a job of the worker "test" runs.
func (s *crashSite) runs(h *hosttest.Host, place runtime.Placement) {
	s.t.Helper()
	job := wait(s.t, h, submit(s.t, h, jobhost.Spec{}))
	ran := s.engine.places()
	if job.State != jobhost.Succeeded || ran[len(ran)-1] != place {
		s.t.Errorf("%+v ran %v", job, ran)
	}
}
