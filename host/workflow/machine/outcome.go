package machine

import (
	"time"

	"github.com/jobhost/jobhost"
)

// Outcome is what is to be done about an event, all in the transaction that the
// event came in, in the order of the fields.
type Outcome struct {
	// Record is to be stored instead of the one before; nil = nothing has changed,
	// and there is nothing to do.
	Record []byte
	// Refused says why a signal or a retry comes to nothing; nil = it doesn't, or the
	// event was no request. Nothing has changed then.
	Refused *jobhost.Error
	// Keep are data to be stored with the workflow.
	Keep []Keep
	// Changes are steps whose status has changed, to be stored for readers and told to
	// others. Of steps that had not begun the end of the workflow isn't told: they are cancelled too.
	Changes []Change
	Cancel  []Run // jobs; those that have ended are left alone
	Stop    []Run // workflows to cancel; those that have ended are left alone
	Unset   []Timer
	Submit  []Submit
	Begin   []Begin
	Set     []SetTimer
	// Resumed: the workflow had failed and runs again. A parent is notified of it, as ChildResumed.
	Resumed bool
	// End is set when the workflow has ended. A parent is notified of it, as ChildEnded.
	End *End
}

// Keep is a piece of data of a workflow, which is read as a [Source].
type Keep struct {
	Slot int
	Data []byte
}

// Change tells where a step stands from now on.
type Change struct {
	Step   int
	Status jobhost.StepStatus
	Run    Run // that it is in or was; Number 0 = it has not begun
	// Reason says why, for people; may be empty.
	Reason string
	// Fallback: its fallback, a step or a worker, runs or ran in its place.
	Fallback bool
	Tasks    int              // of its job
	Failure  *jobhost.Failure // of a failed step, or one whose attempt or first choice failed
	Output   *Source          // of a completed step
}

// Submit is a job to submit. What it has not, such as its worker and how it is retried,
// is what the definition says of the step.
type Submit struct {
	Run Run
	ID  string
	// Payload is that of all tasks, unless there are Items.
	Payload Payload
	// Items are the payloads of the tasks of a fan-out, in the order of the tasks.
	Items [][]byte
	Tasks int
}

// Begin is a workflow to start.
type Begin struct {
	Run     Run
	ID      string
	Payload Payload
}

// SetTimer asks for an event TimerDue, as a job of the host's own.
type SetTimer struct {
	Timer Timer
	ID    string // of the job
	At    time.Time
}

// End is how a workflow ended.
type End struct {
	Status jobhost.WorkflowStatus
	// Step made it fail, or terminated it; [None] = no single one did.
	Step    int
	Reason  string // with WorkflowCancelled
	Failure *jobhost.Failure
	Output  Payload // with WorkflowCompleted
}
