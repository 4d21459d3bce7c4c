package schedule_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/host/schedule"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
)

// machine is a site whose store is on a disk that loses power. Jobs are removed
// as soon as they are known, so that nothing but the state of the schedule
// keeps a tick from making a second one.
type machine struct {
	*site
	dir  string
	disk *crashvfs.Disk
	made map[string]int // jobs that were seen, by id
}

// open opens the store; the disk may fail while it does.
func (m *machine) open() error {
	db, err := sqlitedb.Open(sqlitedb.Options{
		Dir: m.dir, Disk: m.disk, Readers: 1, CheckpointPages: 20,
		Schemas: sqlitequeue.Schemas(),
	})
	if err != nil {
		return err
	}
	store, err := sqlitequeue.New(db)
	m.store = ownedStore{store, db}
	return err
}

// ownedStore closes its database.
type ownedStore struct {
	*sqlitequeue.Store
	db *sqlitedb.DB
}

func (s ownedStore) Close() error { return s.db.Close() }

// collect notes the jobs that are there, and removes them.
func (m *machine) collect() {
	jobs, err := m.store.Jobs(m.t.Context(), record.ListQuery{Limit: 10_000})
	if err != nil {
		m.t.Fatal(err)
	}
	var ops []record.Op
	for i := range jobs {
		m.made[jobs[i].ID]++
		ops = append(ops, &record.Cancel{ID: jobs[i].ID, At: 1}, &record.Delete{ID: jobs[i].ID})
	}
	if len(ops) == 0 {
		return
	}
	done := make(chan error, 1)
	m.store.Commit(ops, func(_ []record.OpResult, err error) { done <- err })
	if err := <-done; err != nil {
		m.t.Fatal(err)
	}
}

// live lets a host run until the disk fails or so long has passed, and then
// loses power.
func (m *machine) live(def schedule.Schedule, d time.Duration, rng *rand.Rand) {
	err := m.tryStart(def)
	if err == nil {
		pass(d)
		m.stop()
	}
	m.disk.PowerOff()
	_ = m.store.Close() // it has nothing left to say
	m.disk = m.disk.Crash(rng)
}

// TestPowerLoss loses power at random syncs, over and over, and wants every tick
// to have made one job in the end.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("JOBHOST_CHAOS") == "1" {
		rounds *= 30
	}
	dir := t.TempDir()
	for round := range rounds {
		disk := crashvfs.New(t)
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(round), 7))
			m := &machine{site: newSite(t), dir: filepath.Join(dir, time.Duration(round).String()), disk: disk, made: map[string]int{}}
			_ = m.store.Close() // the one in memory
			def := of(t, "* * * * *", overlap(jobhost.OverlapAllow), func(s *schedule.Schedule) {
				s.CatchUp, s.CatchUpLimit = jobhost.CatchUpAll, schedule.MaxCatchUp
			})
			begin := time.Now()
			m.loseAndLive(def, rng)
			first, ends := "", time.Now()
			for at := begin.Add(time.Minute); !at.After(ends); at = at.Add(time.Minute) {
				id := "s." + at.UTC().Format("20060102T150405Z")
				switch n := m.made[id]; {
				case n > 1:
					t.Errorf("round %d: the tick at %v made %d jobs", round, at, n)
				case n == 0 && first != "":
					t.Errorf("round %d: the tick at %v made no job", round, at)
				case n == 1 && first == "":
					first = id // the schedule may have been unknown until then
				}
			}
			if len(m.made) < 20 {
				t.Errorf("round %d: %d jobs were made", round, len(m.made))
			}
			m.disk.Discard()
		})
	}
}

// loseAndLive loses power some times and ends in good order.
func (m *machine) loseAndLive(def schedule.Schedule, rng *rand.Rand) {
	for range 5 {
		if err := m.open(); err != nil {
			m.t.Fatal(err)
		}
		m.collect()
		_, syncs := m.disk.Counts()
		m.disk.Set(crashvfs.Faults{PowerOffAtSync: syncs + 1 + rng.IntN(12)})
		m.live(def, time.Duration(1+rng.IntN(15))*time.Minute, rng)
		pass(time.Duration(rng.IntN(10)) * time.Minute)
	}
	if err := m.open(); err != nil {
		m.t.Fatal(err)
	}
	m.collect()
	m.start(def)
	pass(5 * time.Minute)
	m.stop()
	m.collect()
	if err := m.store.Close(); err != nil {
		m.t.Error(err)
	}
}
