package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Crashed is an attempt that was under way when the last host died.
type Crashed struct {
	Key   record.Key // of its task
	Token int64
	Job   string // empty = that of the task, whose key no other one can have had
	Began time.Time
	// Failure is its record, but for the task and the times; it is retryable.
	Failure jobhost.Failure
}

// crashed are the attempts that were under way, by task, and the leases that the lanes
// have given for them; there are none once they are settled. The lock of the lanes
// protects it.
type crashed struct {
	attempts map[record.Key]*Crashed
	leases   []*Lease
}

func newCrashed(attempts []Crashed) crashed {
	c := crashed{attempts: make(map[record.Key]*Crashed, len(attempts))}
	for i := range attempts {
		c.attempts[attempts[i].Key] = &attempts[i]
	}
	return c
}

// leaseCrashedLocked takes a task that is being claimed for [Queue.SettleCrashed], if an
// attempt of it was under way. A task that was settled or cancelled since has another token.
func (l *lane) leaseCrashedLocked(e order.Entry, x order.Traits) bool {
	c := &l.q.crashed
	at := c.attempts[e.Key]
	if at == nil || at.Token != int64(e.Token) {
		return false
	}
	lease := &Lease{lane: l, entry: e, unread: x, doubted: l.q.suspects != nil}
	l.running[e.Key] = lease
	c.leases = append(c.leases, lease)
	return true
}

// SettleCrashed lets the attempts fail that were under way when the last host died:
// those of [Config.Crashed] whose tasks are open still, under the same lease. It
// returns when that is durable, with what it has settled. It comes before any slot takes a task.
// Without room in the store it returns why at once; the tasks wait until they are settled.
// Attempts of a job that isn't there, or is another one, are none.
func (q *Queue) SettleCrashed(ctx context.Context, died time.Time) ([]Crashed, error) {
	q.lanes.opening.Lock()
	c := q.crashed
	q.crashed = crashed{}
	q.lanes.opening.Unlock()
	var settled []Crashed
	for len(c.leases) > 0 {
		n := min(len(c.leases), readAhead)
		some, err := q.settleCrashed(ctx, c.leases[:n], c.attempts, died)
		if err != nil && q.full() == nil {
			return nil, fmt.Errorf("settle what was under way when the host died: %w", err)
		}
		settled, c.leases = append(settled, some...), c.leases[n:]
	}
	return settled, q.full()
}

func (q *Queue) settleCrashed(ctx context.Context, leases []*Lease, attempts map[record.Key]*Crashed, died time.Time) ([]Crashed, error) {
	keys := make([]record.Key, len(leases))
	for i, lease := range leases {
		keys[i] = lease.entry.Key
	}
	bodies, err := q.store.Load(ctx, keys)
	if err != nil {
		return nil, err
	}
	open := make(map[record.Key]*record.Body, len(bodies))
	for i := range bodies {
		open[bodies[i].Key] = &bodies[i]
	}
	var settled []Crashed
	ends := make(chan error, len(leases))
	for _, lease := range leases {
		at, body := attempts[lease.entry.Key], open[lease.entry.Key]
		if body == nil || at.Job != "" && body.Job.ID != at.Job {
			lease.lane.unlease(lease)
			continue
		}
		lease.Body = *body
		q.failCrashed(lease, at, died, ends)
		settled = append(settled, *at)
	}
	for range settled {
		if failed := q.awaitEnd(ends); failed != nil {
			err = failed
		}
		if q.full() != nil {
			break
		}
	}
	return settled, err
}

// awaitEnd returns what became of a settlement, or why it waits: it is kept back
// then, and so is its task.
func (q *Queue) awaitEnd(ends <-chan error) error {
	look := time.NewTicker(lookForRoom)
	defer look.Stop()
	for {
		select {
		case err := <-ends:
			return err
		case <-look.C:
			if full := q.full(); full != nil {
				return full
			}
		}
	}
}

// unlease lets a task wait as if it had never been leased.
func (l *lane) unlease(lease *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, lease.entry.Key)
	l.order.Push(lease.entry, lease.unread)
}

// failCrashed settles one attempt, and tells ends when that is durable.
func (q *Queue) failCrashed(lease *Lease, at *Crashed, died time.Time, ends chan<- error) {
	now := q.clock.now()
	if died.Before(at.Began) {
		died = at.Began
	}
	lease.endedAt, lease.crashed = now, true
	lease.TakenAt, lease.ReadyAt = now.Add(-died.Sub(at.Began)), lease.entry.ReadyAt.Time()
	failure := at.Failure
	op, state := q.decide(lease, Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: &failure}})
	op.StartedAt = record.MillisOf(at.Began)
	failure.StartedAt, failure.EndedAt = at.Began.UTC(), died.UTC()
	q.commitSettle(op, lease.Job, func(result record.OpResult, err error) {
		switch {
		case err != nil:
		case result.Err != nil: // it is not open any more, so there is nothing to settle
			lease.lane.finish(lease)
		default:
			q.attemptEnded(lease, jobhost.OutcomeFailed, op, state, result)
			q.cfg.Logger.Warn("an attempt was under way when the host died; it has failed",
				logkey.Job, lease.Job.ID, logkey.Worker, lease.Job.Worker, logkey.Task, lease.Index, logkey.Attempt, op.Attempt, logkey.State, state)
		}
		ends <- err
	})
}
