package state_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost/state"
)

// TestScopes watches in the four ways.
func TestScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opts []state.Option
		want []string
	}{
		{"job", nil, []string{
			"was 0/a v1 =1", "was 1/a v1 =2", "was 1/b v1 =3", "sentinel",
			"1/b v2 =4", "0/b v1 =5", "0/a v2 =6", "2/a v1 =7",
		}},
		{"tag", []state.Option{state.WithTag("a")}, []string{
			"was 0/a v1 =1", "was 1/a v1 =2", "sentinel", "0/a v2 =6", "2/a v1 =7",
		}},
		{"task", []state.Option{state.WithTaskID(1)}, []string{
			"was 1/a v1 =2", "was 1/b v1 =3", "sentinel", "1/b v2 =4",
		}},
		{"task and tag", []state.Option{state.WithTaskID(1), state.WithTag("b")}, []string{
			"was 1/b v1 =3", "sentinel", "1/b v2 =4",
		}},
		{"task and tag, missing", []state.Option{state.WithTaskID(2), state.WithTag("b")}, []string{"sentinel"}},
		{"tag, missing", []state.Option{state.WithTag("c")}, []string{"sentinel"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, 3)
			f.set(of(0, "a", 1), of(1, "a", 2), of(1, "b", 3))
			sub := f.subscribe(c.opts...)
			f.set(of(1, "b", 4), of(0, "b", 5), of(0, "a", 6), of(2, "a", 7))
			wantTold(t, sub, c.want...)
		})
	}
}

// TestReplayOrder replays by time, and what is of one time by version, task and tag.
func TestReplayOrder(t *testing.T) {
	t.Parallel()
	f := setup(t, 11)
	var c clock
	f.store.Now = c.Now
	for _, s := range []struct {
		at, task int
		tag      string
	}{
		{1, 0, "old"},
		{9, 0, "late"},
		{5, 10, "a"},
		{5, 2, "b"},
		{5, 2, "B"},
		{5, 2, "a"},
		{5, 0, "z"},
		{5, 0, "z"}, // version 2
		{3, 1, "m"}, // the clock went back
	} {
		c.set(s.at)
		f.set(of(s.task, s.tag, 1))
	}
	wantTold(t, f.subscribe(),
		"was 0/old v1 =1", "was 1/m v1 =1",
		"was 2/B v1 =1", "was 2/a v1 =1", "was 2/b v1 =1", "was 10/a v1 =1", "was 0/z v2 =1",
		"was 0/late v1 =1", "sentinel")
}

// TestEvents looks at what events have besides their states.
func TestEvents(t *testing.T) {
	t.Parallel()
	f := setup(t, 1)
	f.set(of(0, "a", 1))
	sub := f.subscribe()
	f.set(of(0, "a", 2))
	replay, sentinel, change := <-sub.Events(), <-sub.Events(), <-sub.Events()
	if !replay.Replay || replay.Sentinel || replay.State.JobID != job.ID || replay.State.Timestamp.IsZero() {
		t.Errorf("replay: %+v", replay)
	}
	if !sentinel.Sentinel || !sentinel.Replay || sentinel.State.Version != 0 || sentinel.Cursor == "" {
		t.Errorf("sentinel: %+v", sentinel)
	}
	if change.Replay || change.Sentinel || change.Cursor == "" || change.Cursor == sentinel.Cursor {
		t.Errorf("change: %+v", change)
	}
	if sub.Err() != nil {
		t.Errorf("it has ended: %v", sub.Err())
	}
}

// TestResume goes on after a cursor.
func TestResume(t *testing.T) {
	t.Parallel()
	f := setup(t, 2)
	f.set(of(0, "a", 1), of(0, "b", 2), of(1, "a", 3))
	cursor := wantTold(t, f.subscribe(), "was 0/a v1 =1", "was 0/b v1 =2", "was 1/a v1 =3", "sentinel")
	wantTold(t, f.subscribe(state.WithAfter(cursor)), "sentinel")

	f.set(of(0, "b", 4), of(0, "b", 5))
	sub := f.subscribe(state.WithAfter(cursor))
	wantTold(t, sub, "was 0/b v3 =5", "sentinel")
	f.set(of(1, "a", 6), of(1, "c", 7))
	first := brief(<-sub.Events())
	if first != "1/a v2 =6" {
		t.Fatalf("told %s", first)
	}
	sub.Close()
	// Of a live event too, and within a scope.
	after := func(opts ...state.Option) *state.Subscription {
		return f.subscribe(append(opts, state.WithAfter(cursor))...)
	}
	wantTold(t, after(), "was 0/b v3 =5", "was 1/a v2 =6", "was 1/c v1 =7", "sentinel")
	wantTold(t, after(state.WithTag("a")), "was 1/a v2 =6", "sentinel")
	wantTold(t, after(state.WithTaskID(0)), "was 0/b v3 =5", "sentinel")
	wantTold(t, after(state.WithTaskID(0), state.WithTag("a")), "sentinel")
}

// TestResumeFromElsewhere goes on after cursors of which the board knows nothing.
func TestResumeFromElsewhere(t *testing.T) {
	t.Parallel()
	f := setup(t, 1)
	f.set(of(0, "a", 1), of(0, "b", 1))
	cursor := wantTold(t, f.subscribe(), "was 0/a v1 =1", "was 0/b v1 =1", "sentinel")
	epoch, _, _ := strings.Cut(cursor, "-")
	other := setup(t, 1)
	other.set(of(0, "a", 1), of(0, "a", 2))
	for _, after := range []string{
		"", "-", "x", epoch, epoch + "-", epoch + "-x", epoch + "--1", epoch + "-99", epoch + "-0", epoch + "-99999999999999999999", "-2",
		wantTold(t, other.subscribe(), "was 0/a v2 =2", "sentinel"),
	} {
		wantTold(t, f.subscribe(state.WithAfter(after)), "was 0/a v1 =1", "was 0/b v1 =1", "sentinel")
	}
}

// TestSlowReader ends the subscription that doesn't read, and it alone.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	f := setup(t, 1)
	f.set(of(0, "a", 0))
	slow, swift := f.subscribe(), f.subscribe()
	want := []string{"was 0/a v1 =0", "sentinel"}
	wantTold(t, swift, want...)
	for i := range state.Buffer + 1 {
		if slow.Err() != nil {
			t.Fatalf("it ended after %d changes: %v", i, slow.Err())
		}
		f.set(of(0, "a", 1))
		change := fmt.Sprintf("0/a v%d =1", i+2)
		wantTold(t, swift, change)
		want = append(want, change)
	}
	wantErr(t, "end", slow.Err(), state.ErrSlow)
	// What it got before can be read, and all the rest after its cursor.
	cursor := wantTold(t, slow, append(slices.Clone(want[:len(want)-1]), "end")...)
	wantTold(t, f.subscribe(state.WithAfter(cursor)), "was "+want[len(want)-1], "sentinel")
	if swift.Err() != nil {
		t.Errorf("the other has ended: %v", swift.Err())
	}
}

var errEnough = errors.New("seen enough")

// TestEnds ends subscriptions in every way: what was sent before can be read.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(f fixture, s *state.Subscription, cancel context.CancelCauseFunc)
		want error
	}{
		{"closed", func(_ fixture, s *state.Subscription, _ context.CancelCauseFunc) { s.Close() }, state.ErrClosed},
		{"cancelled", func(_ fixture, _ *state.Subscription, cancel context.CancelCauseFunc) { cancel(errEnough) }, errEnough},
		{"cancelled without a cause", func(_ fixture, _ *state.Subscription, cancel context.CancelCauseFunc) { cancel(nil) }, context.Canceled},
		{"board closed", func(f fixture, _ *state.Subscription, _ context.CancelCauseFunc) { _ = f.Close() }, state.ErrClosed},
		{"store closed", func(f fixture, _ *state.Subscription, _ context.CancelCauseFunc) { _ = f.store.Close() }, state.ErrClosed},
		{"deleted", func(f fixture, _ *state.Subscription, _ context.CancelCauseFunc) {
			_ = f.store.Delete(context.Background(), job)
		}, state.ErrDeleted},
		{"marked as deleted", func(f fixture, _ *state.Subscription, _ context.CancelCauseFunc) {
			_ = f.store.Mark(context.Background(), job)
		}, state.ErrDeleted},
		{"store gave up", func(f fixture, _ *state.Subscription, _ context.CancelCauseFunc) { f.End(errEnough) }, errEnough},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t, 1)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				calls := 0
				sub, err := f.Subscribe(ctx, state.Query{}, func() { calls++ })
				if err != nil {
					t.Fatal(err)
				}
				f.set(of(0, "a", 1))
				c.end(f, sub, cancel)
				synctest.Wait()
				wantTold(t, sub, "sentinel", "0/a v1 =1", "end")
				wantErr(t, "end", sub.Err(), c.want)
				if calls != 2 {
					t.Errorf("notify was called %d times, want for the change and the end", calls)
				}
				sub.Close() // what has ended keeps its reason
				cancel(errors.New("late"))
				synctest.Wait()
				wantErr(t, "later", sub.Err(), c.want)
			})
		})
	}
}

// TestAfterTheEnd asks a board that has ended.
func TestAfterTheEnd(t *testing.T) {
	t.Parallel()
	f := setup(t, 1)
	f.set(of(0, "a", 1))
	f.End(errEnough)
	f.End(state.ErrDeleted) // the first counts
	f.Put(state.State{Tag: "a", Version: 9})
	for range 2 { // again is fine
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.Get(state.Query{})
	wantErr(t, "get", err, errEnough)
	_, err = f.List(state.Query{})
	wantErr(t, "list", err, errEnough)
	_, err = f.Set(t.Context(), of(0, "a", 2))
	wantErr(t, "set", err, errEnough)
	_, err = f.Subscribe(t.Context(), state.Query{}, nil)
	wantErr(t, "subscribe", err, errEnough)
	_, err = f.Synchronize(t.Context(), "a", 1)
	wantErr(t, "synchronize", err, errEnough)
	wantErr(t, "err", f.Err(), errEnough)
}

// TestSubscribeWithAnEndedContext gets what there is, and the end.
func TestSubscribeWithAnEndedContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, 1)
		f.set(of(0, "a", 1))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		sub, err := f.Subscribe(ctx, state.Query{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantTold(t, sub, "was 0/a v1 =1", "sentinel", "end")
		wantErr(t, "end", sub.Err(), errEnough)
	})
}

// TestVersionsAfterDelete begins anew on another board; the old one tells nothing.
func TestVersionsAfterDelete(t *testing.T) {
	t.Parallel()
	f := setup(t, 2)
	old := f.subscribe()
	f.set(of(0, "a", 1), of(0, "a", 2), of(0, "a", 3))
	if err := f.store.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	anew := fixture{Board: open(t, f.store, 5, state.Observer{}), store: f.store, t: t}
	sub := anew.subscribe()
	anew.set(of(4, "a", 1), of(0, "a", 4))
	wantTold(t, sub, "sentinel", "4/a v1 =1", "0/a v1 =4")
	cursor := wantTold(t, old, "sentinel", "0/a v1 =1", "0/a v2 =2", "0/a v3 =3", "end")
	wantErr(t, "end", old.Err(), state.ErrDeleted)
	_, err := f.Set(t.Context(), of(0, "a", 9))
	wantErr(t, "set", err, state.ErrDeleted)
	wantTold(t, anew.subscribe(state.WithAfter(cursor)), "was 4/a v1 =1", "was 0/a v1 =4", "sentinel")
}

// TestEndWhileSending ends subscriptions while changes are sent to them.
func TestEndWhileSending(t *testing.T) {
	t.Parallel()
	f := setup(t, 1)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				ctx, cancel := context.WithCancelCause(t.Context())
				sub, err := f.Subscribe(ctx, state.Query{}, nil)
				if err != nil {
					t.Error(err)
				}
				f.set(of(0, "a", 1))
				switch i % 3 {
				case 0:
					sub.Close()
				case 1:
					cancel(errEnough)
				}
				go cancel(errEnough)
				for range sub.Events() { // until it is closed
				}
				if sub.Err() == nil {
					t.Error("the channel was closed, but there is no reason")
				}
			}
		})
	}
	wg.Wait()
}
