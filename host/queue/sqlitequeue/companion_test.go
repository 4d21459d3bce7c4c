package sqlitequeue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/cputime"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// pair is a queue and states in one database.
type pair struct {
	db     *sqlitedb.DB
	queue  *sqlitequeue.Store
	states *sqlitestate.Store
}

func newPair(t *testing.T, dir string) pair {
	t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: append(sqlitequeue.Schemas(), sqlitestate.Schemas()...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	states, err := sqlitestate.New(db)
	if err != nil {
		t.Fatal(err)
	}
	q, err := sqlitequeue.New(db, states)
	if err != nil {
		t.Fatal(err)
	}
	return pair{db, q, states}
}

// jobFeed notes how it ends.
type jobFeed struct {
	end    chan error
	states int
}

func (f *jobFeed) Put(states ...state.State) { f.states += len(states) }
func (f *jobFeed) End(reason error)          { f.end <- reason }

// report sets a state of a job, which is followed.
func (p pair) report(t *testing.T, key string) (*jobFeed, state.Source) {
	t.Helper()
	feed := &jobFeed{end: make(chan error, 1)}
	src, err := p.states.Open(t.Context(), state.ParseKey(key), 1, feed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Set(t.Context(), state.State{Tag: "x", Status: 1, SchemaVersion: 1}); err != nil {
		t.Fatal(err)
	}
	return feed, src
}

func (p pair) keys(t *testing.T) (keys []string) {
	t.Helper()
	list, err := p.states.Jobs(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		keys = append(keys, list[i].Key())
	}
	return keys
}

// Whatever removes a job takes its states along, those of all its runs and of no
// other job, nor of a fiber of its name, and notifies their followers.
func TestStatesGoWithTheirJob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		remove func(key record.Key) record.Op
	}{
		{"tidy", func(record.Key) record.Op { return &record.Tidy{At: 1 << 40, Limit: 200} }},
		{"delete", func(record.Key) record.Op { return &record.Delete{ID: "a"} }},
	} {
		for _, place := range []string{"memory", "file"} {
			t.Run(tt.name+"/"+place, func(t *testing.T) {
				t.Parallel()
				dir := ""
				if place == "file" {
					dir = t.TempDir()
				}
				p := newPair(t, dir)
				key := p.finish(t, "a")
				kept := p.submit(t, "a-b")
				feeds := map[string]*jobFeed{}
				var sources []state.Source
				for _, k := range []string{"a", "a~1", "a~zz", "a~_fiber", "a-b", "a-b~1", "aa", "b"} {
					feed, src := p.report(t, k)
					feeds[k], sources = feed, append(sources, src)
				}
				silent := &jobFeed{end: make(chan error, 1)} // of a run without a state yet
				if _, err := p.states.Open(t.Context(), state.ParseKey("a~2"), 1, silent); err != nil {
					t.Fatal(err)
				}
				if res, err := commitAll(p.queue, tt.remove(key)); err != nil {
					t.Fatal(res, err)
				}
				if got := p.keys(t); !slices.Equal(got, []string{"a-b", "a-b~1", "aa", "a~_fiber", "b"}) {
					t.Errorf("there are states of %v", got)
				}
				if _, err := p.queue.Job(t.Context(), "a-b"); err != nil {
					t.Errorf("job %d: %v", kept, err)
				}
				for _, feed := range []*jobFeed{feeds["a"], feeds["a~1"], feeds["a~zz"], silent} {
					if err := <-feed.end; !errors.Is(err, state.ErrDeleted) {
						t.Errorf("ended with %v", err)
					}
				}
				if _, err := sources[0].Set(t.Context(), state.State{Tag: "x", SchemaVersion: 1}); !errors.Is(err, state.ErrDeleted) {
					t.Errorf("set: %v", err)
				}
				for _, k := range []string{"a~_fiber", "a-b", "a-b~1", "aa", "b"} {
					select {
					case err := <-feeds[k].end:
						t.Errorf("%s ended with %v", k, err)
					default:
					}
				}
			})
		}
	}
}

func (p pair) submit(t *testing.T, id string) record.Key {
	t.Helper()
	res, err := commitAll(p.queue, &record.Submit{Job: newSpec(id, "w", 1)})
	if err != nil {
		t.Fatal(err)
	}
	return res[0].Key
}

// finish submits and ends a job that is over by the next Tidy.
func (p pair) finish(t *testing.T, id string) record.Key {
	t.Helper()
	key := p.submit(t, id)
	if _, err := commitAll(p.queue, &record.Settle{Key: key, Status: record.Succeeded, EndedAt: 2, ExpiresAt: 3}); err != nil {
		t.Fatal(err)
	}
	return key
}

// Jobs that are evicted from the dead letters take theirs along too.
func TestStatesGoWithEvictedJobs(t *testing.T) {
	t.Parallel()
	p := newPair(t, "")
	var feeds []*jobFeed
	for i := range 3 {
		id := fmt.Sprint("job", i)
		key := p.submit(t, id)
		feed, _ := p.report(t, id)
		feeds = append(feeds, feed)
		_, err := commitAll(p.queue, &record.Settle{Key: key, Status: record.Dead, EndedAt: 2, Failure: &jobhost.Failure{Code: "trap"}, MaxDead: 1})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := p.keys(t); !slices.Equal(got, []string{"job2"}) {
		t.Errorf("there are states of %v", got)
	}
	for _, feed := range feeds[:2] {
		if err := <-feed.end; !errors.Is(err, state.ErrDeleted) {
			t.Errorf("ended with %v", err)
		}
	}
}

// undone is a change that fails after another in its transaction has removed a job.
type undone struct{ done chan error }

func (c *undone) Ops() int                 { return 1 }
func (c *undone) Apply(*sqlitedb.Tx) error { return errors.New("undone") }
func (c *undone) Done(err error)           { c.done <- err }

// gate holds the writer up until others wait behind it.
type gate struct{ begun, release chan struct{} }

func (c *gate) Ops() int   { return 1 }
func (c *gate) Done(error) {}
func (c *gate) Apply(*sqlitedb.Tx) error {
	close(c.begun)
	<-c.release
	return nil
}

// refusing is a companion that removes nothing.
type refusing struct{ *sqlitestate.Store }

func (r refusing) Removing(tx *sqlitedb.Tx, ids []string) error {
	return errors.Join(r.Store.Removing(tx, ids), errors.New("no"))
}

// Job and states go together or not at all.
func TestStatesStayWithTheirJob(t *testing.T) {
	t.Parallel()
	t.Run("a rollback, and then it is made", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, t.TempDir())
		p.finish(t, "a")
		feed, src := p.report(t, "a")
		// These are in one transaction, which is undone; then each is tried alone.
		g := &gate{make(chan struct{}), make(chan struct{})}
		p.db.Write(g)
		<-g.begun
		removed, set := make(chan error, 1), make(chan error, 1)
		p.queue.Commit([]record.Op{&record.Tidy{At: 1 << 40, Limit: 200}}, func(_ []record.OpResult, err error) { removed <- err })
		c := &undone{make(chan error, 1)}
		p.db.Write(c)
		go func() {
			_, err := src.Set(t.Context(), state.State{Tag: "x", Status: 2, SchemaVersion: 1})
			set <- err
		}()
		close(g.release)
		if err := <-removed; err != nil {
			t.Error(err)
		}
		if err := <-c.done; err == nil {
			t.Error("a change that fails was made")
		}
		if err := <-set; !errors.Is(err, state.ErrDeleted) {
			t.Errorf("set: %v", err)
		}
		if err := <-feed.end; !errors.Is(err, state.ErrDeleted) {
			t.Errorf("ended with %v", err)
		}
		if got := p.keys(t); len(got) > 0 {
			t.Errorf("there are states of %v", got)
		}
	})
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, "")
		q, err := sqlitequeue.New(p.db, refusing{p.states})
		if err != nil {
			t.Fatal(err)
		}
		p.queue = q
		p.finish(t, "a")
		feed, src := p.report(t, "a")
		if _, err := commitAll(p.queue, &record.Tidy{At: 1 << 40, Limit: 200}); err == nil {
			t.Error("a companion refused, and the job was removed")
		}
		if s, err := src.Set(t.Context(), state.State{Tag: "x", Status: 2, SchemaVersion: 1}); err != nil || s.Version != 2 {
			t.Errorf("set: %+v, %v", s, err)
		}
		if _, err := p.queue.Job(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if got := p.keys(t); !slices.Equal(got, []string{"a"}) || feed.states != 2 || len(feed.end) > 0 {
			t.Error(got, feed.states, len(feed.end))
		}
	})
}

// BenchmarkTidyWithStates removes finished jobs, 200 at a time, beside states: no
// companion, one without states, one with states of other jobs, and of all jobs.
func BenchmarkTidyWithStates(b *testing.B) {
	for _, kind := range []string{"no companion", "no states", "of another job", "of each job"} {
		b.Run(kind, func(b *testing.B) {
			const jobs = 5_000
			db, err := sqlitedb.Open(sqlitedb.Options{
				Dir: b.TempDir(), Relaxed: true, Schemas: append(sqlitequeue.Schemas(), sqlitestate.Schemas()...),
			})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			states, err := sqlitestate.New(db)
			if err != nil {
				b.Fatal(err)
			}
			companions := []sqlitequeue.Companion{states}
			if kind == "no companion" {
				companions = nil
			}
			q, err := sqlitequeue.New(db, companions...)
			if err != nil {
				b.Fatal(err)
			}
			if kind == "of another job" {
				setOf(b, states, "other")
			}
			var cpu time.Duration
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				finish(b, q, fmt.Sprint(n), jobs, 0)
				if kind == "of each job" {
					for i := range jobs {
						setOf(b, states, fmt.Sprintf("%d-%08d", n, i))
					}
				}
				b.StartTimer()
				began := cputime.Used()
				tidyAll(b, q)
				cpu += cputime.Used() - began
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N*jobs), "cpu-ns/task")
		})
	}
}

func setOf(tb testing.TB, states *sqlitestate.Store, id string) {
	tb.Helper()
	src, err := states.Open(tb.Context(), state.Job{ID: id}, 1, &jobFeed{end: make(chan error, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	defer src.Close()
	if _, err := src.Set(tb.Context(), state.State{Tag: "_run", Status: 1, SchemaVersion: 1}); err != nil {
		tb.Fatal(err)
	}
}
