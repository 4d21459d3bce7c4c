package state_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/state"
)

// costly is a store that is paid for what it follows.
type costly struct{ *counting }

func (costly) IdleTime() time.Duration { return time.Minute }

// TestIdleBoardsOfCostlyStores: a board that no one uses is closed after the time that the
// store says, counted from the last use.
func TestIdleBoardsOfCostlyStores(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := costly{newCounting()}
		boards := state.NewBoards(c, state.Observer{})
		defer boards.Close()
		want := func(key string, opened, closed int) {
			t.Helper()
			synctest.Wait()
			if o, cl := c.counts(key); o != opened || cl != closed {
				t.Errorf("%s was opened %d times and closed %d times, want %d and %d", key, o, cl, opened, closed)
			}
		}
		use := func(key string) func() {
			t.Helper()
			_, release, err := boards.Acquire(t.Context(), state.Job{ID: key}, 1)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		use("a")()
		time.Sleep(59 * time.Second)
		want("a", 1, 0)
		again := use("a")
		time.Sleep(time.Hour) // in use
		want("a", 1, 0)
		again()
		time.Sleep(59 * time.Second)
		use("a")()
		time.Sleep(59 * time.Second)
		want("a", 1, 0)
		time.Sleep(time.Second)
		want("a", 1, 1)
		use("a")()
		want("a", 2, 1)
		for i := range 42 {
			use(fmt.Sprint("b", i))()
		}
		time.Sleep(time.Minute)
		for i := range 42 {
			want(fmt.Sprint("b", i), 1, 1)
		}
		if open := boards.Jobs(); len(open) != 0 {
			t.Errorf("open: %v", open)
		}
	})
}

// TestEndOfBoards: boards are ended by their jobs, used ones, idle ones and those that are
// being opened; others stay.
func TestEndOfBoards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounting()
		boards := state.NewBoards(c, state.Observer{})
		defer boards.Close()
		acquire := func(key string) (*state.Board, func()) {
			b, release, err := boards.Acquire(t.Context(), state.ParseKey(key), 1)
			if err != nil {
				t.Error(err)
			}
			return b, release
		}
		used, release := acquire("a")
		idle, leave := acquire("a~1")
		leave()
		other, keep := acquire("b")
		defer keep()
		hold := make(chan struct{})
		c.hold = func(context.Context) error { <-hold; return nil }
		opening := make(chan *state.Board)
		go func() {
			b, release := acquire("a~2")
			release()
			opening <- b
		}()
		synctest.Wait()
		boards.End(func(job state.Job) bool { return job.ID == "a" }, state.ErrDeleted)
		close(hold)
		if b := <-opening; b.Err() != nil {
			t.Errorf("what was acquired then has ended: %v", b.Err())
		}
		if opened, closed := c.counts("a~2"); opened != 2 || closed != 1 {
			t.Errorf("what was being opened was opened %d times and closed %d times", opened, closed)
		}
		for name, b := range map[string]*state.Board{"used": used, "idle": idle} {
			if b.Err() != state.ErrDeleted { //nolint:errorlint // this very one
				t.Errorf("%s: %v", name, b.Err())
			}
		}
		if other.Err() != nil {
			t.Errorf("another job: %v", other.Err())
		}
		release()
		if anew, release := acquire("a"); anew == used {
			t.Error("it was not opened anew")
		} else {
			release()
		}
		if opened, closed := c.counts("a"); opened != 2 || closed != 1 {
			t.Errorf("it was opened %d times and closed %d times", opened, closed)
		}
	})
}
