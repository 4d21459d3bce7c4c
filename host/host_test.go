package host_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// config is that of a host in memory with one worker, "test", which has the
// entries of guests.Outcomes.
func config(t testing.TB) host.Config {
	t.Helper()
	cfg := hosttest.Config(t)
	workers := cfg.Workers
	workers[0].Path = "outcomes.wasm"
	return host.Config{
		Store: cfg.Store, States: cfg.States, Engine: cfg.Engine, ShutdownTimeout: time.Minute, CancelGrace: cfg.CancelGrace, Workers: workers,
		Reread: func(context.Context) (host.Update, error) {
			return host.Update{Workers: workers}, nil
		},
	}
}

// run runs a host until the test ends, or stop is called.
func run(t testing.TB, cfg host.Config) (h *hosttest.Host, stop func() error) {
	t.Helper()
	h = hosttest.Start(t, cfg)
	return h, h.Stop
}

func submit(t testing.TB, h *hosttest.Host, spec jobhost.Spec) string {
	t.Helper()
	spec.Worker = "test"
	receipt, err := h.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
}

func wait(t testing.TB, h *hosttest.Host, id string) jobhost.Job {
	t.Helper()
	job, err := h.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// begun waits until an attempt of the job runs.
func begun(t *testing.T, h *hosttest.Host, id string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		job, err := h.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State == jobhost.Running {
			return
		}
		if job.State.Ended() {
			t.Fatalf("job is %v", job.State)
		}
	}
}

func TestOutcomesOfGuests(t *testing.T) {
	t.Parallel()
	h, _ := run(t, config(t))
	tests := []struct {
		entry    string
		state    jobhost.State
		code     string
		attempts int
	}{
		{"echo", jobhost.Succeeded, "", 1},
		{"empty", jobhost.Succeeded, "", 1},
		{"fail_retry", jobhost.Dead, "", 3},
		{"fail_permanent", jobhost.Dead, "", 1},
		{"trap", jobhost.Dead, jobhost.FailTrap, 3},
		{"no_such_entry", jobhost.Dead, jobhost.FailNoEntry, 1},
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			t.Parallel()
			job := wait(t, h, submit(t, h, jobhost.Spec{Entry: tt.entry, Payload: []byte("in")}))
			if job.State != tt.state || job.Tasks[0].Attempt != tt.attempts {
				t.Errorf("job is %v after %d attempts, want %v after %d", job.State, job.Tasks[0].Attempt, tt.state, tt.attempts)
			}
			if tt.code != "" && (len(job.Failures) == 0 || job.Failures[0].Code != tt.code) {
				t.Errorf("failures %+v, want code %s", job.Failures, tt.code)
			}
		})
	}
}

func TestStatesOfALife(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	h, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if server, err := h.Server(); server != nil || jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("a host that does not run answers %v", err)
	}
	running, stop := run(t, cfg)
	h = running.Host
	if s := h.State(); s != host.Running {
		t.Errorf("the host is %v", s)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if s := h.State(); s != host.Stopped {
		t.Errorf("the host is %v", s)
	}
	if err := h.Run(t.Context()); err == nil {
		t.Error("a host ran twice")
	}
}

func TestAllFaultyPluginsAreReported(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	for _, name := range []string{"bad-one", "bad-two"} {
		w := cfg.Workers[0]
		w.Name, w.Plugin = name, []byte("#!/bin/sh\n")
		cfg.Workers = append(cfg.Workers, w)
	}
	h, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = h.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "bad-one") || !strings.Contains(err.Error(), "bad-two") {
		t.Errorf("run: %v", err)
	}
	if server, err := h.AwaitReady(t.Context()); server != nil || jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("await: %v", err)
	}
}

func TestStopWaitsForRunningTasks(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	h, stop := run(t, cfg)
	id := submit(t, h, jobhost.Spec{Entry: "spin", Timeout: 300 * time.Millisecond})
	begun(t, h, id)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	job, err := h.Job(t.Context(), id)
	if err != nil || len(job.Failures) != 1 || job.Failures[0].Code != jobhost.FailTimeout {
		t.Errorf("the task was not let run to its deadline: %+v, %v", job.Failures, err)
	}
}

func TestStopReturnsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.ShutdownTimeout = 10 * time.Millisecond
	h, stop := run(t, cfg)
	id := submit(t, h, jobhost.Spec{Entry: "spin"})
	begun(t, h, id)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	job, err := h.Job(t.Context(), id)
	if err != nil || job.State != jobhost.Ready || job.Tasks[0].Attempt != 0 {
		t.Errorf("the task is %v at attempt %d, %v; want ready at 0", job.State, job.Tasks[0].Attempt, err)
	}
}

func TestCancelStopsARunningGuest(t *testing.T) {
	t.Parallel()
	h, _ := run(t, config(t))
	id := submit(t, h, jobhost.Spec{Entry: "spin"})
	begun(t, h, id)
	if _, err := h.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	// Both slots are free again when two more jobs run at once.
	for range 2 {
		if job := wait(t, h, submit(t, h, jobhost.Spec{})); job.State != jobhost.Succeeded {
			t.Errorf("job is %v", job.State)
		}
	}
}

func TestEventsOfAJobInOrder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	kinds := map[string][]jobhost.EventKind{}
	cfg := config(t)
	cfg.OnEvent = func(e jobhost.Event) {
		mu.Lock()
		defer mu.Unlock()
		kinds[e.Job] = append(kinds[e.Job], e.Kind)
	}
	h, _ := run(t, cfg)
	id := submit(t, h, jobhost.Spec{Entry: "fail_retry", MaxAttempts: 2})
	wait(t, h, id)
	mu.Lock()
	defer mu.Unlock()
	want := []jobhost.EventKind{
		jobhost.EventSubmitted, jobhost.EventStarted, jobhost.EventRetrying, jobhost.EventStarted, jobhost.EventDead, jobhost.EventEnded,
	}
	if !slices.Equal(kinds[id], want) {
		t.Errorf("events %v, want %v", kinds[id], want)
	}
}

func TestWorkersAreDescribed(t *testing.T) {
	t.Parallel()
	h, _ := run(t, config(t))
	wait(t, h, submit(t, h, jobhost.Spec{}))
	workers, err := h.Workers(t.Context())
	if err != nil || len(workers) != 1 {
		t.Fatalf("workers %+v, %v", workers, err)
	}
	w := workers[0]
	if w.Name != "test" || w.ABI != "jobhost" || w.Entry != "echo" || w.Slots != 2 || w.Tasks["succeeded"] != 1 {
		t.Errorf("worker %+v", w)
	}
}

func TestConfigReportsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := host.New(host.Config{Workers: []host.Worker{{Name: "Bad Name"}}})
	for _, want := range []string{"no store", "no engine", "worker name", "pool size", "queue capacity"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestRestartOnDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	cfg := config(t)
	open := func() *sqlitequeue.Store {
		t.Helper()
		store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := open()
	cfg.Store = store
	h, stop := run(t, cfg)
	id := submit(t, h, jobhost.Spec{Payload: []byte("kept"), Delay: 300 * time.Millisecond})
	if err := errors.Join(stop(), store.Close()); err != nil {
		t.Fatal(err)
	}
	store = open()
	defer store.Close()
	cfg.Store = store
	h, stop = run(t, cfg)
	wait(t, h, id)
	result, err := h.Result(t.Context(), id, 0)
	if err != nil || string(result.Data) != "kept" {
		t.Errorf("result %q, %v", result.Data, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestReadersAreSparedOthersEvents: a reader that doesn't read isn't too slow for
// what it didn't ask for.
func TestReadersAreSparedOthersEvents(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	other := cfg.Workers[0]
	other.Name = "other"
	cfg.Workers = append(cfg.Workers, other)
	h, _ := run(t, cfg)
	wait(t, h, submit(t, h, jobhost.Spec{}))
	if _, err := h.Submit(t.Context(), jobhost.Spec{ID: "late", Worker: "other", Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	queries := map[string]jobhost.EventQuery{
		"a job": {Job: "late"}, "a worker": {Worker: "other"}, "a job of a worker": {Job: "late", Worker: "other"}, "everything": {},
	}
	goOn, live, ends := make(chan struct{}), make(chan struct{}), make(map[string]chan error)
	for name, query := range queries {
		query.After = 1 // which it has seen, so that it is there with its first event
		end := make(chan error, 1)
		ends[name] = end
		go func() {
			read := 0
			for event, err := range h.Events(t.Context(), query) {
				if read++; read == 1 {
					live <- struct{}{}
					<-goOn
				}
				if err != nil || event.Job == "late" && event.Kind == jobhost.EventEnded {
					end <- err
					return
				}
			}
		}()
	}
	for range queries {
		<-live
	}
	for range 500 { // with three events each and more
		wait(t, h, submit(t, h, jobhost.Spec{}))
	}
	if _, err := h.Cancel(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	for name, end := range ends {
		if err := <-end; (err != nil) != (name == "everything") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
