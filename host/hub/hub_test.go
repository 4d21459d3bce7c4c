package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost/host/hub"
)

// drain reads until there is nothing more or an error.
func drain(t *testing.T, s *hub.Subscription[int]) (values []int, err error) {
	t.Helper()
	for {
		item, ok, err := s.TryNext()
		if !ok || err != nil {
			return values, err
		}
		values = append(values, item.Value)
	}
}

func wantValues(t *testing.T, s *hub.Subscription[int], wantErr error, want ...int) {
	t.Helper()
	got, err := drain(t, s)
	if !errors.Is(err, wantErr) {
		t.Errorf("error %v, want %v", err, wantErr)
	}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestSubscriptionSeesItsKeyOnly(t *testing.T) {
	t.Parallel()
	h := hub.New[int](hub.Options{})
	a, b, all := h.Subscribe(hub.Query{Key: "a"}), h.Subscribe(hub.Query{Key: "b"}), h.Subscribe(hub.Query{})
	h.Publish("a", 1)
	h.Publish("b", 2)
	h.Publish("", 3)
	h.Publish("a", 4)
	wantValues(t, a, nil, 1, 4)
	wantValues(t, b, nil, 2)
	wantValues(t, all, nil, 1, 2, 3, 4)
}

func TestPublishNumbersFromOne(t *testing.T) {
	t.Parallel()
	h := hub.New[uint64](hub.Options{})
	s := h.Subscribe(hub.Query{})
	if seq := h.Publish("k", 0); seq != 1 {
		t.Errorf("first number %d", seq)
	}
	if seq := h.PublishFunc("k", func(seq uint64) uint64 { return seq * 10 }); seq != 2 {
		t.Errorf("second number %d", seq)
	}
	_, _ = s.Next(t.Context())
	item, err := s.Next(t.Context())
	if err != nil || item.Value != 20 || item.Seq != 2 || item.Key != "k" {
		t.Errorf("got %+v, %v", item, err)
	}
}

func TestSlowReaderGetsWhatItHasThenErrSlow(t *testing.T) {
	t.Parallel()
	told := 0
	h := hub.New[int](hub.Options{Buffer: 2, Slow: func() { told++ }})
	slow, quick := h.Subscribe(hub.Query{}), h.Subscribe(hub.Query{})
	for i := range 3 {
		h.Publish("", i)
		wantValues(t, quick, nil, i)
	}
	if !errors.Is(slow.Err(), hub.ErrSlow) {
		t.Errorf("Err %v before reading", slow.Err())
	}
	wantValues(t, slow, hub.ErrSlow, 0, 1)
	if st := h.Stats(); st.Slow != 1 || told != 1 || st.Subscriptions != 1 || st.Published != 3 {
		t.Errorf("stats %+v, told of %d slow readers", st, told)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		query hub.Query
		gap   bool
		want  []int
	}{
		{"none", hub.Query{After: 3}, false, nil},
		{"from the middle", hub.Query{Replay: true, After: 8}, false, []int{9, 10}},
		{"nothing is missing at the edge", hub.Query{Replay: true, After: 6}, false, []int{7, 8, 9, 10}},
		{"up to date", hub.Query{Replay: true, After: 10}, false, nil},
		{"one is forgotten", hub.Query{Replay: true, After: 5}, true, []int{7, 8, 9, 10}},
		{"from the beginning", hub.Query{Replay: true}, true, []int{7, 8, 9, 10}},
		{"number of an earlier life", hub.Query{Replay: true, After: 1000}, true, []int{7, 8, 9, 10}},
		{"largest number", hub.Query{Replay: true, After: 1<<64 - 1}, true, []int{7, 8, 9, 10}},
		{"of a key", hub.Query{Replay: true, After: 6, Key: "even"}, false, []int{8, 10}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := hub.New[int](hub.Options{Replay: 4, Buffer: 1})
			for i := 1; i <= 10; i++ {
				h.Publish([]string{"even", "odd"}[i%2], i)
			}
			s := h.Subscribe(tc.query)
			if tc.gap {
				if _, err := s.Next(t.Context()); !errors.Is(err, hub.ErrGap) {
					t.Fatalf("error %v, want ErrGap", err)
				}
			}
			// What is live follows, though more than Buffer is unread.
			h.Publish("even", 12)
			wantValues(t, s, nil, append(tc.want, 12)...)
		})
	}
}

func TestGapTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := hub.New[int](hub.Options{Replay: 2})
	for i := range 6 {
		h.Publish("", i)
	}
	_, err := h.Subscribe(hub.Query{Replay: true, After: 2}).Next(t.Context())
	gap, ok := errors.AsType[*hub.GapError](err)
	if !ok || gap.After != 2 || gap.Next != 5 || !strings.Contains(err.Error(), "3 to 4") {
		t.Errorf("gap %+v: %v", gap, err)
	}
}

func TestNothingRememberedIsAGap(t *testing.T) {
	t.Parallel()
	h := hub.New[int](hub.Options{})
	h.Publish("", 1)
	if _, err := h.Subscribe(hub.Query{Replay: true}).Next(t.Context()); !errors.Is(err, hub.ErrGap) {
		t.Errorf("error %v, want ErrGap", err)
	}
	wantValues(t, h.Subscribe(hub.Query{Replay: true, After: 1}), nil)
}

func TestBytesBoundReplayAndBuffer(t *testing.T) {
	t.Parallel()
	size := func(v []byte) int { return len(v) }
	h := hub.NewSized(hub.Options{Replay: 100, Buffer: 100, ReplayBytes: 25, BufferBytes: 15}, size)
	slow := h.Subscribe(hub.Query{Key: "k"})
	h.Publish("k", make([]byte, 50)) // too large to remember, but an idle reader takes it
	for range 3 {
		h.Publish("", make([]byte, 10))
	}
	late := h.Subscribe(hub.Query{Replay: true, After: 2})
	for _, want := range []uint64{3, 4} {
		if item, err := late.Next(t.Context()); err != nil || item.Seq != want {
			t.Errorf("got %d, %v, want %d", item.Seq, err, want)
		}
	}
	h.Publish("k", make([]byte, 1))
	if item, err := slow.Next(t.Context()); err != nil || len(item.Value) != 50 {
		t.Errorf("got %d bytes, %v", len(item.Value), err)
	}
	if _, err := slow.Next(t.Context()); !errors.Is(err, hub.ErrSlow) {
		t.Errorf("error %v, want ErrSlow", err)
	}
}

// TestBudget: readers of two hubs share what they may have unread, and each may have one item
// whatever its size.
func TestBudget(t *testing.T) {
	t.Parallel()
	o := hub.Options{Replay: 100, Budget: hub.NewBudget(25)}
	size := func(v []byte) int { return len(v) }
	one, other := hub.NewSized(o, size), hub.NewSized(o, size)
	a, b := one.Subscribe(hub.Query{}), other.Subscribe(hub.Query{})
	for range 3 {
		one.Publish("", make([]byte, 10))
	}
	if !errors.Is(a.Err(), hub.ErrSlow) || o.Budget.Used() != 20 {
		t.Errorf("%v, %d bytes are unread", a.Err(), o.Budget.Used())
	}
	other.Publish("", make([]byte, 50))
	if b.Err() != nil || o.Budget.Used() != 70 {
		t.Errorf("%v, %d bytes are unread", b.Err(), o.Budget.Used())
	}
	other.Publish("", nil)
	if !errors.Is(b.Err(), hub.ErrSlow) {
		t.Errorf("%v after another one", b.Err())
	}
	if _, err := a.Next(t.Context()); err != nil || o.Budget.Used() != 60 {
		t.Errorf("%v, %d bytes are unread", err, o.Budget.Used())
	}
	a.Close()
	b.Close()
	one.Subscribe(hub.Query{Replay: true}).Close()
	if o.Budget.Used() != 0 {
		t.Errorf("%d bytes are unread of closed subscriptions", o.Budget.Used())
	}
}

func TestCloseEndsSubscriptionsWithReason(t *testing.T) {
	t.Parallel()
	reason := errors.New("the fiber ended")
	h := hub.New[int](hub.Options{Replay: 4})
	keyed, all := h.Subscribe(hub.Query{Key: "k"}), h.Subscribe(hub.Query{})
	h.Publish("k", 1)
	h.Close(reason)
	h.Close(errors.New("again"))
	wantValues(t, keyed, reason, 1)
	wantValues(t, all, reason, 1)
	wantValues(t, h.Subscribe(hub.Query{Replay: true}), reason, 1)
	if seq := h.Publish("k", 2); seq != 0 {
		t.Errorf("published %d at a closed hub", seq)
	}
	if st := h.Stats(); st.Subscriptions != 0 {
		t.Errorf("%d subscriptions are left", st.Subscriptions)
	}
	h = hub.New[int](hub.Options{})
	h.Close(nil)
	wantValues(t, h.Subscribe(hub.Query{}), hub.ErrClosed)
}

func TestCloseOfSubscriptionWakesItsReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hub.New[int](hub.Options{})
		s := h.Subscribe(hub.Query{Key: "k"})
		got := make(chan error)
		go func() {
			_, err := s.Next(t.Context())
			got <- err
		}()
		synctest.Wait()
		s.Close()
		s.Close()
		if err := <-got; !errors.Is(err, hub.ErrClosed) {
			t.Errorf("error %v, want ErrClosed", err)
		}
		if seq := h.Publish("k", 1); seq != 1 {
			t.Errorf("number %d", seq)
		}
		wantValues(t, s, hub.ErrClosed)
	})
}

func TestNextReturnsTheCauseOfItsContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	s := hub.New[int](hub.Options{}).Subscribe(hub.Query{})
	if _, err := s.Next(ctx); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
	if s.Err() != nil {
		t.Errorf("the subscription has ended: %v", s.Err())
	}
}

func TestUnlinkInAnyOrder(t *testing.T) {
	t.Parallel()
	for skip := range 3 {
		h := hub.New[int](hub.Options{})
		var subs []*hub.Subscription[int]
		for range 3 {
			subs = append(subs, h.Subscribe(hub.Query{Key: "k"}))
		}
		subs[skip].Close()
		h.Publish("k", 7)
		for i, s := range subs {
			if i != skip {
				wantValues(t, s, nil, 7)
			}
			s.Close()
		}
		if st := h.Stats(); st.Subscriptions != 0 {
			t.Errorf("%d subscriptions are left", st.Subscriptions)
		}
	}
}
