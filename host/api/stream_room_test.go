package api

import (
	"bytes"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// newStream returns one whose answer is thrown away.
func newStream(r *room) *stream {
	w := &deadlines{ResponseWriter: httptest.NewRecorder()}
	return &stream{
		lease: &lease{room: r}, w: w, c: http.NewResponseController(w), begun: true, cancel: func(error) {},
		dirty: make(chan struct{}, 1), stall: time.Minute,
	}
}

func TestLargeEventsTakeRoom(t *testing.T) {
	t.Parallel()
	const limit = 10 * smallEvent
	r := newRoom(limit)
	s := newStream(r)
	if err := s.hold(t.Context(), smallEvent); err != nil || r.used != 0 {
		t.Errorf("a small one: %v, %d taken", err, r.used)
	}
	if err := s.hold(t.Context(), 3*smallEvent); err != nil || r.used != 3*smallEvent {
		t.Errorf("a large one: %v, %d taken", err, r.used)
	}
	if s.write("x"); len(r.writing) != 1 {
		t.Error("its reader can't be hurried")
	}
	if s.written(false); r.used != 0 || len(r.writing) != 0 {
		t.Errorf("%d bytes are still taken", r.used)
	}
	if err := s.hold(t.Context(), 2*limit); err != nil || r.used != limit {
		t.Errorf("one that is larger than all there is: %v, %d taken", err, r.used)
	}
	s.written(false)
}

// TestReplayWaitsForRoom: what finds no room is dropped and asked for again once there is some, which
// it holds until the end of the replay.
func TestReplayWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 * pageRoom
		q := newQuota(1, 1, limit, time.Minute)
		call := &response{ResponseWriter: &deadlines{ResponseWriter: httptest.NewRecorder()}, quota: q}
		call.lease.room = &q.answers
		a := &API{}
		a.cfg.Limits.Stall = time.Minute
		s := newStream(&q.answers)
		s.lease = &call.lease
		other := &lease{room: &q.answers}
		other.tryTake(5 * pageRoom)
		replays, none := 0, errors.New("the end")
		var group sync.WaitGroup
		group.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", http.NoBody)
			err := a.replayed(t.Context(), call, r, s, func(room func(bytes int) error) error {
				replays++
				if err := room(7 * pageRoom); err != nil {
					return err
				}
				if err := s.hold(t.Context(), pageRoom); err != nil || q.answers.used != 8*pageRoom {
					t.Errorf("within a replay: %v, %d taken", err, q.answers.used)
				}
				s.written(false)
				if s.written(true); q.answers.used != 0 {
					t.Errorf("after the replay %d are taken", q.answers.used)
				}
				return none
			})
			if !errors.Is(err, none) {
				t.Error(err)
			}
		})
		synctest.Wait()
		if replays != 1 || q.answers.used != 5*pageRoom || q.answers.waiting.Len() != 1 {
			t.Errorf("%d replays, %d taken, %d wait", replays, q.answers.used, q.answers.waiting.Len())
		}
		other.release()
		group.Wait()
		if replays != 2 {
			t.Errorf("%d replays", replays)
		}
	})
}

// TestStreamsHammer follows large events in many streams at once, which are flushed meanwhile.
func TestStreamsHammer(t *testing.T) {
	t.Parallel()
	r := newRoom(8 * smallEvent)
	var group sync.WaitGroup
	for seed := range uint64(8) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 2))
			s := newStream(r)
			flushed := make(chan struct{})
			group.Go(func() {
				for range 200 {
					s.flush()
				}
				close(flushed)
			})
			sizes := iter.Seq2[int, error](func(yield func(int, error) bool) {
				for range 200 {
					if !yield(random.IntN(4*smallEvent), nil) {
						return
					}
				}
			})
			data := whole(bytes.Repeat([]byte("x"), 1000))
			err := follow(t.Context(), s, sizes, func(n *int) heading { return heading{name: "e", room: *n, json: data} })
			if !errors.Is(err, errSilent) {
				t.Error(err)
			}
			<-flushed
		})
	}
	group.Wait()
	if r.used != 0 || r.waiting.Len() != 0 || len(r.writing) != 0 {
		t.Errorf("%d bytes are taken, %d wait, %d are written", r.used, r.waiting.Len(), len(r.writing))
	}
}
