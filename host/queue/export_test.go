package queue

import (
	"context"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
)

// Add submits a job that the host made itself.
func (q *Queue) Add(ctx context.Context, job *record.JobSpec) error {
	l := q.lanes.of(job.Worker)
	if err := l.accept(job.Tasks); err != nil {
		return err
	}
	_, err := q.commitSubmit(ctx, job, l)
	return err
}

// Breakers is how many breakers are known, and of how many that are not it is known
// where they stand.
func (q *Queue) Breakers() (known, noted int) {
	q.breakers.mu.Lock()
	defer q.breakers.mu.Unlock()
	return len(q.breakers.byKey), len(q.breakers.notes)
}

// MostBreakers bounds those that nobody uses.
const MostBreakers = mostBreakers

// Resident is how many bytes the bodies in memory are counted as.
func (q *Queue) Resident() int64 { return q.resident.Load() }

// Entries is how many entries a worker's lane holds, gone ones included.
func (q *Queue) Entries(worker string) int {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order.Size().Entries
}

// Live is how many entries a worker's lane holds that are not gone.
func (q *Queue) Live(worker string) int {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	size := l.order.Size()
	return size.Entries - size.Removed
}

// Remains is how much a worker's lane still knows of tasks, besides entries:
// leases, room that was reserved, times of those put back, reads under way.
func (q *Queue) Remains(worker string) int {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	size := l.order.Size()
	return len(l.running) + l.pending + len(l.bodies.loads) + len(l.bodies.held) + len(l.expiring) + len(l.away) + size.Busy + size.Other
}

// Deadlines is how many deadlines a worker's lane holds, forgotten ones included.
func (q *Queue) Deadlines(worker string) int {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order.Size().Deadlines
}

// Even is when the next task of a worker would begin if all came evenly.
func (q *Queue) Even(worker string) time.Time {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rate.Even()
}

// GateFree is how many more tasks may run.
func (q *Queue) GateFree() int {
	q.gate.mu.Lock()
	defer q.gate.mu.Unlock()
	return q.gate.places
}

// SetWall replaces the system's clock.
func (q *Queue) SetWall(wall func() time.Time) { q.clock.wall = wall }
