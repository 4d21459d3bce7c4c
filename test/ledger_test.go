package test

import (
	"strconv"
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
	// leases maps a job to its leases, in the order of the processes. The jobs
	// have one task each.
	leases map[string][]lease
}

// lease is one attempt of a job in one process, by the host's own log.
type lease struct {
	process int
	attempt string
	// settled is true when the host said that the end of the attempt is
	// durable. A lease that was not settled was open when its process ended:
	// the attempt ran, or its settlement waited for the disk.
	settled bool
}

func newLedger() *ledger {
	return &ledger{acked: map[string]bool{}, seen: map[string]int{}, leases: map[string][]lease{}}
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

// ran notes the leases of a process that has ended, and returns how many of
// them were open then.
func (l *ledger) ran(t *testing.T, process int, host *process) (open int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range host.attempts() {
		leases := l.leases[line.job]
		last := len(leases) - 1
		held := last >= 0 && leases[last].process == process && !leases[last].settled
		switch {
		case !line.settled && !held:
			l.leases[line.job] = append(leases, lease{process: process, attempt: line.attempt})
			open++
		case line.settled && held && leases[last].attempt == line.attempt:
			leases[last].settled = true
			open--
		case line.returned && !held:
			// It was taken while the host began to stop, and put back before it ran.
		case line.failed && !held && (last < 0 || !leases[last].settled && leases[last].attempt == line.attempt):
			// It was under way when the process before was killed, perhaps before that said so.
		default:
			t.Errorf("process %d: job %s, attempt %s, settled %t: that doesn't follow its leases %+v",
				process, line.job, line.attempt, line.settled, leases)
		}
	}
	return open
}

// checkRuns checks that every run beyond the first is one that a crash
// explains. That is strict: a run is allowed only if the lease before it was
// open when its process was killed, and it is the next attempt, or that attempt again:
// a lost lease counts only if the attempt was under way. A job whose settlement the host had once called durable
// must never run again, and neither must one whose result was seen. There is
// no number of duplicates that would be few enough otherwise.
//
// It is not vacuous, as the caller checks with ran: a host that ends cleanly
// leaves no lease open, so it does say what it settled.
func (l *ledger) checkRuns(t *testing.T) {
	t.Helper()
	again := map[int]int{} // by process
	for id, leases := range l.leases {
		for i, run := range leases {
			if seen, ok := l.seen[id]; ok && run.process > seen {
				t.Errorf("job %s ran in process %d, after its result was seen in process %d", id, run.process, seen)
			}
			if i == 0 {
				continue
			}
			again[run.process]++
			if before := leases[i-1]; before.settled || before.process == run.process || !follows(before.attempt, run.attempt) {
				t.Errorf("job %s ran again in process %d without a lease that was lost: %+v", id, run.process, leases)
			}
		}
	}
	t.Logf("%d jobs acknowledged, %d results seen, runs again by process: %v", len(l.acked), len(l.seen), again)
}

// follows reports whether an attempt is the one that follows a lost one.
func follows(lost, next string) bool {
	a, errA := strconv.Atoi(lost)
	b, errB := strconv.Atoi(next)
	return errA == nil && errB == nil && (b == a || b == a+1)
}

// acks is how many jobs were acknowledged.
func (l *ledger) acks() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}
