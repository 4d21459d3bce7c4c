package state_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// TestHammerBoard uses one board from many goroutines until it is closed under
// them. Those who watched all the time have been told each version once.
func TestHammerBoard(t *testing.T) {
	t.Parallel()
	const tasks, writes = 8, 300
	f := setup(t, tasks)
	for range 4 {
		f.subscribe(state.WithTag("tag-0")) // never read: they end without harm to others
	}
	var users, watchers sync.WaitGroup
	for task := range tasks {
		watchers.Go(func() { watchAll(t, f, task) })
	}
	for task := range tasks {
		random := rand.New(rand.NewPCG(1, uint64(task)))
		users.Go(func() {
			for i := range writes {
				tag := fmt.Sprint("tag-", random.IntN(3))
				if _, err := f.Set(t.Context(), of(task, tag, int32(i))); err != nil {
					t.Error(err)
				}
				useBoard(t, f, random, tag)
			}
			if _, err := f.Set(t.Context(), of(task, "last", 1)); err != nil {
				t.Error(err)
			}
			// No reader is missed.
			if states, err := f.Synchronize(t.Context(), "last", 1); err != nil || len(states) != tasks {
				t.Errorf("%d states, %v", len(states), err)
			}
		})
	}
	users.Wait()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	watchers.Wait()
}

// watchAll watches a task until the board is closed, going on where it was too slow.
func watchAll(t *testing.T, f fixture, task int) {
	versions, cursor := map[string]int64{}, ""
	for {
		sub, err := f.Subscribe(t.Context(), state.NewQuery(state.WithTaskID(task), state.WithAfter(cursor)), nil)
		if err != nil {
			if !errors.Is(err, state.ErrClosed) {
				t.Error(err)
			}
			return
		}
		for e := range sub.Events() {
			if e.Cursor != "" {
				cursor = e.Cursor
			}
			if e.Sentinel {
				continue
			}
			last := versions[e.State.Tag]
			if e.State.Version <= last || !e.Replay && e.State.Version != last+1 {
				t.Errorf("version %d was told after %d (replay: %v)", e.State.Version, last, e.Replay)
			}
			versions[e.State.Tag] = e.State.Version
		}
		if errors.Is(sub.Err(), state.ErrClosed) {
			if versions["last"] != 1 {
				t.Errorf("task %d: the last change was not told: %v", task, versions)
			}
			return
		}
	}
}

// useBoard does one of the things that don't change a board.
func useBoard(t *testing.T, f fixture, random *rand.Rand, tag string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	switch random.IntN(5) {
	case 0:
		if _, err := f.List(state.NewQuery(state.WithTag(tag))); err != nil {
			t.Error(err)
		}
	case 1:
		if _, err := f.Get(state.Query{}); err != nil {
			t.Error(err)
		}
	case 2:
		cancel()
		if states, err := f.Synchronize(ctx, tag, 1<<30); !errors.Is(err, context.Canceled) || len(states) != f.Tasks() {
			t.Errorf("%d states, %v", len(states), err)
		}
	case 3:
		sub, err := f.Subscribe(ctx, state.NewQuery(state.WithTag(tag)), func() {})
		if err != nil {
			t.Error(err)
			return
		}
		for e := range sub.Events() {
			if e.Sentinel {
				sub.Close()
			}
		}
	}
}

// TestHammerBoards has many come and go while jobs are deleted, and closes it all
// in the end under those who are left.
func TestHammerBoards(t *testing.T) {
	t.Parallel()
	store := newCounting()
	boards := state.NewBoards(store, state.Observer{})
	var wg sync.WaitGroup
	for g := range 8 {
		random := rand.New(rand.NewPCG(2, uint64(g)))
		wg.Go(func() {
			for i := range 300 {
				if g == 0 && i == 250 {
					boards.Close()
				}
				if err := useBoards(t, boards, store.Memory, random); errors.Is(err, state.ErrClosed) {
					return
				} else if err != nil && !errors.Is(err, state.ErrDeleted) && jobhost.CodeOf(err) != jobhost.CodeNotFound {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	boards.Close()
	for j := range 4 {
		if opened, closed := store.counts(fmt.Sprint("job-", j)); closed > opened {
			t.Errorf("job %d was opened %d times and closed %d times", j, opened, closed)
		}
	}
}

func useBoards(t *testing.T, boards *state.Boards, store *statetest.Memory, random *rand.Rand) error {
	j := state.Job{ID: fmt.Sprint("job-", random.IntN(4))}
	if random.IntN(10) == 0 {
		return store.Delete(t.Context(), j)
	}
	b, leave, err := boards.Acquire(t.Context(), j, random.IntN(3))
	if err != nil {
		return err
	}
	defer leave()
	sub, err := b.Subscribe(t.Context(), state.Query{}, nil)
	if err != nil {
		return err
	}
	defer sub.Close()
	set, err := b.Set(t.Context(), of(0, "a", 1))
	if err != nil {
		return err
	}
	for e := range sub.Events() { // until the change has come
		if e.State.Version >= set.Version {
			return nil
		}
	}
	return sub.Err()
}
