package taskstate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// apartSetup is a queue's store and states that are elsewhere.
type apartSetup struct {
	testing.TB
	jobs   *queuetest.Memory
	states *remote
	keeper *taskstate.Keeper
	stop   func()
}

func newApart(t testing.TB) *apartSetup {
	s := &apartSetup{TB: t, jobs: queuetest.NewMemory(), states: &remote{Memory: statetest.NewMemory()}}
	s.start()
	t.Cleanup(func() {
		s.stop()
		_ = s.jobs.Close()
	})
	return s
}

// Job implements [taskstate.Jobs].
func (s *apartSetup) Job(ctx context.Context, id string) (jobhost.Job, error) {
	record, err := s.jobs.Job(ctx, id)
	return jobhost.Job{ID: id, Worker: "w", TaskCount: record.JobSpec.Tasks, CreatedAt: record.CreatedAt.Time()}, err
}

// start makes a keeper. What it does in the background begins with tend.
func (s *apartSetup) start() {
	s.keeper = taskstate.New(taskstate.Config{Store: s.states, Notes: s.jobs, Jobs: s, Logger: slog.New(slog.DiscardHandler)})
	s.stop = s.keeper.Close
}

// tend starts what removes states in the background.
func (s *apartSetup) tend() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.keeper.EndRemoved(ctx) })
	wg.Go(func() { _ = s.keeper.DeleteRemoved(ctx) })
	s.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		s.keeper.Close()
	})
}

// crash starts over with what was durable.
func (s *apartSetup) crash() {
	s.stop()
	s.jobs = s.jobs.Reopen()
	s.states.mu.Lock()
	s.states.Memory, s.states.feeds = s.states.Reopen(), nil
	s.states.mu.Unlock()
	s.start()
}

func (s *apartSetup) commit(op record.Op) {
	s.Helper()
	done := make(chan error, 1)
	s.jobs.Commit([]record.Op{op}, func(results []record.OpResult, err error) {
		if err == nil {
			err = results[0].Err
		}
		if err == nil && results[0].Gone {
			s.keeper.Gone()
		}
		done <- err
	})
	if err := <-done; err != nil {
		s.Fatalf("%T: %v", op, err)
	}
}

// submit adds a job that may be removed at once.
func (s *apartSetup) submit(id string) {
	s.Helper()
	s.commit(&record.Submit{Job: &record.JobSpec{ID: id, Worker: "w", Tasks: 1, MaxAttempts: 1}})
	s.keeper.Published(&jobhost.Event{Kind: jobhost.EventSubmitted, Job: id})
	s.commit(&record.Cancel{ID: id, At: 1})
}

func (s *apartSetup) remove(id string) {
	s.Helper()
	s.commit(&record.Delete{ID: id})
}

func (s *apartSetup) set(job state.Job) error {
	_, err := s.keeper.SetState(s.Context(), job.Run, jobhost.TaskState{JobID: job.ID, Tag: "a", Status: 1}, 1)
	return err
}

func (s *apartSetup) mustSet(job state.Job) {
	s.Helper()
	if err := s.set(job); err != nil {
		s.Fatal(err)
	}
}

// wantVersion fails the test unless the last state has that version; 0 = there is none.
func (s *apartSetup) wantVersion(job state.Job, want int64) {
	s.Helper()
	report, err := s.keeper.States(s.Context(), jobhost.StateQuery{Job: job.ID, Run: job.Run, Tag: "a"})
	if want == 0 && jobhost.CodeOf(err) == jobhost.CodeNotFound {
		return
	}
	if err != nil || report.State.Version != want {
		s.Errorf("%s is at version %d, %v; want %d", job.Key(), report.State.Version, err, want)
	}
}

func (s *apartSetup) wantStored(want int) {
	s.Helper()
	list, err := s.states.Jobs(s.Context(), "", 1000)
	if err != nil || len(list) != want {
		s.Errorf("the store has states of %d jobs, %v; want %d", len(list), err, want)
	}
}

var (
	jobA   = state.Job{ID: "a"}
	jobRun = state.Job{ID: "a", Run: "1"}
	fiberA = state.Job{ID: "a", Run: "_fiber"}
	jobB   = state.Job{ID: "b"}
)

// TestStatesGoWithTheirJob: the states of a job that was removed are gone at once for who
// asks, and from the store soon after it; those of others stay.
func TestStatesGoWithTheirJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newApart(t)
		s.tend()
		for _, id := range []string{"a", "b", "silent"} {
			s.submit(id)
		}
		s.mustSet(jobA)
		s.mustSet(jobRun)
		s.mustSet(jobB)
		g := s.keeper.Guest(fiberA, 0, 1)
		defer g.Close()
		if err := g.Set(t.Context(), jobhost.TaskState{Tag: "a"}); err != nil {
			t.Fatal(err)
		}
		s.remove("a")
		s.remove("silent")
		s.wantVersion(jobA, 0)
		s.wantVersion(jobRun, 0)
		s.wantVersion(jobB, 1)
		synctest.Wait()
		s.wantStored(2)
		if got, err := g.State(t.Context(), hostcall.StateQuery{Task: 0, Tag: "a"}); err != nil || got.Version != 1 {
			t.Errorf("the states of the fiber: %+v, %v", got, err)
		}
	})
}

// TestReusedID: a new job with the id of one that was removed begins without states:
// while the store is away for an hour, and after crashes at any point.
func TestReusedID(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(s *apartSetup){
		"at once":           func(*apartSetup) {},
		"a crash":           func(s *apartSetup) { s.crash() },
		"away for an hour":  func(s *apartSetup) { s.states.goAway(); time.Sleep(time.Hour); s.wantAway(jobA); s.states.comeBack() },
		"away, and a crash": func(s *apartSetup) { s.states.goAway(); s.wantAway(jobA); s.crash(); s.states.comeBack() },
	} {
		for _, tended := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", tended ", tended), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := newApart(t)
					if tended {
						s.tend()
					}
					s.submit("a")
					s.mustSet(jobA)
					s.mustSet(jobRun)
					s.remove("a")
					s.submit("a")
					between(s)
					s.wantVersion(jobA, 0)
					s.wantVersion(jobRun, 0)
					s.mustSet(jobA)
					s.wantVersion(jobA, 1)
					if tended {
						time.Sleep(time.Hour)
						s.wantVersion(jobA, 1)
						s.wantStored(1)
					}
				})
			})
		}
	}
}

func (s *apartSetup) wantAway(job state.Job) {
	s.Helper()
	if err := s.set(job); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		s.Errorf("while the store is away a state of a new job is answered with %v", err)
	}
}

// TestBarrierOfReusedID: the tasks of a new job don't meet at the barrier of the former one.
func TestBarrierOfReusedID(t *testing.T) {
	t.Parallel()
	s := newApart(t)
	s.submit("a")
	old := s.keeper.Guest(jobA, 0, 1)
	t.Cleanup(old.Close)
	set := func(g *taskstate.Guest) error {
		return g.Set(t.Context(), jobhost.TaskState{Tag: "a", Status: jobhost.StatusFinished})
	}
	if err := set(old); err != nil {
		t.Fatal(err)
	}
	s.remove("a")
	s.submit("a")
	g := s.keeper.Guest(jobA, 0, 1)
	t.Cleanup(g.Close)
	stream := watch(t, g, hostcall.StateQuery{Task: hostcall.AllTasks, Tag: "a"})
	if got := read(t, stream); got != "sentinel" {
		t.Errorf("the new job's tasks see %s", got)
	}
	if err := set(old); !errors.Is(err, state.ErrDeleted) {
		t.Errorf("an attempt of the former job: %v", err)
	}
	if err := set(g); err != nil {
		t.Error(err)
	}
	if got := read(t, stream); got != "0 a 2147483647" {
		t.Errorf("then they see %s", got)
	}
}

// TestWatchersOfRemovedJob: watchers of a removed job are notified at once, even while the
// store of states is unavailable and deletions wait for it.
func TestWatchersOfRemovedJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newApart(t)
		for _, job := range []state.Job{jobA, jobB} {
			s.submit(job.ID)
			s.mustSet(job)
		}
		s.tend()
		var ended error
		go func() {
			for _, err := range s.keeper.WatchStates(t.Context(), jobhost.StateQuery{Job: "a"}) {
				ended = err
			}
		}()
		synctest.Wait()
		s.states.mu.Lock()
		s.states.away = true
		s.states.mu.Unlock()
		s.remove("b") // its deletion fails, and waits to be tried again
		synctest.Wait()
		s.remove("a")
		synctest.Wait()
		if !errors.Is(ended, state.ErrDeleted) {
			t.Errorf("the watch ended with %v", ended)
		}
		list, err := s.keeper.StateJobs(t.Context(), jobhost.StateJobFilter{})
		if err != nil || len(list.Jobs) != 0 {
			t.Errorf("listed: %+v, %v", list, err)
		}
		s.wantStored(2)
		s.states.comeBack()
		time.Sleep(time.Minute)
		s.wantStored(0)
	})
}

// TestReusedIDHammer removes jobs and submits them again while many set and read their
// states: none ever sees a state of a former one, and no acknowledged one is lost.
func TestReusedIDHammer(t *testing.T) {
	t.Parallel()
	s := newApart(t)
	s.tend()
	for _, id := range []string{"a", "b"} {
		var life atomic.Int32 // of the id; a state tells which set it
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					before := life.Load()
					report, err := s.keeper.States(ctx, jobhost.StateQuery{Job: id, Tag: "a"})
					if err == nil && len(report.States) > 0 && report.States[0].Status < before {
						t.Errorf("a state of life %d in life %d", report.States[0].Status, before)
					}
				}
			})
		}
		for n := range int32(200) {
			s.submit(id)
			life.Store(n + 1)
			for version := range int64(2) {
				st, err := s.keeper.SetState(ctx, "", jobhost.TaskState{JobID: id, Tag: "a", Status: n + 1}, 1)
				if err != nil || st.Version != version+1 {
					t.Fatalf("life %d: version %d, %v", n+1, st.Version, err)
				}
			}
			s.remove(id)
		}
		cancel()
		wg.Wait()
	}
}
