package jobhost

import "time"

// EventKind is what happened to a job, task or worker.
type EventKind string

// The kinds of events.
const (
	EventSubmitted EventKind = "submitted" // the job is durable
	EventStarted   EventKind = "started"   // an attempt begins
	EventProgress  EventKind = "progress"  // the attempt said how far it is
	EventOutput    EventKind = "output"    // the attempt emitted Data
	EventRetrying  EventKind = "retrying"  // an attempt failed; there will be another
	EventSnoozed   EventKind = "snoozed"   // an attempt asked to run later
	EventReturned  EventKind = "returned"  // an attempt was taken back without counting it
	EventSucceeded EventKind = "succeeded" // the task ended
	EventDead      EventKind = "dead"      // the task ended
	EventCancelled EventKind = "cancelled" // the task ended
	EventLoaded    EventKind = "loaded"    // the worker runs another version from now on, or is new; there is no job
	EventUnloaded  EventKind = "unloaded"  // the worker was removed, and its tasks are held; there is no job
	EventPaused    EventKind = "paused"    // the worker's tasks are held, or Schedule was paused; there is no job
	EventDraining  EventKind = "draining"  // the worker's tasks are held, and it takes no jobs; there is no job
	EventDisabled  EventKind = "disabled"  // the worker's tasks are held, since it can't run anything; there is no job
	EventEnabled   EventKind = "enabled"   // the end of that; there is no job
	EventResumed   EventKind = "resumed"   // the end of a pause or a drain of the worker, or of a pause of Schedule; there is no job

	EventTickFired   EventKind = "tick_fired"   // a tick of Schedule made a job
	EventTickSkipped EventKind = "tick_skipped" // a tick of Schedule made none, since a job of it was open; there is no job
	EventTickQueued  EventKind = "tick_queued"  // a tick of Schedule waits for the end of a job of it; there is no job
	EventTickMissed  EventKind = "tick_missed"  // ticks of Schedule came while nobody could see them; there is no job

	EventWorkflowStarted EventKind = "workflow_started" // Workflow is durable
	EventStep            EventKind = "step"             // Step of Workflow has the status StepStatus from now on; Job if it has one
	EventWorkflowResumed EventKind = "workflow_resumed" // Workflow had failed and goes on
	EventWorkflowEnded   EventKind = "workflow_ended"   // Workflow ended with WorkflowStatus

	EventEnded EventKind = "ended" // the job ended: its last task did; State is the job's
)

// Event tells that something happened. Events about a job's states are
// published after they are durable.
type Event struct {
	// Seq rises by one with every event of a host's life; it starts again with the host.
	Seq    uint64    `json:"seq"`
	Kind   EventKind `json:"kind"`
	Time   time.Time `json:"time"`
	Job    string    `json:"job"` // empty when it is about a worker
	Worker string    `json:"worker"`
	// Schedule comes with events about a schedule, and Tick with those about its
	// ticks: the last one of those that were missed.
	Schedule string     `json:"schedule,omitempty"`
	Tick     *time.Time `json:"tick,omitempty"`
	Task     int        `json:"task"`
	Attempt  int        `json:"attempt,omitempty"`
	State    State      `json:"state,omitempty"`
	// Course comes with events that change the course of a task: see [Task]. What
	// is told of a task holds until one with a higher number.
	Course int64 `json:"course,omitempty"`
	// Done and Total come with EventProgress.
	Done  int64 `json:"done,omitempty"`
	Total int64 `json:"total,omitempty"`
	// Data comes with EventOutput.
	Data []byte `json:"data,omitempty"`
	// Workflow is the id that events about workflows and jobs of their steps have, Step the name of the step.
	Workflow       string         `json:"workflow,omitempty"`
	Step           string         `json:"step,omitempty"`
	StepStatus     StepStatus     `json:"step_status,omitempty"`
	WorkflowStatus WorkflowStatus `json:"workflow_status,omitempty"`
	// Failure comes with EventRetrying and EventDead, and steps and workflows that failed.
	Failure *Failure `json:"failure,omitempty"`
}

// EventQuery selects events.
type EventQuery struct {
	// Job selects the events of one job; empty = of all jobs.
	Job string
	// Workflow selects the events of one workflow and of its jobs; empty = of all.
	Workflow string
	// Worker selects the events of one worker and of its jobs; empty = of all.
	Worker string
	// After asks for the events after this Seq first, as far as the host still
	// remembers them; 0 = only what happens from now on.
	After uint64
}

// Selects reports whether an event is one of those that the query asks for,
// whatever its number.
func (q *EventQuery) Selects(e *Event) bool {
	return (q.Job == "" || q.Job == e.Job) && (q.Workflow == "" || q.Workflow == e.Workflow) && (q.Worker == "" || q.Worker == e.Worker)
}
