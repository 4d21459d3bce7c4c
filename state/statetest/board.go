package statetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// board opens a board that is closed with the test.
func (s store) board(job state.Job, tasks int) *state.Board {
	s.t.Helper()
	b, err := state.NewBoard(s.t.Context(), s, job, tasks, state.Observer{})
	if err != nil {
		s.t.Fatalf("board: %v", err)
	}
	s.t.Cleanup(func() { _ = b.Close() })
	return b
}

// watcher reads a subscription and complains of everything that isn't as promised.
type watcher struct {
	versions map[memoryKey]int64
	cursor   string
	gapless  bool // each version must come
	live     bool // the sentinel has come
	oldest   time.Time
	slow     int // how often it had to begin again
}

func newWatcher(gapless bool) *watcher {
	return &watcher{versions: map[memoryKey]int64{}, gapless: gapless}
}

// take looks at one event.
func (w *watcher) take(e state.Event) error {
	if e.Cursor != "" {
		w.cursor = e.Cursor
	}
	if e.Sentinel {
		if w.live {
			return errors.New("there was a second sentinel")
		}
		w.live = true
		return nil
	}
	key := memoryKey{e.State.TaskID, e.State.Tag}
	last := w.versions[key]
	switch {
	case e.Replay == w.live:
		return fmt.Errorf("replay is %v, the sentinel has come: %v", e.Replay, w.live)
	case e.State.Version <= last:
		return fmt.Errorf("version %d of %v was told after %d", e.State.Version, key, last)
	case e.Replay && e.State.Timestamp.Before(w.oldest):
		return fmt.Errorf("%v was replayed after %v", e.State.Timestamp, w.oldest)
	case !e.Replay && w.gapless && e.State.Version != last+1:
		return fmt.Errorf("version %d of %v was told after %d: there is a gap", e.State.Version, key, last)
	}
	if e.Replay {
		w.oldest = e.State.Timestamp
	}
	w.versions[key] = e.State.Version
	return nil
}

// watch reads until done, beginning again after the cursor when it was too slow.
func (w *watcher) watch(ctx context.Context, b *state.Board, q state.Query, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		w.live, w.oldest = false, time.Time{}
		q.After = w.cursor
		sub, err := b.Subscribe(ctx, q, nil)
		if err != nil {
			return err
		}
		for e := range sub.Events() {
			if err := w.take(*e); err != nil {
				sub.Close()
				return err
			}
			if w.live && done() {
				sub.Close()
				return nil
			}
		}
		if err := sub.Err(); !errors.Is(err, state.ErrSlow) {
			return fmt.Errorf("it has ended with %d states: %w", len(w.versions), err)
		}
		w.slow++
	}
}

// testReplayAndLive subscribes while others write: first what there is, oldest
// first, then a sentinel, then each change, without a gap or anything twice.
func testReplayAndLive(s store) {
	const writers, writes, tags = 4, 15, 3
	boards := []*state.Board{s.board(plain, writers), s.board(plain, writers)}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range writes * tags {
				if _, err := boards[w%2].Set(s.t.Context(), of(plain, w, fmt.Sprint("tag-", i%tags), int32(i))); err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	for i := range 12 {
		var opts []state.Option
		keys := writers * tags
		if i%2 == 1 {
			opts, keys = append(opts, state.WithTaskID(i%writers)), keys/writers
		}
		if i%3 == 1 {
			opts, keys = append(opts, state.WithTag(fmt.Sprint("tag-", i%tags))), keys/tags
		}
		wg.Go(func() {
			w := newWatcher(!s.h.Late)
			if err := w.watch(s.t.Context(), boards[i/2%2], state.NewQuery(opts...), func() bool { return w.all(keys, writes) }); err != nil {
				s.t.Errorf("subscriber %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// all reports whether so many states have been told up to a version.
func (w *watcher) all(keys int, version int64) bool {
	n := 0
	for _, v := range w.versions {
		if v >= version {
			n++
		}
	}
	return n >= keys
}

// testResume leaves in the middle and goes on after the cursor.
func testResume(s store) {
	const writes, tags = 30, 4
	b := s.board(plain, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range writes * tags {
			if _, err := b.Set(s.t.Context(), of(plain, 0, fmt.Sprint("tag-", i%tags), int32(i))); err != nil {
				s.t.Error(err)
				return
			}
		}
	})
	w := newWatcher(false) // what was missed comes as it is now
	for left := 0; !w.all(tags, writes) && !s.t.Failed(); {
		left += 7
		seen := 0
		if err := w.watch(s.t.Context(), b, state.Query{}, func() bool { seen++; return seen > left || w.all(tags, writes) }); err != nil {
			s.t.Error(err)
			break
		}
	}
	wg.Wait()
}

// testSynchronize has tasks wait for each other, each with a manager of its own.
func testSynchronize(s store) {
	const tasks, phases = 6, 4
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var managers []*state.Manager
	for task := range tasks {
		m, err := state.Open(ctx, s, plain, task, tasks, state.Observer{})
		if err != nil {
			s.t.Fatal(err)
		}
		managers = append(managers, m)
	}
	var wg sync.WaitGroup
	for task, m := range managers {
		wg.Go(func() {
			for phase := int32(1); phase <= phases; phase++ {
				if err := m.SetState(ctx, of(plain, task, "phase", phase)); err != nil {
					s.t.Error(err)
					return
				}
				states, err := m.Synchronize(ctx, "phase", phase)
				if err != nil || len(states) != tasks {
					s.t.Errorf("phase %d: %d states, %v", phase, len(states), err)
					return
				}
				for i, st := range states {
					// None is further than those who wait for it allow.
					if st.TaskID != i || st.Status < phase || st.Status > phase+1 {
						s.t.Errorf("task %d passed phase %d while %d was at %d", task, phase, i, st.Status)
					}
				}
			}
		})
	}
	wg.Wait()
	for _, m := range managers {
		if err := m.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// testClean marks and removes jobs by their age, in a store as it is.
func testClean(s store) {
	var last time.Time
	for _, id := range []string{"a", "b", "kept"} {
		job := state.Job{ID: id}
		last = s.follow(job, 1).set(of(job, 0, "tag", 1)).Timestamp
	}
	c := jobhost.StateCleanup{TombstoneAge: jobhost.Duration(time.Hour), DeleteAge: jobhost.Duration(2 * time.Hour)}
	keep := func(job state.Job) (bool, error) { return job.ID == "kept", nil }
	for _, step := range []struct {
		after                       time.Duration
		dry                         bool
		tombstoned, deleted, remain int
	}{
		{after: time.Minute, remain: 3},
		{after: 90 * time.Minute, dry: true, tombstoned: 2, remain: 3},
		{after: 90 * time.Minute, tombstoned: 2, remain: 3},
		{after: 90 * time.Minute, remain: 3},
		{after: 3 * time.Hour, dry: true, deleted: 2, remain: 3},
		{after: 3 * time.Hour, deleted: 2, remain: 1},
		{after: 3 * time.Hour, remain: 1},
	} {
		c.DryRun = step.dry
		done, err := state.Clean(s.t.Context(), s, c, last.Add(step.after), keep)
		if err != nil || done.Tombstoned != step.tombstoned || done.Deleted != step.deleted || len(s.infos()) != step.remain {
			s.t.Fatalf("%+v: %+v, %v, and %d jobs remain", step, done, err, len(s.infos()))
		}
	}
}

// testBoards has users come and go, and a job that is deleted and made anew.
func testBoards(s store) {
	boards := state.NewBoards(s, state.Observer{})
	for life := range 3 {
		one, leaveOne, err := boards.Acquire(s.t.Context(), plain, 2+life)
		if err != nil {
			s.t.Fatal(err)
		}
		other, leaveOther, err := boards.Acquire(s.t.Context(), plain, 0)
		if err != nil || other != one || other.Tasks() != 2+life {
			s.t.Fatalf("the boards are the same: %v, of %d tasks, %v", one == other, other.Tasks(), err)
		}
		st, err := one.Set(s.t.Context(), of(plain, 1, "a", 1))
		if err != nil || st.Version != 1 {
			s.t.Fatalf("life %d: %+v, %v", life, st, err)
		}
		sub, err := other.Subscribe(s.t.Context(), state.Query{}, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.Delete(s.t.Context(), plain); err != nil {
			s.t.Fatal(err)
		}
		for range sub.Events() { // until it has ended
		}
		wantErr(s.t, "end of the subscription", sub.Err(), state.ErrDeleted)
		leaveOne()
		leaveOther()
	}
	boards.Close()
	_, _, err := boards.Acquire(s.t.Context(), plain, 1)
	wantErr(s.t, "acquire after closing", err, state.ErrClosed)
}
