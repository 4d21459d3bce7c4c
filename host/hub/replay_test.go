package hub_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/jobhost/jobhost/host/hub"
)

// TestReplayInPieces lets many readers ask for a long past and not read it: what they hold
// together is a small part of it. One of them reads then, and gets all of it.
func TestReplayInPieces(t *testing.T) {
	const items, readers = 8192, 300
	h := hub.New[[32]uint64](hub.Options{Replay: items})
	for i := range uint64(items) {
		h.Publish("k", [32]uint64{i})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	subs := make([]*hub.Subscription[[32]uint64], readers)
	for i := range subs {
		subs[i] = h.Subscribe(hub.Query{Replay: true}) // ends with the hub
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d readers took %d MiB", readers, took>>20)
	}
	for i := range uint64(items) {
		item, ok, err := subs[0].TryNext()
		if !ok || err != nil || item.Seq != i+1 || item.Value[0] != i {
			t.Fatalf("item %d is %d: %v, %v", i+1, item.Seq, ok, err)
		}
	}
	if _, ok, err := subs[0].TryNext(); ok || err != nil {
		t.Errorf("got %v, %v after all", ok, err)
	}
}

// TestPastForgottenWhileItIsRead: a reader gets no items with a hole between them.
func TestPastForgottenWhileItIsRead(t *testing.T) {
	t.Parallel()
	const remembered = 1000
	told := 0
	h := hub.New[int](hub.Options{Replay: remembered, Buffer: 100, Slow: func() { told++ }})
	for i := range remembered {
		h.Publish("k", i+1)
	}
	all, some := h.Subscribe(hub.Query{Key: "k", Replay: true}), h.Subscribe(hub.Query{Key: "k", Replay: true, After: remembered - 10})
	h.Publish("k", remembered+1)
	for range remembered {
		h.Publish("other", 0)
	}
	got, err := drain(t, all)
	if !errors.Is(err, hub.ErrSlow) || len(got) == 0 || len(got) >= remembered {
		t.Errorf("%d items, then %v", len(got), err)
	}
	for i, v := range got {
		if v != i+1 {
			t.Fatalf("item %d is %d", i, v)
		}
	}
	wantValues(t, some, nil, 991, 992, 993, 994, 995, 996, 997, 998, 999, 1000, 1001)
	if st := h.Stats(); st.Slow != 1 || told != 1 || st.Subscriptions != 1 {
		t.Errorf("stats %+v, told of %d slow readers", st, told)
	}
}
