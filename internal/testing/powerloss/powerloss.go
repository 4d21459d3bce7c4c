// Package powerloss runs stores in an SQLite database on a disk that loses power
// and fails, for tests that compare what a store holds with what it acknowledged.
package powerloss

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
)

// Rounds returns how often to try, or how much to leave out: few times in the
// normal tests, many with JOBHOST_CHAOS=1.
func Rounds(normal, chaos int) int {
	if os.Getenv("JOBHOST_CHAOS") == "1" {
		return chaos
	}
	return normal
}

// Machine is a database on a disk that can fail, with a store in it.
type Machine struct {
	T    *testing.T
	Disk *crashvfs.Disk
	DB   *sqlitedb.DB // nil = it is not open

	dir     string
	schemas []sqlitedb.Schema
	open    func(*sqlitedb.DB) (io.Closer, error)
	store   io.Closer
}

// New returns a machine that is off. open opens the store in its database.
func New(t *testing.T, schemas []sqlitedb.Schema, open func(*sqlitedb.DB) (io.Closer, error)) *Machine {
	return &Machine{T: t, Disk: crashvfs.New(t), dir: t.TempDir(), schemas: schemas, open: open}
}

// Start opens the store; the disk may fail while it does.
func (m *Machine) Start() error {
	db, err := sqlitedb.Open(sqlitedb.Options{
		Dir: m.dir, Disk: m.Disk, Readers: 1, CheckpointPages: 40, Schemas: m.schemas,
	})
	if err != nil {
		return err
	}
	store, err := m.open(db)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	m.DB, m.store = db, store
	return nil
}

// MustStart starts a machine whose disk is in order.
func (m *Machine) MustStart() {
	m.T.Helper()
	if err := m.Start(); err != nil {
		m.T.Fatalf("start after the fault: %v", err)
	}
}

// Stop closes the store, if it could be opened. After a failure Close has
// nothing left to say.
func (m *Machine) Stop() {
	if m.DB != nil {
		_, _ = m.store.Close(), m.DB.Close()
		m.DB = nil
	}
}

// Crash cuts the power. The next start finds what survived.
func (m *Machine) Crash(rng *rand.Rand) {
	m.Disk.PowerOff()
	m.Stop()
	m.Disk = m.Disk.Crash(rng)
}

// End stops the machine for good.
func (m *Machine) End() {
	m.Stop()
	m.Disk.Discard()
}

// AtEverySync loses power at each sync of a short life, from the creation of the
// database over commits to checkpoints, and checks what is there afterwards. Unlike
// in the chaos run it leaves some out where one is like the next: when the file is
// there, there is one sync for a transaction.
//
// setup returns a new machine, what works on it until the store fails, and what
// compares the store with what it acknowledged.
func AtEverySync(setup func() (m *Machine, work func(n int, seed uint64), check func())) {
	const file = 7 // syncs until the file is there, no two of them alike
	stride := Rounds(3, 1)
	for n := 1; n <= Rounds(40, 1200); n++ {
		if n > file && (n-file)%stride != 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		m, work, check := setup()
		m.Disk.Set(crashvfs.Faults{PowerOffAtSync: 1 + (n-1)%80})
		if m.Start() == nil {
			work(12, uint64(n))
		}
		m.Crash(rng)
		m.MustStart()
		check()
		m.End()
	}
}

// AgainAndAgain lets one database live through many losses of power, also while it
// recovers from the one before, and checks what is there after every so many.
func AgainAndAgain(lives, every int, setup func() (m *Machine, work func(life int, rng *rand.Rand), check func())) {
	for seed := range Rounds(1, 30) {
		rng := rand.New(rand.NewPCG(7, uint64(seed)))
		m, work, check := setup()
		for n := range lives {
			m.Disk.Set(crashvfs.Faults{PowerOffAtSync: 1 + rng.IntN(25)})
			if m.Start() == nil {
				work(n, rng)
			}
			m.Crash(rng)
			if n%every == every-1 {
				m.MustStart()
				check()
				m.Stop()
			}
		}
		m.End()
	}
}
