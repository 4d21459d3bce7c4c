package sqlitestate_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/sqlitestate"
	"github.com/jobhost/jobhost/state/statetest"
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

// TestHammer removes jobs while they are followed and written, on disk and in memory.
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
			statetest.Removals{
				Store: store,
				Spoil: func() {
					c := &spoiler{make(chan error, 1)}
					db.Write(c)
					<-c.done
				},
				Remove: func(id string, fail bool) error {
					c := &remover{store, id, fail, make(chan error, 1)}
					db.Write(c)
					return <-c.done
				},
				Orphans: func() int64 { return orphans(t, db) },
			}.Hammer(t)
		})
	}
}

// orphans counts the states that are left without their job.
func orphans(t *testing.T, db *sqlitedb.DB) (n int64) {
	t.Helper()
	err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
		s := r.Stmt("SELECT count(*) FROM state WHERE job NOT IN (SELECT id FROM state_job)")
		if s.Step() {
			n = s.ColInt(0)
		}
		return s.Done()
	})
	if err != nil {
		t.Error(err)
	}
	return n
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
