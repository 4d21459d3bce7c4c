package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
)

func newRoom(limit int64) *room {
	return &newQuota(1, 1, limit, 30*time.Second).answers
}

func TestRoomIsTakenInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10)
		first := &lease{room: r}
		if !first.tryTake(6) {
			t.Fatal("there is no room at the beginning")
		}
		var order []int64
		var group sync.WaitGroup
		for _, n := range []int64{8, 3} { // the second would fit, but came later
			group.Go(func() {
				l := &lease{room: r}
				if err := l.take(t.Context(), n); err != nil {
					t.Error(err)
				}
				order = append(order, n)
				l.release()
			})
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Errorf("%v was served before there was room", order)
		}
		first.release()
		group.Wait()
		if len(order) != 2 || order[0] != 8 || r.used != 0 {
			t.Errorf("served in the order %v, and %d bytes are still taken", order, r.used)
		}
	})
}

func TestRoomThatStaysFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10)
		(&lease{room: r}).tryTake(10)
		begun := time.Now()
		err := (&lease{room: r}).take(t.Context(), 1)
		if took := time.Since(begun); jobhost.CodeOf(err) != jobhost.CodeUnavailable || took != 30*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := (&lease{room: r}).take(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that is gone: %v", err)
		}
		if r.waiting.Len() != 0 || r.used != 10 {
			t.Errorf("%d still wait, %d bytes are taken", r.waiting.Len(), r.used)
		}
	})
}

func TestSettle(t *testing.T) {
	t.Parallel()
	r := newRoom(10)
	one, two := &lease{room: r}, &lease{room: r, overdraws: true}
	one.tryTake(4)
	two.tryTake(4)
	if err := one.settle(7); !errors.Is(err, errNoRoom) || one.n != 4 {
		t.Errorf("more than there is: %v, %d held", err, one.n)
	}
	if err := one.settle(6); err != nil || r.used != 10 {
		t.Errorf("as much as there is: %v, %d taken", err, r.used)
	}
	if err := two.settle(100); err != nil || r.used != 16 {
		t.Errorf("the answer to a change: %v, %d taken", err, r.used)
	}
	one.release()
	two.release()
	if r.used != 0 {
		t.Errorf("%d bytes are still taken", r.used)
	}
}

// deadlines is a connection that remembers the last deadline.
type deadlines struct {
	http.ResponseWriter
	until atomic.Pointer[time.Time]
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.until.Store(&t)
	return nil
}

// TestReadersHurry checks that a client that reads slowly has less time for a piece while
// others wait, and that further ones who wait give it no more.
func TestReadersHurry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10)
		conn := &deadlines{ResponseWriter: httptest.NewRecorder()}
		slow := &lease{room: r}
		slow.tryTake(10)
		if err := slow.extend(http.NewResponseController(conn)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if left := conn.until.Load().Sub(begun); left != 30*time.Second {
			t.Errorf("alone it has %v", left)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() { _ = (&lease{room: r}).take(ctx, 1) })
			synctest.Wait()
			if left := conn.until.Load().Sub(begun); left != 3*time.Second {
				t.Errorf("while others wait it has %v", left)
			}
			time.Sleep(time.Second) // of the bubble
		}
		slow.release()
		group.Wait()
		cancel()
	})
}

// TestRoomHammer takes and gives back from many goroutines: never is more taken than
// there is, and nothing is left in the end.
func TestRoomHammer(t *testing.T) {
	t.Parallel()
	const limit = 100
	r := newRoom(limit)
	var held atomic.Int64
	var group sync.WaitGroup
	for seed := range uint64(16) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			conn := http.NewResponseController(&deadlines{ResponseWriter: httptest.NewRecorder()})
			l := &lease{room: r}
			for range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(2000))*time.Microsecond)
				if n := 1 + random.Int64N(limit); l.tryTake(n) || l.take(ctx, n) == nil {
					if now := held.Add(l.n); now > limit {
						t.Errorf("%d bytes are taken", now)
					}
					_ = l.extend(conn)
					held.Add(-l.n)
					_ = l.settle(l.n / 2)
				}
				cancel()
				l.release()
			}
		})
	}
	group.Wait()
	if r.used != 0 || r.waiting.Len() != 0 || len(r.writing) != 0 {
		t.Errorf("%d bytes are taken, %d wait, %d are written", r.used, r.waiting.Len(), len(r.writing))
	}
}
