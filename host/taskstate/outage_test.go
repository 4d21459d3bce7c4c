package taskstate_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// remote is a store of states that can be away, as one across a network is.
type remote struct {
	*statetest.Memory

	mu    sync.Mutex // protects the fields below
	feeds []state.Feed
	away  bool
}

var errAway = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the store does not answer"}

// Open implements [state.Store].
func (r *remote) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		return nil, errAway
	}
	r.feeds = append(r.feeds, feed)
	return r.Memory.Open(ctx, job, tasks, feed)
}

// Delete implements [state.Store].
func (r *remote) Delete(ctx context.Context, job state.Job) error {
	r.mu.Lock()
	away := r.away
	r.mu.Unlock()
	if away {
		return errAway
	}
	return r.Memory.Delete(ctx, job)
}

// goAway ends all who follow a job, as a store does that gives up listening.
func (r *remote) goAway() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = true
	for _, feed := range r.feeds {
		feed.End(errAway)
	}
	r.feeds = nil
}

func (r *remote) comeBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = false
}

// writes counts the writes reported to an observer.
type writes struct {
	mu           sync.Mutex // protects the fields below
	made, failed int
}

func (w *writes) observer() state.Observer {
	return state.Observer{Wrote: func(_ time.Duration, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.failed++
		} else {
			w.made++
		}
	}}
}

func (w *writes) want(t *testing.T, made, failed int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made != made || w.failed != failed {
		t.Errorf("%d writes were made and %d failed, want %d and %d", w.made, w.failed, made, failed)
	}
}

// TestGuestAfterAnOutage: when the store is back, so are the states of attempts and
// fibers that have begun before, and each failure that they saw was counted.
func TestGuestAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]state.Job{"attempt": {ID: "j"}, "fiber": {ID: "f", Run: "_fiber"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, count := &remote{Memory: statetest.NewMemory()}, &writes{}
			k := taskstate.New(taskstate.Config{
				Store: store, Logger: slog.New(slog.DiscardHandler), Observe: count.observer(),
				Jobs: jobs{"j": {ID: "j", Worker: "w", TaskCount: 1}},
			})
			t.Cleanup(k.Close)
			g := k.Guest(job, 0, 1)
			t.Cleanup(g.Close)
			set := func() error { return g.Set(t.Context(), jobhost.TaskState{Tag: "a", Status: 1}) }
			if err := set(); err != nil {
				t.Fatal(err)
			}
			s := watch(t, g, hostcall.StateQuery{Task: 0})
			store.goAway()
			for range 3 {
				if err := set(); !errors.Is(err, errAway) {
					t.Errorf("away: %v", err)
				}
			}
			count.want(t, 1, 3)
			read(t, s)
			read(t, s)
			if _, ok, err := s.Next(); ok || !errors.Is(err, errAway) {
				t.Errorf("the watch ended with %v", err)
			}
			store.comeBack()
			if err := set(); err != nil {
				t.Errorf("back: %v", err)
			}
			count.want(t, 2, 3)
			if got, err := g.State(t.Context(), hostcall.StateQuery{Task: 0, Tag: "a"}); err != nil || got.Version != 2 {
				t.Errorf("%+v, %v", got, err)
			}
			anew := watch(t, g, hostcall.StateQuery{Task: 0, Tag: "a"})
			if got := read(t, anew); got != "0 a 1 replay" {
				t.Errorf("the new watch begins with %s", got)
			}
		})
	}
}

// TestAttemptOfRemovedJob: what an attempt reports whose job was removed is refused
// to its end, and counted.
func TestAttemptOfRemovedJob(t *testing.T) {
	t.Parallel()
	store, count := statetest.NewMemory(), &writes{}
	k := taskstate.New(taskstate.Config{
		Store: store, Logger: slog.New(slog.DiscardHandler), Observe: count.observer(),
		Jobs: jobs{"j": {ID: "j", Worker: "w", TaskCount: 1}},
	})
	t.Cleanup(k.Close)
	g := k.Guest(state.Job{ID: "j"}, 0, 1)
	t.Cleanup(g.Close)
	if err := g.Set(t.Context(), jobhost.TaskState{Tag: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), state.Job{ID: "j"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Set(t.Context(), jobhost.TaskState{Tag: "a"}); !errors.Is(err, state.ErrDeleted) {
			t.Errorf("after it was removed: %v", err)
		}
	}
	if err := g.Set(t.Context(), jobhost.TaskState{Tag: "no tag"}); err == nil {
		t.Error("a state that is none was taken")
	}
	count.want(t, 1, 3)
}
