package sqlitestate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// spoiler is a change that fails, so that all others in its transaction are made
// again.
type spoiler struct{ done chan error }

func (c *spoiler) Ops() int                 { return 1 }
func (c *spoiler) Apply(*sqlitedb.Tx) error { return errors.New("spoiled") }
func (c *spoiler) Done(err error)           { c.done <- err }

// remover removes jobs as the queue does, and fails sometimes after it has.
type remover struct {
	store *sqlitestate.Store
	id    string
	fail  bool
	done  chan error
}

func (c *remover) Ops() int       { return 1 }
func (c *remover) Done(err error) { c.done <- err }
func (c *remover) Apply(tx *sqlitedb.Tx) error {
	if err := c.store.Removing(tx, []string{c.id}); err != nil || !c.fail {
		return err
	}
	return errors.New("spoiled")
}

// TestHammer lets many follow, set, mark and delete a few jobs, while transactions
// are undone. No follower may be left with states that are gone, nor without those that
// are there, nor write for a job through what followed it before it was deleted.
func TestHammer(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"memory", "file"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			opts := sqlitedb.Options{Schemas: sqlitestate.Schemas(), Relaxed: true}
			if place == "file" {
				opts.Dir = t.TempDir()
			}
			db, err := sqlitedb.Open(opts)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			store, err := sqlitestate.New(db)
			if err != nil {
				t.Fatal(err)
			}
			h := &hammer{T: t, db: db, store: store}
			for _, h.removes = range []bool{true, false} {
				var wg sync.WaitGroup
				for seed := range uint64(8) {
					wg.Go(func() { h.run(rand.New(rand.NewPCG(seed, 5))) })
				}
				wg.Wait()
				if h.removes {
					h.unmark()
				}
			}
			h.check()
		})
	}
}

type hammer struct {
	*testing.T
	db      *sqlitedb.DB
	store   *sqlitestate.Store
	removes bool

	mu       sync.Mutex // protects watchers
	watchers []follower
}

// follower is who follows to the end.
type follower struct {
	*watcher
	job state.Job
	src state.Source
}

func (h *hammer) run(rng *rand.Rand) {
	for range 100 {
		j := state.Job{ID: fmt.Sprint("job", rng.IntN(2)), Run: []string{"", "r"}[rng.IntN(2)]}
		w := watch()
		src, err := h.store.Open(h.Context(), j, 4, w)
		if err != nil {
			if jobhost.CodeOf(err) != jobhost.CodeConflict {
				h.Errorf("open: %v", err)
			}
			if h.removes {
				h.remove(rng, j, nil)
			}
			continue
		}
		for range rng.IntN(6) {
			asked := state.State{TaskID: rng.IntN(4), Tag: "x", Status: rng.Int32(), SchemaVersion: 1}
			s, err := src.Set(h.Context(), asked)
			if errors.Is(err, state.ErrDeleted) {
				break
			}
			if err != nil {
				h.Errorf("set: %v", err)
			}
			if w.end() == nil && w.get(s.TaskID, s.Tag).Version < s.Version {
				if w.end() == nil {
					h.Errorf("version %d was set, and not told", s.Version)
				}
			}
		}
		switch n := rng.IntN(8); {
		case n == 0 && h.removes:
			h.remove(rng, j, src)
		case n == 1:
			c := &spoiler{make(chan error, 1)}
			h.db.Write(c)
			<-c.done
		}
		if rng.IntN(4) > 0 {
			_ = src.Close()
			continue
		}
		h.mu.Lock()
		h.watchers = append(h.watchers, follower{w, j, src})
		h.mu.Unlock()
	}
}

// remove removes a job that a source follows, if there is one.
func (h *hammer) remove(rng *rand.Rand, j state.Job, src state.Source) {
	var err error
	switch rng.IntN(4) {
	case 0:
		err = h.store.Mark(h.Context(), j)
	case 1:
		err = h.store.Delete(h.Context(), j)
	default:
		c := &remover{h.store, j.ID, rng.IntN(2) == 0, make(chan error, 1)}
		h.db.Write(c)
		if err = <-c.done; c.fail {
			if err == nil {
				h.Error("a spoiled change was made")
			}
			return
		}
	}
	if err != nil && !isNotFound(err) {
		h.Errorf("remove: %v", err)
	}
	if src == nil {
		return
	}
	if s, err := src.Set(h.Context(), state.State{Tag: "x", SchemaVersion: 1}); !errors.Is(err, state.ErrDeleted) {
		h.Errorf("set after removal: %+v, %v", s, err)
	}
}

// unmark deletes what is marked.
func (h *hammer) unmark() {
	list, err := h.store.Jobs(h.Context(), "", 100)
	if err != nil {
		h.Fatal(err)
	}
	for _, info := range list {
		if !info.DeletedAt.IsZero() {
			if err := h.store.Delete(h.Context(), info.Job); err != nil {
				h.Error(err)
			}
		}
	}
}

// check sees that those who still follow know what is there.
func (h *hammer) check() {
	ended := 0
	for _, f := range h.watchers {
		f.check(h)
		if f.end() != nil {
			ended++
			continue
		}
		w := watch()
		src, err := h.store.Open(h.Context(), f.job, 0, w)
		if err != nil {
			h.Errorf("%s is followed, and can't be opened: %v", f.job.Key(), err)
			continue
		}
		if got, want := fmt.Sprint(f.states), fmt.Sprint(w.states); got != want {
			h.Errorf("a follower knows\n%s, but there is\n%s", got, want)
		}
		_, _ = src.Close(), f.src.Close()
	}
	if ended == 0 || ended == len(h.watchers) {
		h.Errorf("%d of %d followers saw the end", ended, len(h.watchers))
	}
	list, err := h.store.Jobs(h.Context(), "", 100)
	if err != nil {
		h.Fatal(err)
	}
	for _, info := range list {
		w := watch()
		follow(h, h.store, info.Job, 0, w)
		if len(w.states) != info.States {
			h.Errorf("%s has %d states, and says %d", info.Key(), len(w.states), info.States)
		}
	}
	h.orphans()
}

// orphans sees that no state is left without its job.
func (h *hammer) orphans() {
	err := h.db.Read(h.Context(), func(r *sqlitedb.Reader) error {
		s := r.Stmt("SELECT count(*) FROM state WHERE job NOT IN (SELECT id FROM state_job)")
		if s.Step() && s.ColInt(0) > 0 {
			h.Errorf("%d states are without a job", s.ColInt(0))
		}
		return s.Done()
	})
	if err != nil {
		h.Error(err)
	}
}

// ending is a feed that waits for its end.
type ending struct{ over chan error }

func (*ending) Put(...state.State) {}
func (e *ending) End(reason error) { e.over <- reason }

// TestOpenWhileClosing closes a store while jobs of it are opened: those that got in
// are notified of the end.
func TestOpenWhileClosing(t *testing.T) {
	t.Parallel()
	db, err := sqlitedb.Open(sqlitedb.Options{Schemas: sqlitestate.Schemas()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 300 {
		store, err := sqlitestate.New(db)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				var ends []func()
				defer func() {
					for _, end := range ends {
						end()
					}
				}()
				for n := 0; ; n++ {
					feed := &ending{make(chan error, 1)}
					src, err := store.Open(t.Context(), state.Job{ID: fmt.Sprint("job-", i, "-", n)}, 1, feed)
					if errors.Is(err, state.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					ends = append(ends, func() {
						if err := <-feed.over; !errors.Is(err, state.ErrClosed) {
							t.Error(err)
						}
						_ = src.Close()
					})
				}
			})
		}
		_ = store.Close()
		group.Wait()
	}
}
