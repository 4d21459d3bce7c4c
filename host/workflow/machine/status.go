package machine

import "github.com/jobhost/jobhost"

// status is where a step stands. A record has four bits for it.
type status uint8

const (
	pending   status = iota // waits for others
	ready                   // could run, or its fallback worker could, but max_parallel others do
	running                 // its job or workflow is there, or it waits for a signal or a time
	retrying                // the same, and an attempt has failed
	falling                 // has failed; its fallback step is pending or runs
	fallback                // has failed; the job of its fallback worker is there
	completed               // or its fallback
	failed                  // and so has its fallback, if it has one
	skipped                 // its condition was false, a needed one was skipped, or nothing needs its fallback
	cancelled               // its job was, by hand
	stopped                 // the workflow ended before it did
	statuses                // how many there are
)

func (s status) ended() bool { return s >= completed }

// active reports whether there is a run that an event can end.
func (s status) active() bool { return s == running || s == retrying || s == fallback }

// told is the word for it that others know.
func (s status) told() jobhost.StepStatus {
	switch s {
	case pending, ready:
		return jobhost.StepPending
	case retrying:
		return jobhost.StepRetrying
	case completed:
		return jobhost.StepCompleted
	case failed:
		return jobhost.StepFailed
	case skipped:
		return jobhost.StepSkipped
	case cancelled, stopped:
		return jobhost.StepCancelled
	default:
		return jobhost.StepRunning
	}
}

// begun is how many runs a step in this status has had, if the record doesn't say otherwise.
func (s status) begun() uint32 {
	switch s {
	case pending, ready, skipped, stopped:
		return 0
	default:
		return 1
	}
}

// phase is where a workflow stands.
type phase uint8

const (
	underway phase = iota
	done
	broken
	called // off
	phases // how many there are
)

func (p phase) told() jobhost.WorkflowStatus {
	return [...]jobhost.WorkflowStatus{
		underway: jobhost.WorkflowRunning, done: jobhost.WorkflowCompleted,
		broken: jobhost.WorkflowFailed, called: jobhost.WorkflowCancelled,
	}[p]
}
