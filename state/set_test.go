package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

func TestSet(t *testing.T) {
	t.Parallel()
	f := setup(t, 2)
	st := of(1, "a", 5)
	st.Message, st.Payload = "half", json.RawMessage(`{"rows":5}`)
	got, err := f.Set(t.Context(), st)
	if err != nil || got.Version != 1 || got.JobID != job.ID || got.Timestamp.IsZero() || got.EventID == "" || got.SchemaVersion != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if now := f.get(state.WithTaskID(1), state.WithTag("a")); now.Version != 1 || string(now.Payload) != `{"rows":5}` || now.Message != "half" {
		t.Errorf("the board has %+v", now)
	}
	if states, bytes := f.Size(); states != 1 || bytes != len("a"+"half"+`{"rows":5}`)+len(got.EventID) {
		t.Errorf("%d states of %d bytes", states, bytes)
	}
	st.JobID = "another" // a board has but one
	if got, err := f.Set(t.Context(), st); err != nil || got.JobID != job.ID || got.Version != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	valid := of(1, "a", 1)
	for _, c := range []struct {
		name   string
		change func(s *state.State)
		code   jobhost.Code
	}{
		{"task too high", func(s *state.State) { s.TaskID = 2 }, jobhost.CodeInvalid},
		{"task below 0", func(s *state.State) { s.TaskID = -1 }, jobhost.CodeInvalid},
		{"no tag", func(s *state.State) { s.Tag = "" }, jobhost.CodeInvalid},
		{"not a tag", func(s *state.State) { s.Tag = "a b" }, jobhost.CodeInvalid},
		{"long tag", func(s *state.State) { s.Tag = strings.Repeat("t", jobhost.MaxTagBytes+1) }, jobhost.CodeInvalid},
		{"long message", func(s *state.State) { s.Message = strings.Repeat("m", jobhost.MaxStateMessageBytes+1) }, jobhost.CodeInvalid},
		{"message is not text", func(s *state.State) { s.Message = "\xff" }, jobhost.CodeInvalid},
		{"zero in a message", func(s *state.State) { s.Message = "a\x00b" }, jobhost.CodeInvalid},
		{"payload is not JSON", func(s *state.State) { s.Payload = json.RawMessage(`{"a":}`) }, jobhost.CodeInvalid},
		{"payload is a list", func(s *state.State) { s.Payload = json.RawMessage(`[1]`) }, jobhost.CodeInvalid},
		{"payload is null", func(s *state.State) { s.Payload = json.RawMessage(`null`) }, jobhost.CodeInvalid},
		{"payload too large", func(s *state.State) {
			s.Payload = json.RawMessage(`{"a":"` + strings.Repeat("x", jobhost.MaxStatePayloadBytes) + `"}`)
		}, jobhost.CodeTooLarge},
		{"long event id", func(s *state.State) { s.EventID = strings.Repeat("e", jobhost.MaxIDBytes+1) }, jobhost.CodeInvalid},
		{"schema below 0", func(s *state.State) { s.SchemaVersion = -1 }, jobhost.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, 2)
			f.store.Before = func(state.State) error { t.Error("the store was asked"); return nil }
			st := valid
			c.change(&st)
			_, err := f.Set(t.Context(), st)
			wantCode(t, "set", err, c.code)
			if states, _ := f.Size(); states != 0 {
				t.Errorf("there are %d states", states)
			}
		})
	}
}

// TestSetFails has the store refuse a write: nothing has happened then.
func TestSetFails(t *testing.T) {
	t.Parallel()
	f := setup(t, 1)
	sub := f.subscribe()
	broken := errors.New("disk is full")
	f.store.Before = func(state.State) error { return broken }
	_, err := f.Set(t.Context(), of(0, "a", 1))
	wantErr(t, "set", err, broken)
	wantTold(t, sub, "sentinel")
	if got := f.get(state.WithTag("a")); got.Version != 0 {
		t.Errorf("the board has %+v", got)
	}
}

// TestVersionsAtOnce has many write one state, through two boards.
func TestVersionsAtOnce(t *testing.T) {
	t.Parallel()
	const writes = 100
	f := setup(t, 1)
	boards := []*state.Board{f.Board, open(t, f.store, 0, state.Observer{})}
	sub := f.subscribe()
	var versions sync.Map
	var wg sync.WaitGroup
	for i := range writes {
		wg.Go(func() {
			got, err := boards[i%2].Set(t.Context(), of(0, "a", int32(i)))
			if other, twice := versions.LoadOrStore(got.Version, i); err != nil || twice {
				t.Errorf("writes %d and %v have version %d, %v", i, other, got.Version, err)
			}
		})
	}
	wg.Wait()
	want := []string{"sentinel"}
	for v := int64(1); v <= writes; v++ {
		i, _ := versions.Load(v)
		want = append(want, fmt.Sprintf("0/a v%d =%d", v, i))
	}
	wantTold(t, sub, want...)
	for _, b := range boards {
		if got, err := b.Get(state.NewQuery(state.WithTag("a"))); err != nil || got.Version != writes {
			t.Errorf("a board has %+v, %v", got, err)
		}
	}
}

// TestStaleChanges hands a feed what it knows, and what it knew before.
func TestStaleChanges(t *testing.T) {
	t.Parallel()
	f := setup(t, 2)
	sub := f.subscribe()
	at := func(version int64, status int32) state.State {
		s := of(1, "a", status)
		s.Version = version
		return s
	}
	f.Put(at(2, 20), at(1, 10), at(2, 21))
	f.Put(at(5, 50))
	f.Put(at(5, 51), at(4, 40))
	f.Put()
	wantTold(t, sub, "sentinel", "1/a v2 =20", "1/a v5 =50")
	if got := f.get(state.WithTaskID(1)); got.Status != 50 || got.JobID != job.ID {
		t.Errorf("the board has %+v", got)
	}
}

// TestBoundOfStates fills a job with as many states as it may have.
func TestBoundOfStates(t *testing.T) {
	t.Parallel()
	f := setup(t, jobhost.MaxTasks)
	batch := make([]state.State, 0, jobhost.MaxStatesPerJob)
	for i := range cap(batch) {
		s := of(i%jobhost.MaxTasks, fmt.Sprint("tag-", i/jobhost.MaxTasks), 1)
		s.Version = 1
		batch = append(batch, s)
	}
	f.Put(batch[1:]...)
	f.set(of(0, "tag-0", 1))
	_, err := f.Set(t.Context(), of(0, "one-more", 1))
	wantCode(t, "one more", err, jobhost.CodeExhausted)
	f.set(of(0, "tag-0", 2)) // what is there can change
	if n, _ := f.Size(); n != jobhost.MaxStatesPerJob {
		t.Errorf("there are %d states", n)
	}
}

// TestBoundOfBytes fills a job with as many bytes as it may have.
func TestBoundOfBytes(t *testing.T) {
	t.Parallel()
	f := setup(t, 2)
	large := json.RawMessage(`{"a":"` + strings.Repeat("x", jobhost.MaxStatePayloadBytes-8) + `"}`)
	first := of(0, "tag-0", 1)
	first.Payload = large
	f.set(first)
	for i := 1; i < jobhost.MaxStateBytesPerJob/jobhost.MaxStatePayloadBytes-1; i++ {
		s := of(0, fmt.Sprint("tag-", i), 1)
		s.Version, s.Payload = 1, large
		f.Put(s)
	}
	full := of(1, "a", 1)
	full.Payload = large
	_, err := f.Set(t.Context(), full)
	wantCode(t, "a large one more", err, jobhost.CodeExhausted)
	f.set(of(1, "a", 1)) // a small one has room
	first.EventID = "event-2"
	f.set(first)             // what takes no more than before always has
	f.set(of(0, "tag-0", 2)) // and what takes less
	f.set(full)
	if _, bytes := f.Size(); bytes > jobhost.MaxStateBytesPerJob {
		t.Errorf("there are %d bytes", bytes)
	}
}

// writesWhileOpening is a store to which others write at awkward moments.
type writesWhileOpening struct {
	*statetest.Memory
	before, after func()
}

// Open implements [state.Store].
func (w *writesWhileOpening) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	w.before()
	defer w.after()
	return w.Memory.Open(ctx, job, tasks, feed)
}

// TestWriteWhileOpening loses nothing that is written while a board is opened.
func TestWriteWhileOpening(t *testing.T) {
	t.Parallel()
	f := setup(t, 1)
	store := &writesWhileOpening{
		Memory: f.store,
		before: func() { f.set(of(0, "a", 1)) },
		after:  func() { f.set(of(0, "a", 2), of(0, "b", 3)) },
	}
	other := fixture{Board: open(t, store, 1, state.Observer{}), store: f.store, t: t}
	sub := other.subscribe()
	f.set(of(0, "a", 4))
	wantTold(t, sub, "was 0/a v2 =2", "was 0/b v1 =3", "sentinel", "0/a v3 =4")
}
