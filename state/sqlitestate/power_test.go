package sqlitestate_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
	"github.com/jobhost/jobhost/internal/testing/powerloss"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// machine is a store on a disk that can fail, and what it has acknowledged.
type machine struct {
	*powerloss.Machine
	*sqlitestate.Store

	mu   sync.Mutex // protects jobs
	jobs map[state.Job]*known
}

// known is what a job may have, used by one goroutine in each life.
type known struct {
	acked   map[string]state.State // and not replaced
	open    []state.State          // begun, and not acknowledged
	deleted bool                   // it was, since then nothing was written
	maybe   bool                   // a deletion has begun, and was not acknowledged
}

func newMachine(t *testing.T) *machine {
	m := &machine{jobs: map[state.Job]*known{}}
	m.Machine = powerloss.New(t, sqlitestate.Schemas(), func(db *sqlitedb.DB) (_ io.Closer, err error) {
		m.Store, err = sqlitestate.New(db)
		return m.Store, err
	})
	return m
}

// of returns what is known of a job.
func (m *machine) of(job state.Job) *known {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.jobs[job]
	if k == nil {
		k = &known{acked: map[string]state.State{}}
		m.jobs[job] = k
	}
	return k
}

// work lets goroutines write and delete until each has done n things or the store
// fails. Jobs live on from one life of the machine to the next.
func (m *machine) work(n int, seed uint64) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			for range n {
				job := state.Job{ID: fmt.Sprintf("job-%d-%d", g, rng.IntN(3))}
				if m.step(job, rng) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

// step does a thing with a job that no other goroutine touches.
func (m *machine) step(job state.Job, rng *rand.Rand) error {
	k := m.of(job)
	if len(k.open) > 0 || k.maybe {
		return nil // settled by the next check
	}
	if rng.IntN(6) == 0 {
		k.maybe = true
		err := m.Delete(m.T.Context(), job)
		if err != nil && !isNotFound(err) {
			return err
		}
		if err != nil && len(k.acked) > 0 {
			m.T.Errorf("delete %s, which has %v: %v", job.Key(), k.acked, err)
		}
		k.maybe, k.deleted = false, true
		clear(k.acked)
		return nil
	}
	src, err := m.Open(m.T.Context(), job, 3, watch())
	if err != nil {
		return err
	}
	defer src.Close()
	for range 1 + rng.IntN(4) {
		asked := state.State{
			JobID: job.ID, TaskID: rng.IntN(3), Tag: fmt.Sprint("tag", rng.IntN(2)), Status: rng.Int32(), SchemaVersion: 1,
			EventID: fmt.Sprint("e", rng.Int64()),
			Payload: fmt.Appendf(nil, `{"text":"%0*d"}`, 1+rng.IntN(9000), 1),
		}
		k.open = append(k.open, asked)
		stored, err := src.Set(m.T.Context(), asked)
		if err != nil {
			return err
		}
		if last := k.acked[keyOf(asked)]; stored.Version != last.Version+1 {
			m.T.Errorf("version %d of %s comes after %d", stored.Version, keyOf(asked), last.Version)
		}
		k.open, k.deleted = nil, false
		k.acked[keyOf(stored)] = stored
	}
	return nil
}

// check compares what the store holds with what it acknowledged, and goes on from
// what it holds.
func (m *machine) check() {
	m.T.Helper()
	infos := map[state.Job]state.Info{}
	list, err := m.Jobs(m.T.Context(), "", 1000)
	if err != nil {
		m.T.Fatal(err)
	}
	for _, info := range list {
		infos[info.Job] = info
	}
	for job, k := range m.jobs {
		there := map[string]state.State{}
		if info, ok := infos[job]; ok {
			w := watch()
			src, err := m.Open(m.T.Context(), job, 0, w)
			if err != nil {
				m.T.Fatal(err)
			}
			_ = src.Close()
			there = w.states
			if info.States != len(there) || len(there) == 0 {
				m.T.Fatalf("%s has %d states, and says %d", job.Key(), len(there), info.States)
			}
		}
		k.check(m.T, job, there)
		k.acked, k.open, k.maybe = there, nil, false
		k.deleted = len(there) == 0
	}
}

func (k *known) check(t *testing.T, job state.Job, there map[string]state.State) {
	t.Helper()
	if len(there) == 0 && (k.maybe || len(k.acked) == 0) {
		return
	}
	if k.deleted && len(there) > len(k.open) {
		t.Fatalf("%s was deleted, and has %v", job.Key(), there)
	}
	for key, acked := range k.acked {
		got := there[key]
		if got.EventID == acked.EventID {
			if fmt.Sprint(got) != fmt.Sprint(acked) {
				t.Fatalf("%s: there is %+v, acknowledged was %+v", job.Key(), got, acked)
			}
			continue
		}
		if !k.begun(got) || got.Version != acked.Version+1 {
			t.Fatalf("%s: there is %+v, the last that was acknowledged is %+v", job.Key(), got, acked)
		}
	}
	for key, got := range there {
		if _, ok := k.acked[key]; !ok && (!k.begun(got) || got.Version != 1) {
			t.Fatalf("%s: there is %+v, which was never set", job.Key(), got)
		}
	}
}

// begun reports whether a state was asked for, and not acknowledged.
func (k *known) begun(got state.State) bool {
	for _, s := range k.open {
		if s.EventID == got.EventID && s.Status == got.Status && string(s.Payload) == string(got.Payload) {
			return true
		}
	}
	return false
}

// checkAll sees that the database is whole, and that it holds what was acknowledged.
func (m *machine) checkAll() {
	m.T.Helper()
	m.integrity()
	m.check()
}

// integrity sees that the database is whole, and that no state is without a job.
func (m *machine) integrity() {
	m.T.Helper()
	err := m.DB.Read(m.T.Context(), func(r *sqlitedb.Reader) error {
		s := r.Stmt("PRAGMA integrity_check(1)")
		if s.Step() && s.ColText(0) != "ok" {
			m.T.Fatal(s.ColText(0))
		}
		if err := s.Done(); err != nil {
			return err
		}
		s = r.Stmt("SELECT count(*) FROM state WHERE job NOT IN (SELECT id FROM state_job)")
		if s.Step() && s.ColInt(0) > 0 {
			m.T.Fatalf("%d states are without a job", s.ColInt(0))
		}
		return s.Done()
	})
	if err != nil {
		m.T.Fatal(err)
	}
}

// TestPowerLossAtEverySync loses power at each sync of a short life.
func TestPowerLossAtEverySync(t *testing.T) {
	t.Parallel()
	powerloss.AtEverySync(func() (*powerloss.Machine, func(int, uint64), func()) {
		m := newMachine(t)
		return m.Machine, m.work, m.checkAll
	})
}

// TestPowerLossAgainAndAgain lets one database live through many losses of power.
func TestPowerLossAgainAndAgain(t *testing.T) {
	t.Parallel()
	powerloss.AgainAndAgain(powerloss.Rounds(20, 40), 2, func() (*powerloss.Machine, func(int, *rand.Rand), func()) {
		m := newMachine(t)
		return m.Machine, func(_ int, rng *rand.Rand) { m.work(6, rng.Uint64()) }, m.checkAll
	})
}

// TestIOError lets the n-th write or sync fail: the store stops, reads go on, and
// what it acknowledged is there when it is opened again, with or without a crash.
func TestIOError(t *testing.T) {
	t.Parallel()
	stride := powerloss.Rounds(23, 1)
	for n := 1; ; n += stride {
		faults := crashvfs.Faults{FailWrite: n}
		if n%2 == 0 {
			faults = crashvfs.Faults{FailSync: n}
		}
		if !failsAt(t, n, faults) {
			if n < 30 {
				t.Errorf("the fault was not met any more at %d", n)
			}
			return
		}
	}
}

// failsAt lets a machine work with a fault, and reports whether it was met.
func failsAt(t *testing.T, n int, fault crashvfs.Faults) (met bool) {
	t.Helper()
	m := newMachine(t)
	m.MustStart()
	m.Disk.Set(fault)
	w := watch()
	src := follow(t, m.Store, state.Job{ID: "late"}, 1, w)
	m.work(15, 2)
	select {
	case <-m.Failed():
		_, err := src.Set(t.Context(), state.State{Tag: "x", SchemaVersion: 1})
		if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !errors.Is(err, m.Err()) {
			t.Fatalf("a write after the failure: %v, want %v", err, m.Err())
		}
		if len(w.states) > 0 {
			t.Fatalf("told of a write that failed: %v", w.states)
		}
		if _, err := m.Jobs(t.Context(), "", 1); err != nil {
			t.Fatalf("a read after the failure: %v", err)
		}
		met = true
	default:
	}
	if n%4 < 2 {
		m.Crash(rand.New(rand.NewPCG(uint64(n), 2)))
	} else {
		m.Stop()
		m.Disk.Set(crashvfs.Faults{})
	}
	m.MustStart()
	m.checkAll()
	m.End()
	return met
}
