package jobhost

import (
	"errors"
	"fmt"
	"time"
)

// Retention says how long ended jobs are kept, with their results, error
// records and logs. A job is kept as long as its longest-kept task: if one task
// died, the job is kept as long as dead ones are.
type Retention struct {
	// Succeeded, Cancelled and Dead are counted from the end of a task; 0 = forever.
	Succeeded, Cancelled, Dead time.Duration
	// MaxEntries limits how many dead tasks of a worker are kept. When another
	// one dies, the oldest jobs with dead tasks are removed; 0 = no limit.
	MaxEntries int
}

// MaxRetention limits how long a job can be kept, unless it is kept forever.
const MaxRetention = 10 * 365 * 24 * time.Hour

// DefaultRetention returns the retention of workers that don't set one.
func DefaultRetention() Retention {
	const day = 24 * time.Hour
	return Retention{Succeeded: day, Cancelled: day, Dead: 30 * day}
}

// For returns how long a task that ended in a state is kept; 0 = forever.
func (r Retention) For(state State) time.Duration {
	switch state {
	case Succeeded:
		return r.Succeeded
	case Cancelled:
		return r.Cancelled
	case Dead:
		return r.Dead
	default:
		return 0
	}
}

// Check reports everything that is wrong with the retention.
func (r Retention) Check() error {
	return errors.Join(
		inRange("succeeded", Duration(r.Succeeded), 0, Duration(MaxRetention)),
		inRange("cancelled", Duration(r.Cancelled), 0, Duration(MaxRetention)),
		inRange("dead", Duration(r.Dead), 0, Duration(MaxRetention)),
		inRange("max_entries", r.MaxEntries, 0, 1<<31-1),
	)
}

// String describes the retention in one line, for people.
func (r Retention) String() string {
	kept := func(d time.Duration) string {
		if d == 0 {
			return "for ever"
		}
		return Duration(d).String()
	}
	s := fmt.Sprintf("succeeded %s, cancelled %s, dead %s", kept(r.Succeeded), kept(r.Cancelled), kept(r.Dead))
	if r.MaxEntries > 0 {
		s += fmt.Sprintf(", at most %d dead", r.MaxEntries)
	}
	return s
}

// WorkflowRetention says how long ended workflows are kept, with the jobs of
// their steps.
type WorkflowRetention struct {
	// Completed, Failed and Cancelled are counted from the end of a workflow; 0 = forever.
	Completed, Failed, Cancelled time.Duration
}

// DefaultWorkflowRetention returns the retention of hosts that don't set one.
func DefaultWorkflowRetention() WorkflowRetention {
	const day = 24 * time.Hour
	return WorkflowRetention{Completed: day, Failed: 30 * day, Cancelled: day}
}

// For returns how long a workflow that ended in a status is kept; 0 = forever.
func (r WorkflowRetention) For(status WorkflowStatus) time.Duration {
	switch status {
	case WorkflowCompleted:
		return r.Completed
	case WorkflowFailed:
		return r.Failed
	case WorkflowCancelled:
		return r.Cancelled
	default:
		return 0
	}
}

// Check reports everything that is wrong with the retention.
func (r WorkflowRetention) Check() error {
	return errors.Join(
		inRange("completed", Duration(r.Completed), 0, Duration(MaxRetention)),
		inRange("failed", Duration(r.Failed), 0, Duration(MaxRetention)),
		inRange("cancelled", Duration(r.Cancelled), 0, Duration(MaxRetention)),
	)
}
