package sqlitequeue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
	"github.com/jobhost/jobhost/internal/testing/powerloss"
)

// machine is a store on a disk that can fail, and what it has acknowledged.
type machine struct {
	*powerloss.Machine
	*sqlitequeue.Store

	mu    sync.Mutex // protects steps
	steps map[string]*step
}

// step is what one goroutine does: it submits two jobs in one batch, then ends
// the tasks of the first in another, with effects.
type step struct {
	id                string
	tasks             int
	cancel            bool
	key               record.Key
	begun, acked      int // batches
	payload, expected []byte
}

func newMachine(t *testing.T) *machine {
	m := &machine{steps: make(map[string]*step)}
	m.Machine = powerloss.New(t, sqlitequeue.Schemas(), func(db *sqlitedb.DB) (_ io.Closer, err error) {
		m.Store, err = sqlitequeue.New(db)
		return m.Store, err
	})
	return m
}

// work lets goroutines make steps until each has made n or the store fails.
func (m *machine) work(name string, n int, seed uint64) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			for i := range n {
				s := &step{
					id: fmt.Sprintf("%s-%d-%d", name, g, i), tasks: 1 + rng.IntN(3), cancel: rng.IntN(4) == 0,
					payload: make([]byte, rng.IntN(9_000)), expected: []byte(fmt.Sprint("result ", rng.Int64())),
				}
				if m.step(s) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

// refused notes that the last batch of a step was answered with an error: it was not made, unless the store has failed.
func (m *machine) refused(s *step) {
	if m.Err() == nil {
		s.begun = s.acked
	}
}

// step makes a step and notes what was acknowledged.
func (m *machine) step(s *step) error {
	m.mu.Lock()
	m.steps[s.id] = s
	m.mu.Unlock()
	main, other := newSpec(s.id, "w", 1), newSpec(s.id+"-b", "w", 1)
	main.Payload, main.Tasks = s.payload, s.tasks
	s.begun = 1
	res, err := commitAll(m.Store, &record.Submit{Job: main}, &record.Submit{Job: other})
	if err != nil {
		m.refused(s)
		return err
	}
	s.acked, s.key = 1, res[0].Key
	var ops []record.Op
	if s.cancel {
		ops = append(ops, &record.Cancel{ID: s.id, At: 2})
	} else {
		job := record.JobRecord{JobSpec: *main}
		job.Key = s.key
		for i := range s.tasks {
			ops = append(ops, &record.Settle{
				Key: s.key + record.Key(i), Status: record.Succeeded, Attempt: 1, EndedAt: 2, Result: s.expected,
				Effects: queuetest.Tallying(&job, i),
			})
		}
	}
	s.begun = 2
	if _, err := commitAll(m.Store, ops...); err != nil {
		m.refused(s)
		return err
	}
	s.acked = 2
	return nil
}

// commitAll waits for a batch of which nothing may be refused.
func commitAll(s record.Store, ops ...record.Op) ([]record.OpResult, error) {
	done := make(chan error, 1)
	var results []record.OpResult
	s.Commit(ops, func(res []record.OpResult, err error) {
		results = res
		for _, r := range res {
			err = errors.Join(err, r.Err)
		}
		done <- err
	})
	return results, <-done
}

// check compares what the store holds with what it acknowledged.
func (m *machine) check() {
	m.T.Helper()
	ctx := m.T.Context()
	if err := m.integrity(ctx); err != nil {
		m.T.Fatal(err)
	}
	if err := queuetest.Recount(ctx, m.Store); err != nil {
		m.T.Fatal(err)
	}
	if err := queuetest.ExactlyOnce(ctx, m.Store, "w"); err != nil {
		m.T.Fatal(err)
	}
	for _, s := range m.steps {
		if err := m.checkStep(ctx, s); err != nil {
			m.T.Fatalf("step %s (begun %d, acknowledged %d): %v", s.id, s.begun, s.acked, err)
		}
	}
}

func (m *machine) integrity(ctx context.Context) error {
	return m.DB.Read(ctx, func(r *sqlitedb.Reader) error {
		s := r.Stmt("PRAGMA integrity_check")
		for s.Step() {
			if text := s.ColText(0); text != "ok" {
				return fmt.Errorf("integrity check: %s", text)
			}
		}
		return s.Done()
	})
}

func (m *machine) checkStep(ctx context.Context, s *step) error {
	job, err := m.Job(ctx, s.id)
	_, errOther := m.Job(ctx, s.id+"-b")
	switch {
	case jobhost.CodeOf(err) != jobhost.CodeOf(errOther):
		return fmt.Errorf("half a batch is there: %w, %w", err, errOther)
	case err != nil && jobhost.CodeOf(err) != jobhost.CodeNotFound:
		return err
	case err != nil && s.acked > 0:
		return fmt.Errorf("an acknowledged submit is lost: %w", err)
	case err != nil:
		return nil //nolint:nilerr // not there, and it was not acknowledged
	case len(job.Payload) != len(s.payload):
		return fmt.Errorf("a payload of %d bytes has %d", len(s.payload), len(job.Payload))
	}
	ended, wrong := 0, record.Succeeded
	if !s.cancel {
		wrong = record.Cancelled
	}
	for _, task := range job.Tasks {
		if task.Status != record.Open {
			ended++
		}
		if task.Status == wrong {
			return fmt.Errorf("task %d is in status %d", task.Index, task.Status)
		}
		if task.Status == record.Succeeded {
			if data, err := m.Result(ctx, task.Key); err != nil || string(data) != string(s.expected) {
				return fmt.Errorf("result of task %d: %q, %w", task.Index, data, err)
			}
		}
	}
	switch {
	case ended != 0 && ended != s.tasks:
		return fmt.Errorf("half a batch is there: %d of %d tasks have ended", ended, s.tasks)
	case s.acked == 2 && ended == 0:
		return errors.New("an acknowledged settlement is lost")
	case s.begun < 2 && ended > 0:
		return errors.New("a task has ended that nobody settled")
	}
	return nil
}

// TestPowerLossAtEverySync loses power at each sync of a short life.
func TestPowerLossAtEverySync(t *testing.T) {
	t.Parallel()
	powerloss.AtEverySync(func() (*powerloss.Machine, func(int, uint64), func()) {
		m := newMachine(t)
		return m.Machine, func(n int, seed uint64) { m.work("a", n, seed) }, m.check
	})
}

// TestPowerLossAgainAndAgain lets one database live through many losses of power.
func TestPowerLossAgainAndAgain(t *testing.T) {
	t.Parallel()
	powerloss.AgainAndAgain(powerloss.Rounds(15, 30), 5, func() (*powerloss.Machine, func(int, *rand.Rand), func()) {
		m := newMachine(t)
		return m.Machine, func(life int, _ *rand.Rand) { m.work(fmt.Sprint("life", life), 5, uint64(life)) }, m.check
	})
}

// TestIOError lets the n-th write or sync fail, for every n in the chaos run
// and for some otherwise: the store stops, and what it acknowledged is there when
// it is opened again, with or without a crash.
func TestIOError(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name   string
		stride int // of which every second one crashes: see failsAt
		fault  func(n int) crashvfs.Faults
	}{
		{"write", 110, func(n int) crashvfs.Faults { return crashvfs.Faults{FailWrite: n} }},
		{"sync", 22, func(n int) crashvfs.Faults { return crashvfs.Faults{FailSync: n} }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			n := 1
			for ; failsAt(t, n, kind.fault(n)); n += powerloss.Rounds(kind.stride, 1) {
			}
			if n < 30 {
				t.Errorf("the fault was not met any more at %s %d", kind.name, n)
			}
		})
	}
}

// failsAt lets a machine run with an injected fault, and reports whether it occurred.
func failsAt(t *testing.T, n int, fault crashvfs.Faults) (met bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), 2))
	m := newMachine(t)
	m.MustStart()
	m.Disk.Set(fault)
	m.work("a", 8, 2)
	select {
	case <-m.Failed():
		_, err := commitAll(m.Store, &record.Submit{Job: newSpec("late", "w", 1)})
		if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !errors.Is(err, m.Err()) {
			t.Fatalf("a commit after the failure: %v, want %v", err, m.Err())
		}
		if _, err := m.Counts(t.Context()); err != nil {
			t.Fatalf("a read after the failure: %v", err)
		}
		met = true
	default:
	}
	if n%4 < 2 {
		m.Crash(rng)
	} else {
		m.Stop()
		m.Disk.Set(crashvfs.Faults{})
	}
	m.MustStart()
	m.check()
	m.End()
	return met
}

// TestDiskFull fills the disk: what doesn't fit fails, with a hint, and works
// again when there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for n := range powerloss.Rounds(2, 120) {
		m := newMachine(t)
		m.MustStart()
		m.Disk.Set(crashvfs.Faults{Capacity: m.Disk.Used() + int64(1+n%4)*200_000})
		m.work("before", 8, uint64(n))
		big := newSpec("big", "w", 1)
		big.Payload = make([]byte, 2<<20)
		_, err := commitAll(m.Store, &record.Submit{Job: big})
		if jobhost.CodeOf(err) != jobhost.CodeUnavailable || jobhost.HintOf(err) == "" {
			t.Fatalf("a commit without room: %v", err)
		}
		if m.Err() != nil {
			t.Fatalf("a full disk stopped the store: %v", m.Err())
		}
		m.Disk.Set(crashvfs.Faults{})
		if err := m.patiently(&record.Submit{Job: big}); err != nil {
			t.Fatalf("a commit with room again: %v", err)
		}
		m.work("after", 3, uint64(n))
		m.check()
		m.Crash(rand.New(rand.NewPCG(uint64(n), 3)))
		m.MustStart()
		m.check()
		m.End()
	}
}
