package hub_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/host/hub"
)

// TestHammer lets publishers, readers that keep up, readers that give up and
// readers that come back all work on one hub. What a reader sees must rise
// without gaps, except for reported ones.
func TestHammer(t *testing.T) {
	t.Parallel()
	const publishers, each, topics = 4, 2000, 8
	budget := hub.NewBudget(100)
	h := hub.NewSized(hub.Options{Replay: 64, Buffer: 32, Budget: budget}, func(int) int { return 1 })
	done := errors.New("done")
	var writers, readers sync.WaitGroup
	var told atomic.Int64 // of gaps and slowness
	for range publishers {
		writers.Go(func() {
			for i := range each {
				h.Publish(fmt.Sprint(i%topics), i)
			}
		})
	}
	for range 4 {
		readers.Go(func() { told.Add(resume(t, h, done)) })
	}
	for i := range 4 {
		readers.Go(func() {
			for range 500 {
				s := h.Subscribe(hub.Query{Key: fmt.Sprint(i), Replay: i%2 == 0})
				_, _, _ = s.TryNext()
				s.Close()
			}
		})
	}
	writers.Wait()
	h.Close(done)
	readers.Wait()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are unread", budget.Used())
	}
	if st := h.Stats(); st.Published != publishers*each || st.Subscriptions != 0 {
		t.Errorf("stats %+v", st)
	}
	t.Logf("readers were told %d times that they were too slow", told.Load())
}

// resume reads everything, subscribing again each time it was too slow, and
// returns how often that happened.
func resume(t *testing.T, h *hub.Hub[int], done error) (told int64) {
	t.Helper()
	var last uint64
	for {
		s := h.Subscribe(hub.Query{Replay: true, After: last})
		for {
			item, err := s.Next(t.Context())
			if gap, ok := errors.AsType[*hub.GapError](err); ok {
				told++
				last = gap.Next - 1
				continue
			}
			if err != nil {
				s.Close()
				told++
				if errors.Is(err, done) {
					return told
				}
				break
			}
			if item.Seq != last+1 {
				t.Errorf("item %d follows %d", item.Seq, last)
			}
			last = item.Seq
		}
	}
}
