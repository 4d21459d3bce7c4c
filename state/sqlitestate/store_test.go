package sqlitestate_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/sqlitestate"
	"github.com/jobhost/jobhost/state/statetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		statetest.Run(t, statetest.Harness{
			Open: func(t testing.TB) state.Store { return open(t, sqlitestate.Options{}) },
		})
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		var dirs sync.Map // the directory of each store
		openDir := func(t testing.TB, dir string) state.Store {
			// Strict stores differ by their syncs alone, which the power tests look at.
			s := open(t, sqlitestate.Options{Dir: dir, Relaxed: true})
			dirs.Store(s, dir)
			return s
		}
		statetest.Run(t, statetest.Harness{
			Open: func(t testing.TB) state.Store { return openDir(t, t.TempDir()) },
			Reopen: func(t testing.TB, s state.Store) state.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				dir, _ := dirs.Load(s)
				return openDir(t, dir.(string))
			},
		})
	})
}

// each runs a test on disk and in memory.
func each(t *testing.T, test func(t *testing.T, store *sqlitestate.Store)) {
	t.Helper()
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, open(t, sqlitestate.Options{}))
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		// Strict stores differ by their syncs alone, which the power tests look at.
		test(t, open(t, sqlitestate.Options{Dir: t.TempDir(), Relaxed: true}))
	})
}

func mustSet(tb testing.TB, src state.Source, task int, tag string, status int32) state.State {
	tb.Helper()
	s, err := src.Set(tb.Context(), state.State{TaskID: task, Tag: tag, Status: status, SchemaVersion: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func isNotFound(err error) bool { return jobhost.CodeOf(err) == jobhost.CodeNotFound }

var job = state.Job{ID: "a"}

func TestStateIsAsItWasSet(t *testing.T) {
	each(t, func(t *testing.T, store *sqlitestate.Store) {
		w := statetest.Watch()
		src := follow(t, store, job, 3, w)
		asked := state.State{
			JobID: "a", TaskID: 2, Tag: "_run", Status: -1, Message: "🔴 two\nlines", EventID: "e1",
			Payload: []byte(`{"a": "ö"}`), SchemaVersion: 7,
		}
		got, err := src.Set(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		if got.Version != 1 || time.Since(got.Timestamp) > time.Minute || got.Timestamp.Nanosecond()%1000 != 0 {
			t.Errorf("version %d at %v", got.Version, got.Timestamp)
		}
		again := statetest.Watch()
		follow(t, store, job, 0, again)
		for name, s := range map[string]state.State{"returned": got, "told": w.Get(2, "_run"), "replayed": again.Get(2, "_run")} {
			if fmt.Sprintf("%+v", s) != fmt.Sprintf("%+v", got) {
				t.Errorf("%s: %+v, want %+v", name, s, got)
			}
			s.Version, s.Timestamp = 0, time.Time{}
			if fmt.Sprintf("%+v", s) != fmt.Sprintf("%+v", asked) {
				t.Errorf("%s: %+v, want %+v", name, s, asked)
			}
		}
		// A write that is sent again changes nothing, whatever it says.
		asked.Status = 5
		if s, err := src.Set(t.Context(), asked); err != nil || fmt.Sprintf("%+v", s) != fmt.Sprintf("%+v", got) {
			t.Errorf("again: %+v, %v", s, err)
		}
		asked.EventID, asked.Message, asked.Payload = "", "", nil
		s, err := src.Set(t.Context(), asked)
		if err != nil || s.Version != 2 || s.EventID == "" || s.Message != "" || s.Payload != nil || s.Timestamp.Before(got.Timestamp) {
			t.Errorf("the next one: %+v, %v", s, err)
		}
		w.Check(t)
	})
}

func TestSums(t *testing.T) {
	each(t, func(t *testing.T, store *sqlitestate.Store) {
		for _, key := range []string{"b", "a~2", "a", "a-b"} {
			src := follow(t, store, state.ParseKey(key), 3, statetest.Watch())
			mustSet(t, src, 0, "x", 1)
			mustSet(t, src, 0, "x", 2)
			mustSet(t, src, 1, "x", 1)
		}
		follow(t, store, state.Job{ID: "unmade"}, 3, statetest.Watch())
		if err := store.Mark(t.Context(), state.Job{ID: "a", Run: "2"}); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for after := ""; ; {
			page, err := store.Jobs(t.Context(), after, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range page {
				keys = append(keys, j.Key())
				if j.Tasks != 3 || j.States != 2 || j.ChangedAt.Before(j.CreatedAt) || j.DeletedAt.IsZero() != (j.Run == "") {
					t.Errorf("%+v", j)
				}
			}
			if len(page) < 3 {
				break
			}
			after = page[2].Key()
		}
		if got := fmt.Sprint(keys); got != "[a a-b a~2 b]" {
			t.Error(got)
		}
	})
}

func TestNumberOfTasks(t *testing.T) {
	each(t, func(t *testing.T, store *sqlitestate.Store) {
		if _, err := store.Open(t.Context(), job, 0, statetest.Watch()); !isNotFound(err) {
			t.Errorf("a job that isn't there: %v", err)
		}
		first := follow(t, store, job, 3, statetest.Watch())
		if n := follow(t, store, job, 5, statetest.Watch()).Tasks(); n != 3 {
			t.Errorf("another one has %d tasks", n)
		}
		mustSet(t, first, 2, "x", 1)
		_ = first.Close()
		if n := follow(t, store, job, 7, statetest.Watch()).Tasks(); n != 3 {
			t.Errorf("the job has %d tasks", n)
		}
	})
}

// A follower of a job that is deleted is notified, writes nothing any more, and the
// job begins anew with its next life.
func TestDeleteEndsLife(t *testing.T) {
	for name, remove := range map[string]func(*sqlitestate.Store, context.Context, state.Job) error{
		"delete": (*sqlitestate.Store).Delete, "mark": (*sqlitestate.Store).Mark,
	} {
		for _, written := range []bool{true, false} {
			t.Run(fmt.Sprint(name, "/written=", written), func(t *testing.T) {
				each(t, func(t *testing.T, store *sqlitestate.Store) {
					if err := remove(store, t.Context(), job); !isNotFound(err) {
						t.Errorf("a job that isn't there: %v", err)
					}
					w := statetest.Watch()
					src := follow(t, store, job, 3, w)
					if written {
						mustSet(t, src, 0, "x", 1)
						mustSet(t, src, 0, "x", 2)
					}
					if err := remove(store, t.Context(), job); err != nil {
						t.Fatal(err)
					}
					if !errors.Is(w.Ended(), state.ErrDeleted) {
						t.Errorf("ended with %v", w.Ended())
					}
					if _, err := src.Set(t.Context(), state.State{Tag: "x", SchemaVersion: 1}); !errors.Is(err, state.ErrDeleted) {
						t.Errorf("set: %v", err)
					}
					if name == "mark" {
						if _, err := store.Open(t.Context(), job, 3, statetest.Watch()); jobhost.CodeOf(err) != jobhost.CodeConflict {
							t.Errorf("open: %v", err)
						}
						if err := store.Mark(t.Context(), job); err != nil {
							t.Error(err)
						}
						if err := store.Delete(t.Context(), job); err != nil {
							t.Error(err)
						}
					}
					if list, err := store.Jobs(t.Context(), "", 10); err != nil || len(list) > 0 {
						t.Error(list, err)
					}
					fresh := statetest.Watch()
					if got := mustSet(t, follow(t, store, job, 2, fresh), 0, "x", 1); got.Version != 1 || len(fresh.States()) != 1 {
						t.Error(got, fresh.States())
					}
					if _, err := src.Set(t.Context(), state.State{Tag: "x", SchemaVersion: 1}); !errors.Is(err, state.ErrDeleted) {
						t.Errorf("set in the next life: %v", err)
					}
					w.Check(t)
				})
			})
		}
	}
}

func TestClose(t *testing.T) {
	each(t, func(t *testing.T, store *sqlitestate.Store) {
		w, left := statetest.Watch(), statetest.Watch()
		src := follow(t, store, job, 3, w)
		gone := follow(t, store, job, 3, left)
		_ = gone.Close()
		if _, err := gone.Set(t.Context(), state.State{Tag: "x"}); !errors.Is(err, state.ErrClosed) {
			t.Errorf("set after close: %v", err)
		}
		mustSet(t, src, 0, "x", 1)
		for range 2 {
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !errors.Is(w.Ended(), state.ErrClosed) || left.Ended() != nil || len(left.States()) != 0 {
			t.Error(w.Ended(), left.Ended(), left.States())
		}
		_, errSet := src.Set(t.Context(), state.State{Tag: "x"})
		_, errOpen := store.Open(t.Context(), job, 3, statetest.Watch())
		_, errJobs := store.Jobs(t.Context(), "", 1)
		for _, err := range []error{errSet, errOpen, errJobs, store.Delete(t.Context(), job), store.Mark(t.Context(), job)} {
			if !errors.Is(err, state.ErrClosed) {
				t.Errorf("after close: %v", err)
			}
		}
	})
}

func TestReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var last state.State
	for n := range 3 {
		store := open(t, sqlitestate.Options{Dir: dir})
		w := statetest.Watch()
		src := follow(t, store, job, 3, w)
		if got := w.Get(1, "x"); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", last) {
			t.Errorf("there is %+v, want %+v", got, last)
		}
		if got := follow(t, store, state.Job{ID: fmt.Sprint("job", n)}, 1, statetest.Watch()); mustSet(t, got, 0, "x", 1).Version != 1 {
			t.Error("ids are given out twice")
		}
		last = mustSet(t, src, 1, "x", int32(n))
		if last.Version != int64(n+1) {
			t.Errorf("version %d", last.Version)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A newer file is refused, before anything in it changes.
func TestNewer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newer := sqlitestate.Schemas()
	newer[0].Steps = append(newer[0].Steps, "CREATE TABLE later(a)")
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: newer})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestate.Open(sqlitestate.Options{Dir: dir}); jobhost.CodeOf(err) != jobhost.CodeInvalid || jobhost.HintOf(err) == "" {
		t.Errorf("open: %v", err)
	}
	if err := sqlitedb.Verify(t.Context(), filepath.Join(dir, sqlitedb.FileName), sqlitestate.Schemas()); jobhost.CodeOf(err) != jobhost.CodeInvalid {
		t.Errorf("verify: %v", err)
	}
}

// A context that ends takes the caller out, with its cause; a write that is under
// way is made.
func TestContext(t *testing.T) {
	each(t, func(t *testing.T, store *sqlitestate.Store) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		src := follow(t, store, job, 3, statetest.Watch())
		_, errSet := src.Set(ctx, state.State{Tag: "x"})
		_, errOpen := store.Open(ctx, job, 3, statetest.Watch())
		_, errJobs := store.Jobs(ctx, "", 1)
		for _, err := range []error{errSet, errOpen, errJobs, store.Delete(ctx, job), store.Mark(ctx, job)} {
			if !errors.Is(err, cause) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}

// blocked is a change that keeps the writer busy.
type blocked struct{ begun, release chan struct{} }

func (c *blocked) Ops() int { return 1 }
func (c *blocked) Apply(*sqlitedb.Tx) error {
	close(c.begun)
	<-c.release
	return nil
}
func (c *blocked) Done(error) {}

// stall opens a store and keeps its writer busy until release is called.
func stall(t *testing.T, dir string) (db *sqlitedb.DB, store *sqlitestate.Store, release func()) {
	t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: sqlitestate.Schemas()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if store, err = sqlitestate.New(db); err != nil {
		t.Fatal(err)
	}
	c := &blocked{make(chan struct{}), make(chan struct{})}
	db.Write(c)
	<-c.begun
	return db, store, func() { close(c.release) }
}

// What a transaction has made is forgotten when it is undone, and made by the next.
func TestRollbackOfFirstState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, store, release := stall(t, t.TempDir())
		src := follow(t, store, job, 3, statetest.Watch())
		done := make(chan error, 1)
		go func() {
			_, err := src.Set(t.Context(), state.State{Tag: "x", SchemaVersion: 1})
			done <- err
		}()
		synctest.Wait() // it is queued
		c := &spoiler{make(chan error, 1)}
		db.Write(c)
		release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		mustSet(t, src, 1, "x", 1)
		if list, err := store.Jobs(t.Context(), "", 9); err != nil || len(list) != 1 || list[0].States != 2 {
			t.Errorf("%+v, %v", list, err)
		}
		_ = db.Close()
	})
}

// A write that is under way is of the job, even when it is not followed any more.
func TestWriteUnderWayHoldsJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, store, release := stall(t, t.TempDir())
		src := follow(t, store, job, 3, statetest.Watch())
		done := make(chan error, 1)
		go func() {
			_, err := src.Set(t.Context(), state.State{Tag: "x", SchemaVersion: 1})
			done <- err
		}()
		synctest.Wait() // it is queued
		_ = src.Close()
		w := statetest.Watch()
		next := follow(t, store, job, 5, w)
		if next.Tasks() != 3 {
			t.Errorf("the job has %d tasks", next.Tasks())
		}
		release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := mustSet(t, next, 0, "x", 1); got.Version != 2 {
			t.Errorf("version %d", got.Version)
		}
		_ = db.Close()
	})
}

func TestContextEndsMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, store, release := stall(t, t.TempDir())
		src := follow(t, store, job, 3, statetest.Watch())
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		if _, err := src.Set(ctx, state.State{Tag: "x", Status: 4, SchemaVersion: 1}); !errors.Is(err, cause) {
			t.Errorf("set: %v", err)
		}
		release()
		if got := mustSet(t, src, 0, "x", 5); got.Version != 2 {
			t.Errorf("the write before was not made: %+v", got)
		}
		_ = db.Close()
	})
}
