package state_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

const day = 24 * time.Hour

// cleanup is what the tests ask for, unless they say otherwise.
var cleanup = jobhost.StateCleanup{TombstoneAge: jobhost.Duration(30 * day), DeleteAge: jobhost.Duration(90 * day)}

// aged returns a store with jobs that have changed so many days ago, by name.
func aged(t testing.TB, days ...int) (store *statetest.Memory, now time.Time) {
	t.Helper()
	now = time.Unix(1_700_000_000, 0)
	store = statetest.NewMemory()
	for _, d := range days {
		store.Now = func() time.Time { return now.Add(-time.Duration(d) * day) }
		b, err := state.NewBoard(t.Context(), store, state.Job{ID: fmt.Sprintf("d%03d", d)}, 1, state.Observer{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Set(t.Context(), of(0, "a", 1)); err != nil {
			t.Fatal(err)
		}
	}
	store.Now = func() time.Time { return now }
	return store, now
}

// left shows the jobs of a store, and which are marked.
func left(t testing.TB, store state.Store) string {
	t.Helper()
	list, err := store.Jobs(t.Context(), "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range list {
		name := info.Key()
		if !info.DeletedAt.IsZero() {
			name += "†"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestClean(t *testing.T) {
	t.Parallel()
	all := []int{0, 29, 30, 31, 89, 90, 200}
	for _, c := range []struct {
		name   string
		marked []int
		keep   []string
		dry    bool
		want   jobhost.StateCleaned
		left   string
	}{
		{name: "by age", want: jobhost.StateCleaned{Tombstoned: 3, Deleted: 2}, left: "d000 d029 d030† d031† d089†"},
		{name: "dry run", dry: true, want: jobhost.StateCleaned{Tombstoned: 3, Deleted: 2, DryRun: true}, left: "d000 d029 d030 d031 d089 d090 d200"},
		{name: "keep", keep: []string{"d031", "d200", "d000"}, want: jobhost.StateCleaned{Tombstoned: 2, Deleted: 1}, left: "d000 d029 d030† d031 d089† d200"},
		{name: "marked before", marked: []int{0, 31, 200}, want: jobhost.StateCleaned{Tombstoned: 2, Deleted: 2}, left: "d000† d029 d030† d031† d089†"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store, now := aged(t, all...)
			for _, d := range c.marked {
				if err := store.Mark(t.Context(), state.Job{ID: fmt.Sprintf("d%03d", d)}); err != nil {
					t.Fatal(err)
				}
			}
			request := cleanup
			request.DryRun = c.dry
			keep := func(j state.Job) (bool, error) { return slices.Contains(c.keep, j.ID), nil }
			done, err := state.Clean(t.Context(), store, request, now, keep)
			if err != nil || done != c.want {
				t.Errorf("got %+v, %v; want %+v", done, err, c.want)
			}
			if got := left(t, store); got != c.left {
				t.Errorf("left: %s; want %s", got, c.left)
			}
		})
	}
}

// TestCleanInBatches goes through many jobs, some of which disappear on the way.
func TestCleanInBatches(t *testing.T) {
	t.Parallel()
	for _, jobs := range []int{99, 100, 101, 200, 350} {
		t.Run(fmt.Sprint(jobs), func(t *testing.T) {
			t.Parallel()
			store := statetest.NewMemory()
			for i := range jobs {
				j := state.Job{ID: fmt.Sprint("job-", i%(jobs/2+1)), Run: fmt.Sprint(i)}
				b, err := state.NewBoard(t.Context(), store, j, 1, state.Observer{})
				if err == nil {
					_, err = b.Set(t.Context(), state.State{Tag: "a"})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			counted := &batches{Store: store}
			request := cleanup
			for _, c := range []struct {
				dry                 bool
				after               time.Duration
				tombstoned, deleted int
			}{
				{true, 40 * day, jobs, 0},
				{false, 40 * day, jobs, 0},
				{true, 100 * day, 0, jobs},
				{false, 100 * day, 0, jobs},
			} {
				request.DryRun = c.dry
				done, err := state.Clean(t.Context(), counted, request, time.Now().Add(c.after), nil)
				if err != nil || done.Tombstoned != c.tombstoned || done.Deleted != c.deleted {
					t.Fatalf("%+v: %+v, %v", c, done, err)
				}
			}
			if got := left(t, store); got != "" {
				t.Errorf("left: %s", got)
			}
			if counted.largest > 100 {
				t.Errorf("a batch had %d jobs", counted.largest)
			}
		})
	}
}

// batches is a store that notes how many jobs are asked for at once.
type batches struct {
	state.Store
	largest int
}

// Jobs implements [state.Store].
func (b *batches) Jobs(ctx context.Context, after string, limit int) ([]state.Info, error) {
	b.largest = max(b.largest, limit)
	return b.Store.Jobs(ctx, after, limit)
}

func TestCleanRefuses(t *testing.T) {
	t.Parallel()
	store, now := aged(t, 200)
	for _, c := range []jobhost.StateCleanup{
		{},
		{TombstoneAge: cleanup.TombstoneAge},
		{DeleteAge: cleanup.DeleteAge},
		{TombstoneAge: cleanup.DeleteAge, DeleteAge: cleanup.DeleteAge},
		{TombstoneAge: cleanup.DeleteAge, DeleteAge: cleanup.TombstoneAge},
		{TombstoneAge: -1, DeleteAge: 1},
	} {
		_, err := state.Clean(t.Context(), store, c, now, nil)
		wantCode(t, fmt.Sprintf("%+v", c), err, jobhost.CodeInvalid)
	}
	if got := left(t, store); got != "d200" {
		t.Errorf("left: %s", got)
	}
}

// TestCleanStops keeps what was done when something fails.
func TestCleanStops(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	t.Run("asking what to keep", func(t *testing.T) {
		t.Parallel()
		store, now := aged(t, 100, 200, 300)
		done, err := state.Clean(t.Context(), store, cleanup, now, func(j state.Job) (bool, error) {
			if j.ID == "d200" {
				return true, broken
			}
			return false, nil
		})
		if !errors.Is(err, broken) || done.Deleted != 1 || left(t, store) != "d200 d300" {
			t.Errorf("%+v, %v, left: %s", done, err, left(t, store))
		}
	})
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		store, now := aged(t, 100)
		_ = store.Close()
		_, err := state.Clean(t.Context(), store, cleanup, now, nil)
		wantErr(t, "clean", err, state.ErrClosed)
	})
	t.Run("somebody was quicker", func(t *testing.T) {
		t.Parallel()
		store, now := aged(t, 40, 100, 200)
		done, err := state.Clean(t.Context(), store, cleanup, now, func(j state.Job) (bool, error) {
			return false, store.Delete(t.Context(), j)
		})
		if err != nil || done.Deleted != 0 || done.Tombstoned != 0 {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// TestCleanTellsWatchers ends those who watch a job that goes.
func TestCleanTellsWatchers(t *testing.T) {
	t.Parallel()
	f := setup(t, 1)
	f.set(of(0, "a", 1))
	sub := f.subscribe()
	if _, err := state.Clean(t.Context(), f.store, cleanup, time.Now().Add(100*day), nil); err != nil {
		t.Fatal(err)
	}
	wantTold(t, sub, "was 0/a v1 =1", "sentinel", "end")
	wantErr(t, "end", sub.Err(), state.ErrDeleted)
}
