package rig_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// envMutants is how many mutants TestMutants tries.
const envMutants = "JOBHOST_MUTANTS"

const (
	maxLoad = time.Second // that a module may take to be loaded, or half again what its original takes
	alone   = 5           // times that a mutant is tried again that took longer, or held the process up
)

// TestMutants damages modules in many ways and gives them to the engine, which
// must refuse or contain them: none ends the process or holds it up for longer than
// 100 ms, what one leaves behind is gone from its sandbox afterwards, and no other
// worker notices. make fuzz-modules tries 20,000.
func TestMutants(t *testing.T) {
	t.Parallel()
	first, total, children := number(t, envFirst, 0), 80, 1
	if os.Getenv(envMutants) != "" {
		total, children = number(t, envMutants, 0), 2
	}
	s := &mutantSum{count: map[string]int{}}
	var running sync.WaitGroup
	for c := range children {
		from, to := first+total*c/children, first+total*(c+1)/children
		running.Go(func() { eachInChildren(t, "mutants", from, to-from, 500, s.add) })
	}
	running.Wait()
	for _, r := range s.again {
		s.retry(t, r)
	}
	if s.count["ran"] < total/10 || s.count["refused"] < total/10 || s.count["looks"] < total/10 {
		t.Errorf("too little was tried: %v", s.count)
	}
	t.Logf("%d mutants: %v; the slowest load, of %d, took %v; the latest beat, with %d, was %v late; %d were tried again alone",
		total, s.count, s.slow.N, s.slow.Load.Round(time.Millisecond), s.late.N, s.late.Late.Round(time.Millisecond), len(s.again))
}

// mutantSum is what came of all mutants.
type mutantSum struct {
	mu         sync.Mutex // protects the rest
	count      map[string]int
	slow, late report // the worst of those that were good enough
	again      []report
}

func tooSlow(r report) bool { return r.Load > max(maxLoad, r.Usual*3/2) }
func tooLate(r report) bool { return r.Late > runtimetest.MaxLateness }

func (s *mutantSum) add(r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, n := range r.Count {
		s.count[what] += n
	}
	if tooSlow(r) || tooLate(r) {
		s.again = append(s.again, r)
		return
	}
	s.worst(r)
}

func (s *mutantSum) worst(r report) {
	if r.Load > s.slow.Load {
		s.slow = r
	}
	if r.Late > s.late.Late {
		s.late = r
	}
}

// retry tries a mutant alone: the machine may have been busy with something else.
func (s *mutantSum) retry(t *testing.T, r report) {
	t.Helper()
	best := r
	for n := 0; n < alone && (tooSlow(best) || tooLate(best)); n++ {
		eachInChildren(t, "mutants", r.N, 1, 1, func(again report) {
			if again.Done {
				best.Late = min(best.Late, again.Late)
				if again.Load < best.Load {
					best.Load, best.Usual = again.Load, again.Usual
				}
			}
		})
	}
	s.worst(best)
	if tooSlow(best) {
		t.Errorf("mutant %d took %v to be loaded", r.N, best.Load)
	}
	if tooLate(best) {
		t.Errorf("mutant %d held the process up for %v", r.N, best.Late)
	}
}
