package sqlitestate_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
	"github.com/jobhost/jobhost/internal/testing/powerloss"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/sqlitestate"
	"github.com/jobhost/jobhost/state/statetest"
)

// machine is a store on a disk that can fail, and what it has acknowledged.
type machine struct {
	*powerloss.Machine
	*sqlitestate.Store
	statetest.Acknowledged
}

func (m *machine) work(n int, seed uint64) { m.Work(m.T, m.Store, n, seed) }

func newMachine(t *testing.T) *machine {
	m := &machine{}
	m.Machine = powerloss.New(t, sqlitestate.Schemas(), func(db *sqlitedb.DB) (_ io.Closer, err error) {
		m.Store, err = sqlitestate.New(db)
		return m.Store, err
	})
	return m
}

// checkAll sees that the database is whole, and that it holds what was acknowledged.
func (m *machine) checkAll() {
	m.T.Helper()
	m.integrity()
	m.Acknowledged.Check(m.T, m.Store)
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
	w := statetest.Watch()
	src := follow(t, m.Store, state.Job{ID: "late"}, 1, w)
	m.work(15, 2)
	select {
	case <-m.Failed():
		_, err := src.Set(t.Context(), state.State{Tag: "x", SchemaVersion: 1})
		if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !errors.Is(err, m.Err()) {
			t.Fatalf("a write after the failure: %v, want %v", err, m.Err())
		}
		if len(w.States()) > 0 {
			t.Fatalf("told of a write that failed: %v", w.States())
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
