package queue

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Removal is why tasks were removed from the store.
type Removal string

// The reasons.
const (
	Expired Removal = "expired" // their retention is over
	Evicted Removal = "evicted" // there were more dead ones than max_entries
)

// How the store is tidied. A piece delays the commits behind it by about two
// milliseconds, and after each the store rests for as long as it took, so that
// even with a million jobs to remove at once at least half of the writer's time
// is left for others.
const (
	tidyTasks  = 200             // removed at once
	tidySoon   = time.Second     // shortest time between two looks when nothing is left to do
	tidyLate   = time.Minute     // longest: a job that ends during the wait may be kept for less than that
	tidyLag    = 5 * time.Minute // jobs that are kept for a day or longer may be removed so much later
	tidyNoDisk = 5 * time.Second // until the next try when the store doesn't work
)

// Tidy removes jobs whose retention is over, and gives back what the store has
// no use for, until ctx ends. Its error is always nil: a store that doesn't
// work is tried again.
func (q *Queue) Tidy(ctx context.Context) error {
	w := &watcher{q: q}
	for {
		w.look(ctx)
		if wait := q.calm.Sub(q.clock.now()); wait > 0 {
			if !pause(ctx, min(wait, tidyLate)) {
				return nil
			}
			continue
		}
		began := time.Now()
		op := &record.Tidy{At: record.MillisOf(q.clock.now()), Limit: tidyTasks, Lag: q.tidyLag()}
		var result record.OpResult
		err := q.commitOne(ctx, op, func(r record.OpResult) {
			q.dropped(r)
			q.tellGone(r)
			result = r
		})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end is no fault
		}
		if err == nil && result.Removed > 0 {
			q.cfg.Removed(Expired, int(result.Removed))
		}
		if !pause(ctx, q.tidyRest(op, result, err, time.Since(began))) {
			return nil
		}
	}
}

// pause lets time pass; false = ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tidyRest returns how long to wait after a piece that took so long.
func (q *Queue) tidyRest(op *record.Tidy, result record.OpResult, err error, took time.Duration) time.Duration {
	switch {
	case err != nil && q.full() != nil: // which has been logged
		return tidyNoDisk
	case err != nil:
		q.cfg.Logger.Warn("jobs whose time is over are not removed", logkey.Error, err)
		return tidyNoDisk
	case result.Next == 0:
		return tidyLate
	case result.Next <= op.At:
		return took
	}
	return min(max(time.Duration(result.Next-op.At)*time.Millisecond, tidySoon), tidyLate)
}

// tidyLag returns how late jobs may be removed: a hundredth of the shortest
// retention, within bounds.
func (q *Queue) tidyLag() time.Duration {
	lag := tidyLag
	for _, l := range q.lanes.all() {
		r := l.retention()
		for _, kept := range []time.Duration{r.Succeeded, r.Cancelled, r.Dead} {
			if kept > 0 {
				lag = min(lag, kept/100)
			}
		}
	}
	return max(lag, tidySoon)
}

// expires returns until when a task of a job is kept that ends now in a state:
// as its job says, else as its worker does, else, when there is no lane, by the
// default; and as long as its unique key keeps others out.
func (l *lane) expires(job *record.JobSpec, state jobhost.State, now time.Time) record.Millis {
	kept := job.Retention
	if kept == 0 && job.Origin != nil {
		return 0 // it is kept with its workflow
	}
	if kept == 0 {
		kept = l.retention().For(state)
	}
	if kept == 0 {
		return 0
	}
	unique := job.UniqueUntil
	if unique != 0 { // as it was meant, if the job was submitted while the clock was ahead
		unique = min(unique, record.MillisOf(now)+unique-job.CreatedAt)
	}
	return max(record.MillisOf(now.Add(kept)), unique)
}

// retention returns how long the jobs of a lane are kept; there need be no lane.
func (l *lane) retention() jobhost.Retention {
	if l != nil {
		return l.worker.Load().Retention
	}
	return jobhost.DefaultRetention()
}

// evicted reports jobs, with so many tasks, that were removed for a newer dead one.
func (q *Queue) evicted(worker string, ids []string, tasks int64) {
	if len(ids) == 0 {
		return
	}
	q.cfg.Removed(Evicted, int(tasks))
	q.cfg.Logger.Warn("dead letters were removed for newer ones: max_entries is reached",
		logkey.Worker, worker, logkey.Count, len(ids), "oldest", ids[0])
}
