package queuetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// told is what the caller of a commit was told.
type told struct {
	id  string
	err error
	// open says that the store has failed, so it is open what became of the commit.
	open bool
}

// testOutcome lets the store meet a fault, or its end, with commits under way: what was told of each is true, and only
// a store that has failed may leave it open. An error tells nothing of a commit that comes after it.
func testOutcome(t *testing.T, h Harness) {
	const callers, most = 8, 100
	s := open(t, h)
	if s.Err() != nil {
		t.Fatalf("a store that was just opened has failed: %v", s.Err())
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex // protects all
		all   []told
		begun = make(chan struct{}, callers*most)
	)
	for c := range callers {
		wg.Go(func() {
			for i := range most {
				id := fmt.Sprintf("%d-%d", c, i)
				answer := make(chan told, 1)
				s.Commit([]record.Op{&record.Submit{Job: spec(id, "w")}}, func(_ []record.OpResult, err error) {
					answer <- told{id, err, hasFailed(s)}
				})
				begun <- struct{}{}
				a := <-answer
				mu.Lock()
				all = append(all, a)
				mu.Unlock()
				if a.err != nil {
					return
				}
			}
		})
	}
	for range callers * most / 4 {
		<-begun
	}
	if h.Fault != nil {
		h.Fault(t, s.Store)
	} else if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if hasFailed(s) {
		_, err := commit(s.Store, &record.Submit{Job: spec("late", "w")})
		if s.Err() == nil || err == nil {
			t.Errorf("a store that has failed with %v answers a commit with %v", s.Err(), err)
		}
	} else if s.Err() != nil {
		t.Errorf("Failed isn't closed, and Err is %v", s.Err())
	}
	if h.Reopen == nil {
		return
	}
	s.Store = h.Reopen(t, s.Store)
	for _, a := range all {
		_, err := s.Job(t.Context(), a.id)
		there := err == nil
		if !there {
			wantCode(t, err, jobhost.CodeNotFound)
		}
		if there != (a.err == nil) && !(a.err != nil && a.open) {
			t.Errorf("job %s is there: %v, but its submit was answered with %v", a.id, there, a.err)
		}
	}
}

func hasFailed(s record.Store) bool {
	select {
	case <-s.Failed():
		return true
	default:
		return false
	}
}

// testNow: a store's clock goes on.
func testNow(t *testing.T, h Harness) {
	s := open(t, h)
	before := s.Now()
	s.submit(spec("a", "w"))
	if after := s.Now(); before.IsZero() || after.Before(before) {
		t.Errorf("the clock goes from %v to %v", before, after)
	}
}
