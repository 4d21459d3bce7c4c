package pending

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

var errEnd = errors.New("the end")

// queue is a source that others fill.
type queue struct {
	mu       sync.Mutex // protects the rest
	messages []string
	ended    bool
	closed   bool
}

func (q *queue) add(message string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, message)
}

func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
}

func (q *queue) Ready() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.messages) > 0 || q.ended
}

func (q *queue) Next() ([]byte, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.messages) > 0:
		message := q.messages[0]
		q.messages = q.messages[1:]
		return []byte(message), true, nil
	case q.ended:
		return nil, false, errEnd
	}
	return nil, false, nil
}

func (q *queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// TestStream: a stream among other things that are waited for.
func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		s := NewStream(q)
		all, list := begin(1)
		list = append(list, After(10*time.Second), s)
		time.AfterFunc(time.Second, func() { q.add("one"); s.Ring() })
		time.AfterFunc(2*time.Second, all[0].answer)
		time.AfterFunc(3*time.Second, s.Ring) // for nothing
		time.AfterFunc(4*time.Second, func() { q.end(); s.Ring() })
		began := time.Now()
		if i := Wait(t.Context(), list); i != 2 || time.Since(began) != time.Second {
			t.Fatalf("%d after %v", i, time.Since(began))
		}
		if m, ok, err := s.Next(); string(m) != "one" || !ok || err != nil {
			t.Errorf("%q, %v, %v", m, ok, err)
		}
		if m, ok, err := s.Next(); m != nil || ok || err != nil {
			t.Errorf("%q, %v, %v", m, ok, err)
		}
		if i := Wait(t.Context(), list); i != 0 || time.Since(began) != 2*time.Second {
			t.Fatalf("%d after %v", i, time.Since(began))
		}
		if i := Wait(t.Context(), list[1:]); i != 1 || time.Since(began) != 4*time.Second {
			t.Fatalf("%d after %v", i, time.Since(began))
		}
		if _, ok, err := s.Next(); ok || !errors.Is(err, errEnd) {
			t.Errorf("%v, %v", ok, err)
		}
		s.Ring() // nothing waits
		if s.Drop(); !q.closed {
			t.Error("the source is open")
		}
	})
}

// TestStreamHammer reads streams that are filled concurrently: nothing is missed,
// and no read waits for an available message.
func TestStreamHammer(t *testing.T) {
	t.Parallel()
	const streams, messages = 4, 300
	var fill sync.WaitGroup
	var list []hostcall.Pending
	for range streams {
		q := &queue{}
		s := NewStream(q)
		list = append(list, s)
		fill.Go(func() {
			for n := range messages {
				q.add(strconv.Itoa(n))
				s.Ring()
			}
			q.end()
			s.Ring()
		})
	}
	got := map[hostcall.Pending]int{}
	for len(list) > 0 {
		i := Wait(t.Context(), list)
		if i < 0 {
			t.Fatalf("stopped with %d streams open", len(list))
		}
		s := list[i].(*Stream)
		for more := 1 + rand.IntN(3); more > 0; more-- { // not always all that is there
			m, ok, err := s.Next()
			if err != nil {
				list = append(list[:i], list[i+1:]...)
				break
			}
			if !ok {
				break
			}
			if string(m) != strconv.Itoa(got[s]) {
				t.Fatalf("%s comes after %d", m, got[s])
			}
			got[s]++
		}
	}
	fill.Wait()
	for _, n := range got {
		if n != messages {
			t.Errorf("%d messages", n)
		}
	}
}
