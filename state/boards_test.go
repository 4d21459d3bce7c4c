package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// counting is a store that counts what is opened and closed, and may make who
// opens wait or fail.
type counting struct {
	*statetest.Memory
	hold func(ctx context.Context) error // called by Open first; nil = go ahead

	mu             sync.Mutex // protects the fields below
	opened, closed map[string]int
}

func newCounting() *counting {
	return &counting{Memory: statetest.NewMemory(), opened: map[string]int{}, closed: map[string]int{}}
}

// Open implements [state.Store].
func (c *counting) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	c.mu.Lock()
	c.opened[job.Key()]++
	c.mu.Unlock()
	if c.hold != nil {
		if err := c.hold(ctx); err != nil {
			return nil, err
		}
	}
	s, err := c.Memory.Open(ctx, job, tasks, feed)
	return &countingSource{Source: s, store: c, key: job.Key()}, err
}

// counts returns how often a job was opened and closed.
func (c *counting) counts(key string) (opened, closed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened[key], c.closed[key]
}

type countingSource struct {
	state.Source
	store *counting
	key   string
}

// Close implements [state.Source].
func (s *countingSource) Close() error {
	s.store.mu.Lock()
	s.store.closed[s.key]++
	s.store.mu.Unlock()
	return s.Source.Close()
}

// acquire takes a board that must be there.
func acquire(t testing.TB, b *state.Boards, j state.Job, tasks int) (*state.Board, func()) {
	t.Helper()
	board, leave, err := b.Acquire(t.Context(), j, tasks)
	if err != nil {
		t.Fatalf("acquire %s: %v", j.Key(), err)
	}
	return board, leave
}

// wantCounts fails the test unless a job was opened and closed so often.
func wantCounts(t testing.TB, c *counting, key string, opened, closed int) {
	t.Helper()
	if o, cl := c.counts(key); o != opened || cl != closed {
		t.Fatalf("%s was opened %d times and closed %d times, want %d and %d", key, o, cl, opened, closed)
	}
}

// TestBoardsShare gives all users of a job one board, and each job its own.
func TestBoardsShare(t *testing.T) {
	t.Parallel()
	store := newCounting()
	var n numbers
	boards := state.NewBoards(store, n.observer())
	t.Cleanup(boards.Close)
	run := state.Job{ID: job.ID, Run: "1"}
	first, leaveFirst := acquire(t, boards, job, 2)
	second, leaveSecond := acquire(t, boards, job, 0)
	other, leaveOther := acquire(t, boards, run, 3)
	if first != second || first == other || other.Tasks() != 3 || other.Job() != run {
		t.Fatalf("one for the job: %v, one for all: %v", first == second, first == other)
	}
	leaveFirst()
	leaveFirst() // counts once
	if _, err := second.Set(t.Context(), of(0, "a", 1)); err != nil {
		t.Fatal(err)
	}
	leaveSecond()
	third, leaveThird := acquire(t, boards, job, 0) // was kept
	if third != first {
		t.Error("the board was not kept")
	}
	leaveThird()
	leaveOther()
	wantCounts(t, store, job.Key(), 1, 0)
	if n.hits != 2 || n.misses != 2 {
		t.Errorf("%d hits and %d misses", n.hits, n.misses)
	}
}

// TestBoardsOpenOnce has many ask for a job while it is opened.
func TestBoardsOpenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, gate := newCounting(), make(chan struct{})
		store.hold = func(context.Context) error { <-gate; return nil }
		boards := state.NewBoards(store, state.Observer{})
		defer boards.Close()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, leave := acquire(t, boards, job, 1)
				leave()
			})
		}
		synctest.Wait()
		wantCounts(t, store, job.Key(), 1, 0)
		// One who can't wait gives up without harm.
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		_, _, err := boards.Acquire(ctx, job, 1)
		wantErr(t, "acquire", err, errEnough)
		close(gate)
		wg.Wait()
		wantCounts(t, store, job.Key(), 1, 0)
	})
}

// TestBoardsOpenerGivesUp has the one who opens a job give up: another takes over.
func TestBoardsOpenerGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		first := make(chan struct{})
		store.hold = func(ctx context.Context) error {
			select {
			case <-first:
				return nil
			case <-ctx.Done():
				close(first)
				return context.Cause(ctx)
			}
		}
		boards := state.NewBoards(store, state.Observer{})
		defer boards.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		gaveUp, got := make(chan error, 1), make(chan error, 3)
		go func() {
			_, _, err := boards.Acquire(ctx, job, 1)
			gaveUp <- err
		}()
		synctest.Wait()
		for range cap(got) {
			go func() {
				_, leave, err := boards.Acquire(t.Context(), job, 1)
				if err == nil {
					leave()
				}
				got <- err
			}()
		}
		synctest.Wait()
		cancel(errEnough)
		wantErr(t, "the opener", <-gaveUp, errEnough)
		for range cap(got) {
			wantErr(t, "others", <-got, nil)
		}
		wantCounts(t, store, job.Key(), 2, 0)
	})
}

// TestBoardsShareErrors tells all who wait what went wrong, without trying for each.
func TestBoardsShareErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, gate, broken := newCounting(), make(chan struct{}), errors.New("broken")
		store.hold = func(context.Context) error { <-gate; return broken }
		boards := state.NewBoards(store, state.Observer{})
		defer boards.Close()
		errs := make(chan error, 5)
		for range cap(errs) {
			go func() {
				_, _, err := boards.Acquire(t.Context(), job, 1)
				errs <- err
			}()
		}
		synctest.Wait()
		close(gate)
		for range cap(errs) {
			wantErr(t, "acquire", <-errs, broken)
		}
		wantCounts(t, store, job.Key(), 1, 0)
		store.hold = nil
		_, leave := acquire(t, boards, job, 1) // it isn't remembered
		leave()
	})
}

// TestBoardsMakeAJob has one ask for a job that isn't there while another wants it made.
func TestBoardsMakeAJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, gate := newCounting(), make(chan struct{})
		store.hold = func(context.Context) error { <-gate; return nil }
		boards := state.NewBoards(store, state.Observer{})
		defer boards.Close()
		ask := func(tasks int) chan error {
			done := make(chan error, 1)
			go func() {
				_, _, err := boards.Acquire(t.Context(), job, tasks)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		asks, makes := ask(0), ask(4)
		close(gate)
		wantCode(t, "who asks", <-asks, jobhost.CodeNotFound)
		wantErr(t, "who makes it", <-makes, nil)
		b, leave := acquire(t, boards, job, 0)
		defer leave()
		if b.Tasks() != 4 {
			t.Errorf("it has %d tasks", b.Tasks())
		}
	})
}

// TestBoardsAfterDelete gives another board when that of a job has ended.
func TestBoardsAfterDelete(t *testing.T) {
	t.Parallel()
	for _, idle := range []bool{false, true} {
		t.Run(fmt.Sprint("idle ", idle), func(t *testing.T) {
			t.Parallel()
			store := newCounting()
			boards := state.NewBoards(store, state.Observer{})
			t.Cleanup(boards.Close)
			old, leaveOld := acquire(t, boards, job, 1)
			if idle {
				leaveOld()
			}
			if err := store.Delete(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			_, _, err := boards.Acquire(t.Context(), job, 0)
			wantCode(t, "it is gone", err, jobhost.CodeNotFound)
			anew, leave := acquire(t, boards, job, 2)
			if anew == old || anew.Tasks() != 2 || anew.Err() != nil {
				t.Fatalf("the same: %v, %d tasks, %v", anew == old, anew.Tasks(), anew.Err())
			}
			leaveOld()
			leaveOld()
			wantErr(t, "the new board", anew.Err(), nil)
			leave()
			again, leave := acquire(t, boards, job, 0)
			if again != anew {
				t.Error("the new board was not kept")
			}
			leave()
			wantCounts(t, store, job.Key(), 3, 1)
		})
	}
}

// TestBoardsKeepSoMany closes those that were used longest ago.
func TestBoardsKeepSoMany(t *testing.T) {
	t.Parallel()
	const most = 1024
	store := newCounting()
	boards := state.NewBoards(store, state.Observer{})
	t.Cleanup(boards.Close)
	name := func(i int) state.Job { return state.Job{ID: fmt.Sprint("job-", i)} }
	used, leave := acquire(t, boards, state.Job{ID: "used"}, 1)
	defer leave()
	_, leaveTwice := acquire(t, boards, state.Job{ID: "used"}, 1)
	leaveTwice()
	leaveTwice() // counts once
	for i := range most {
		_, leave := acquire(t, boards, name(i), 1)
		leave()
	}
	_, leaveFirst := acquire(t, boards, name(0), 0) // is the last used now
	leaveFirst()
	for i := range 3 {
		_, leave := acquire(t, boards, name(most+i), 1)
		leave()
	}
	for i := range most + 3 {
		closed := 0
		if 1 <= i && i <= 3 {
			closed = 1
		}
		wantCounts(t, store, name(i).Key(), 1, closed)
	}
	wantErr(t, "a used board", used.Err(), nil)
}

// TestBoardsKeepSoMuch counts bytes too; one that is too large alone goes alone.
func TestBoardsKeepSoMuch(t *testing.T) {
	t.Parallel()
	store := newCounting()
	boards := state.NewBoards(store, state.Observer{})
	t.Cleanup(boards.Close)
	large := json.RawMessage(`{"a":"` + strings.Repeat("x", jobhost.MaxStatePayloadBytes-8) + `"}`)
	use := func(id string, payloads int) {
		b, leave := acquire(t, boards, state.Job{ID: id}, 1)
		for i := range payloads {
			s := of(0, fmt.Sprint("tag-", i), 1)
			s.Version, s.Payload = 1, large
			b.Put(s)
		}
		leave()
	}
	use("a", 400)
	use("b", 400)
	use("c", 300) // more than 64 MiB in all
	use("small", 1)
	for key, closed := range map[string]int{"a": 1, "b": 0, "c": 0, "small": 0} {
		wantCounts(t, store, key, 1, closed)
	}
	for range 10 { // taken and given back it counts once
		use("b", 0)
	}
	for key, closed := range map[string]int{"b": 0, "c": 0, "small": 0} {
		wantCounts(t, store, key, 1, closed)
	}
	use("huge", 1020) // with what a state takes besides, more than all may
	for key, closed := range map[string]int{"b": 0, "c": 0, "small": 0, "huge": 1} {
		wantCounts(t, store, key, 1, closed)
	}
}

// TestBoardsClose ends boards that are used, kept and being opened.
func TestBoardsClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, gate := newCounting(), make(chan struct{})
		boards := state.NewBoards(store, state.Observer{})
		used, leave := acquire(t, boards, state.Job{ID: "used"}, 1)
		_, leaveKept := acquire(t, boards, state.Job{ID: "kept"}, 1)
		leaveKept()
		sub, err := used.Subscribe(t.Context(), state.Query{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		store.hold = func(context.Context) error { <-gate; return nil }
		opening, closed := make(chan error, 1), make(chan struct{})
		go func() {
			b, leave, err := boards.Acquire(t.Context(), state.Job{ID: "opening"}, 1)
			if err == nil {
				err = b.Err()
				leave()
			}
			opening <- err
		}()
		synctest.Wait()
		go func() {
			boards.Close()
			boards.Close() // again is fine
			close(closed)
		}()
		synctest.Wait()
		close(gate)
		<-closed
		if err := <-opening; err != nil {
			wantErr(t, "the one that was opened", err, state.ErrClosed)
		}
		wantTold(t, sub, "sentinel", "end")
		wantErr(t, "end", sub.Err(), state.ErrClosed)
		leave()
		_, _, err = boards.Acquire(t.Context(), job, 1)
		wantErr(t, "acquire", err, state.ErrClosed)
		for _, key := range []string{"used", "kept", "opening"} {
			wantCounts(t, store, key, 1, 1)
		}
	})
}
