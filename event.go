package jobhost

import "time"

// EventKind is what happened to a job, task or worker.
type EventKind string

// The kinds of events.
const (
	EventSubmitted EventKind = "submitted" // the job is durable
	EventStarted   EventKind = "started"   // an attempt begins
	EventProgress  EventKind = "progress"  // the attempt reported its progress
	EventOutput    EventKind = "output"    // the attempt emitted Data
	EventRetrying  EventKind = "retrying"  // an attempt failed; there will be another
	EventSnoozed   EventKind = "snoozed"   // an attempt asked to run later
	EventReturned  EventKind = "returned"  // an attempt was taken back without counting it
	EventSucceeded EventKind = "succeeded" // the task ended
	EventDead      EventKind = "dead"      // the task ended
	EventCancelled EventKind = "cancelled" // the task ended
	EventLoaded    EventKind = "loaded"    // the worker is new or runs another version from now on; there is no job
	EventUnloaded  EventKind = "unloaded"  // the worker was removed, and its tasks are held; there is no job
	EventPaused    EventKind = "paused"    // the worker's tasks are held, or Schedule was paused; there is no job
	EventDraining  EventKind = "draining"  // the worker's tasks are held, and it takes no jobs; there is no job
	EventDisabled  EventKind = "disabled"  // the worker's tasks are held, since it can't run anything; there is no job
	EventEnabled   EventKind = "enabled"   // the worker is no longer disabled; there is no job
	EventResumed   EventKind = "resumed"   // a pause or a drain of the worker, or a pause of Schedule, is over; there is no job

	EventTickFired   EventKind = "tick_fired"   // a tick of Schedule made a job
	EventTickSkipped EventKind = "tick_skipped" // a tick of Schedule made no job, since one of its jobs was open; there is no job
	EventTickQueued  EventKind = "tick_queued"  // a tick of Schedule waits until an open job of Schedule ends; there is no job
	EventTickMissed  EventKind = "tick_missed"  // ticks of Schedule passed unobserved, as while the host was down; there is no job

	EventWorkflowStarted EventKind = "workflow_started" // Workflow is durable
	EventStep            EventKind = "step"             // Step of Workflow now has the status StepStatus; Job is set if it has one
	EventWorkflowResumed EventKind = "workflow_resumed" // Workflow had failed and goes on
	EventWorkflowEnded   EventKind = "workflow_ended"   // Workflow ended with WorkflowStatus

	EventEnded EventKind = "ended" // the job ended with its last task; State is the job's
)

// Event reports that something happened. Events about a job's states are
// published only after the states are durable.
type Event struct {
	// Seq rises by one with every event; it starts again when the host does.
	Seq    uint64    `json:"seq"`
	Kind   EventKind `json:"kind"`
	Time   time.Time `json:"time"`
	Job    string    `json:"job"` // empty in events about a worker
	Worker string    `json:"worker"`
	// Schedule is set in events about a schedule, and Tick in those about its
	// ticks: for missed ticks, the last of them.
	Schedule string     `json:"schedule,omitempty"`
	Tick     *time.Time `json:"tick,omitempty"`
	Task     int        `json:"task"`
	Attempt  int        `json:"attempt,omitempty"`
	State    State      `json:"state,omitempty"`
	// Course is set in events that change the course of a task: see [Task]. What
	// an event says of a task holds until one with a higher number.
	Course int64 `json:"course,omitempty"`
	// Done and Total are set with EventProgress.
	Done  int64 `json:"done,omitempty"`
	Total int64 `json:"total,omitempty"`
	// Data is set with EventOutput.
	Data []byte `json:"data,omitempty"`
	// Workflow is set in events about workflows and the jobs of their steps, Step is the name of the step.
	Workflow       string         `json:"workflow,omitempty"`
	Step           string         `json:"step,omitempty"`
	StepStatus     StepStatus     `json:"step_status,omitempty"`
	WorkflowStatus WorkflowStatus `json:"workflow_status,omitempty"`
	// Failure is set with EventRetrying, EventDead, and for steps and workflows that failed.
	Failure *Failure `json:"failure,omitempty"`
}

// EventQuery selects events.
type EventQuery struct {
	// Job selects the events of one job; empty = of all jobs.
	Job string
	// Workflow selects the events of one workflow and its jobs; empty = of all.
	Workflow string
	// Worker selects the events of one worker and its jobs; empty = of all.
	Worker string
	// After replays the events after this Seq first, as far as the host still
	// remembers them; 0 = only future events.
	After uint64
}

// Selects reports whether an event is one that the query asks for, regardless
// of its number.
func (q *EventQuery) Selects(e *Event) bool {
	return (q.Job == "" || q.Job == e.Job) && (q.Workflow == "" || q.Workflow == e.Workflow) && (q.Worker == "" || q.Worker == e.Worker)
}
