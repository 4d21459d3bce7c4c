package state_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// waiting is a call of Synchronize under way.
type waiting struct {
	done   atomic.Bool
	states []state.State
	err    error
}

func wait(call func() ([]state.State, error)) *waiting {
	w := &waiting{}
	go func() {
		w.states, w.err = call()
		w.done.Store(true)
	}()
	synctest.Wait()
	return w
}

// statuses returns the statuses of states, by task.
func statuses(t testing.TB, states []state.State) (all []int32) {
	t.Helper()
	for i, s := range states {
		if s.TaskID != i || s.JobID != job.ID || s.Tag != "a" {
			t.Fatalf("state %d is %+v", i, s)
		}
		all = append(all, s.Status)
	}
	return all
}

func wantStatuses(t testing.TB, states []state.State, want ...int32) {
	t.Helper()
	got := statuses(t, states)
	for i := range max(len(got), len(want)) {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestSynchronize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, 3)
		w := wait(func() ([]state.State, error) { return f.Synchronize(t.Context(), "a", 5) })
		higher := wait(func() ([]state.State, error) { return f.Synchronize(t.Context(), "a", 6) })
		for _, s := range []state.State{of(0, "a", 5), of(1, "a", 9), of(2, "a", 4), of(2, "b", 5), of(2, "a", -1), of(0, "a", 7)} {
			f.set(s)
			synctest.Wait()
			if w.done.Load() {
				t.Fatalf("it returned after %+v: %+v, %v", s, w.states, w.err)
			}
		}
		f.set(of(2, "a", 5))
		synctest.Wait()
		if !w.done.Load() || w.err != nil || higher.done.Load() {
			t.Fatalf("done: %v with %v, the higher one %v", w.done.Load(), w.err, higher.done.Load())
		}
		wantStatuses(t, w.states, 7, 9, 5)
		f.set(of(2, "a", 6), of(2, "a", -1)) // it was reached for a moment
		synctest.Wait()
		if !higher.done.Load() || higher.err != nil {
			t.Fatalf("the higher one: %v", higher.err)
		}
		wantStatuses(t, higher.states, 7, 9, 6)
		w.states[0].Status = 99 // they are the caller's
		if got := f.get(state.WithTaskID(0)); got.Status != 7 {
			t.Errorf("the board has %+v", got)
		}
	})
}

// TestSynchronizeShares gives each of those who wait states of its own.
func TestSynchronizeShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, 1)
		var all []*waiting
		for range 3 {
			all = append(all, wait(func() ([]state.State, error) { return f.Synchronize(t.Context(), "a", 1) }))
		}
		f.set(of(0, "a", 1))
		synctest.Wait()
		for _, w := range all {
			wantStatuses(t, w.states, 1)
			w.states[0].Status = 2
		}
	})
}

// TestSynchronizeAtOnce returns at once where all are as far, whatever the context says.
func TestSynchronizeAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t, 2)
	f.set(of(0, "a", 5), of(1, "a", 6))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	states, err := f.Synchronize(ctx, "a", 5)
	if err != nil {
		t.Fatal(err)
	}
	wantStatuses(t, states, 5, 6)
}

// TestSynchronizeGivesUp returns what there is, with the cause.
func TestSynchronizeGivesUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		ctx    func(ctx context.Context) (context.Context, context.CancelFunc)
		target int32
		want   error
	}{
		{"cancelled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(errEnough) }
		}, 5, errEnough},
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			return ctx, func() { <-ctx.Done(); cancel() }
		}, 5, context.DeadlineExceeded},
		{"a task is missing", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		}, 1, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t, 3)
				ctx, cancel := c.ctx(t.Context())
				f.set(of(0, "a", 5), of(2, "a", 7))
				w := wait(func() ([]state.State, error) { return f.Synchronize(ctx, "a", c.target) })
				f.set(of(2, "a", 8))
				cancel()
				synctest.Wait()
				wantErr(t, "synchronize", w.err, c.want)
				wantStatuses(t, w.states, 5, 0, 8)
				if w.states[1].Version != 0 {
					t.Errorf("the missing task is %+v", w.states[1])
				}
				// Nothing is left of who has given up.
				f.set(of(1, "a", 9))
				wantStatuses(t, w.states, 5, 0, 8)
			})
		})
	}
}

// TestSynchronizeEnds tells those who wait that the board has ended.
func TestSynchronizeEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(f fixture)
		want error
	}{
		{"closed", func(f fixture) { _ = f.Close() }, state.ErrClosed},
		{"deleted", func(f fixture) { _ = f.store.Delete(context.Background(), job) }, state.ErrDeleted},
		{"store gave up", func(f fixture) { f.End(errEnough) }, errEnough},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t, 2)
				f.set(of(0, "a", 1))
				known := wait(func() ([]state.State, error) { return f.Synchronize(t.Context(), "a", 1) })
				unknown := wait(func() ([]state.State, error) { return f.Synchronize(t.Context(), "z", 1) })
				c.end(f)
				synctest.Wait()
				for _, w := range []*waiting{known, unknown} {
					if !w.done.Load() || len(w.states) > 0 {
						t.Fatalf("done: %v, %+v", w.done.Load(), w.states)
					}
					wantErr(t, "synchronize", w.err, c.want)
				}
			})
		})
	}
}

func TestSynchronizeRefuses(t *testing.T) {
	t.Parallel()
	f := setup(t, 2)
	for _, tag := range []string{"", "no tag", "a/b"} {
		_, err := f.Synchronize(t.Context(), tag, 0)
		wantCode(t, "synchronize", err, jobhost.CodeInvalid)
	}
}

// TestSynchronizeTogether has two boards of a job wait for each other's tasks.
func TestSynchronizeTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, 2)
		other := open(t, f.store, 0, state.Observer{})
		var all []*waiting
		for task, b := range []*state.Board{f.Board, other} {
			all = append(all, wait(func() ([]state.State, error) {
				if _, err := b.Set(t.Context(), of(task, "a", 1)); err != nil {
					return nil, err
				}
				return b.Synchronize(t.Context(), "a", 1)
			}))
		}
		for _, w := range all {
			if !w.done.Load() || w.err != nil {
				t.Fatalf("done: %v, %v", w.done.Load(), w.err)
			}
			wantStatuses(t, w.states, 1, 1)
		}
	})
}
