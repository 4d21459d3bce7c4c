package test

import (
	"sync"
	"testing"
)

// ledger is what the outside world knows for certain of the jobs it submitted:
// what was acknowledged, and which results it has seen.
type ledger struct {
	mu    sync.Mutex // protects everything below
	acked map[string]bool
	// seen maps a job whose result was seen to the number of the process that
	// was running then.
	seen map[string]int
	// runs maps a job to the numbers of the processes that began an attempt of it.
	runs map[string][]int
}

func newLedger() *ledger {
	return &ledger{acked: map[string]bool{}, seen: map[string]int{}, runs: map[string][]int{}}
}

func (l *ledger) ack(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[id] = true
}

func (l *ledger) see(id string, process int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, seen := l.seen[id]; !seen {
		l.seen[id] = process
	}
}

// unseen returns up to n acknowledged jobs whose result was not seen yet.
func (l *ledger) unseen(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for id := range l.acked {
		if _, seen := l.seen[id]; !seen {
			if ids = append(ids, id); len(ids) == n {
				break
			}
		}
	}
	return ids
}

func (l *ledger) ran(process int, ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.runs[id] = append(l.runs[id], process)
	}
}

// checkRuns checks that every run beyond the first is one that a crash
// explains: its attempt was under way, or its settlement not durable, when the
// process before it died.
func (l *ledger) checkRuns(t *testing.T, inFlight int) {
	t.Helper()
	again := map[int]int{} // duplicates by the process that ran them
	for id, processes := range l.runs {
		for i, process := range processes {
			if i > 0 && processes[i-1] == process {
				t.Errorf("job %s ran twice in process %d", id, process)
			}
			if seen, ok := l.seen[id]; ok && process > seen {
				t.Errorf("job %s ran in process %d, after its result was seen in process %d", id, process, seen)
			}
			if i > 0 {
				again[process]++
			}
		}
	}
	for process, n := range again {
		if n > inFlight {
			t.Errorf("process %d ran %d jobs again, but only %d leases can have been in flight", process, n, inFlight)
		}
	}
	t.Logf("%d jobs acknowledged, %d results seen, runs again by process: %v", len(l.acked), len(l.seen), again)
}
