package record

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
)

// Transition is what becomes of workflows by an operation. It is part of the
// operation: both are durable, or neither is.
type Transition interface {
	// Apply runs inside the store's transaction, after the operation itself was applied
	// and was not refused. end says what that has ended. It may be called again when the
	// transaction is, must not block, and must not use tx afterwards. Its error is the store's
	// own: the batch comes to nothing. A store that reads rows in sets may let it run on
	// guesses, to find out which it needs: what was not there to be read is as if it were free or
	// null, and nothing that Apply does in such a run is kept, whatever it returns.
	Apply(tx WorkflowTx, end End) error
	// Applied is called once Apply is durable, on the store's goroutine, and must not block.
	Applied()
}

// Aimed is a [Transition] that tells beforehand which workflow it looks at, so that a store can read that together with
// what the operation needs.
type Aimed interface {
	Aim() Key // 0 = not known
}

// WorkflowView reads workflows, as a transaction sees them. What is not there is nil,
// without an error. What is damaged is an error with that code; a workflow comes with it,
// without its Record.
type WorkflowView interface {
	Workflow(key Key) (*WorkflowRecord, error)
	WorkflowByID(id string) (*WorkflowRecord, error)
	// WorkflowData returns what was kept in a slot.
	WorkflowData(key Key, slot int) ([]byte, error)
	// WorkflowSteps returns the steps that have begun or ended, by their index.
	WorkflowSteps(key Key) ([]StepRecord, error)
	StepFailure(key Key, step int) (*jobhost.Failure, error)
	// Definition returns the JSON of a definition by its hash.
	Definition(hash string) ([]byte, error)
	// JobOutput returns the results of a job that has succeeded, if they have no more than
	// most bytes together and are in the store.
	JobOutput(id string, most int) (*JobOutput, error)
	// JobFailure returns the last failure of the first dead task of a job.
	JobFailure(id string) (*jobhost.Failure, error)
}

// WorkflowTx changes workflows within a transaction.
type WorkflowTx interface {
	WorkflowView
	// AddWorkflow adds a workflow, with its definition if that is not there yet, and sets its Key; false = its
	// id is taken, if only by one that is being removed.
	AddWorkflow(w *WorkflowRecord, definition []byte) (bool, error)
	// SaveWorkflow writes what can change of one: Status, Record, EndedAt, ExpiresAt and Ending.
	SaveWorkflow(w *WorkflowRecord) error
	SetWorkflowData(key Key, slot int, data []byte) error
	// SaveStep adds a step or changes it. A nil Failure leaves that as it is, and so does the same
	// Number for StartedAt.
	SaveStep(key Key, s *StepRecord) error
	// SubmitStep adds a job, whose lane learns of it after the commit. refused says why it can't be added, such
	// as that its id is taken; nil = it is there.
	SubmitStep(job *JobSpec) (refused *jobhost.Error, err error)
	// CancelStep ends the open tasks of a job of the origin's workflow, if there are any, whose lane learns of it after the commit.
	CancelStep(id string, origin *Origin, at, expires Millis) error
}

// WorkflowReader is the part of a store that reads workflows.
type WorkflowReader interface {
	// ViewWorkflows calls f within a reading transaction.
	ViewWorkflows(ctx context.Context, f func(WorkflowView) error) error
	// Workflows lists up to Limit workflows, the highest keys first, without their Record.
	Workflows(ctx context.Context, q WorkflowQuery) ([]WorkflowRecord, error)
	// OpenWorkflows counts those that run, by name.
	OpenWorkflows(ctx context.Context) (map[string]int64, error)
	// OpenDefinitions returns the definitions, as JSON by hash, that workflows run which have not ended.
	OpenDefinitions(ctx context.Context) (map[string][]byte, error)
}

// WorkflowStatus is where a workflow stands. The numbers are stored.
type WorkflowStatus uint8

// The statuses.
const (
	WorkflowRunning   WorkflowStatus = 0
	WorkflowCompleted WorkflowStatus = 1
	WorkflowFailed    WorkflowStatus = 2
	WorkflowCancelled WorkflowStatus = 3
	WorkflowRemoving  WorkflowStatus = 4 // its rows are being removed; it is not shown any more
)

// WorkflowRecord is a workflow as a store keeps it.
type WorkflowRecord struct {
	Key        Key
	ID, Name   string
	Definition string // hash
	Labels     map[string]string
	Digest     [16]byte // of what it was started with
	Depth      int      // below the one that is a step of none
	// Parent is the workflow that it is a step of, 0 = none, and ParentMark says which run of which step.
	Parent             Key
	ParentID           string
	ParentStep         string
	ParentMark         string
	StartedAt          Millis
	Retention          time.Duration // own; 0 = the host's
	Status             WorkflowStatus
	Record             []byte // read and written by package machine only
	EndedAt, ExpiresAt Millis // 0 = not yet, and forever
	Ending             Ending
}

// Ending is how a workflow ended.
type Ending struct {
	Step      string
	Reason    string
	Failure   *jobhost.Failure
	OutputRef string // names the object that the output is in, which belongs to a job of the workflow
	// OutputSize is the number of bytes of the output; without OutputRef they are in a slot.
	OutputSize int64
}

// StepRecord is a step of a workflow as a store keeps it.
type StepRecord struct {
	Step      int // its index in the definition
	Status    jobhost.StepStatus
	Number    uint32 // of its last run, from 1; 0 = it has had none
	Fallback  bool   // its fallback runs or ran in its place
	Worker    bool   // the run is one of its fallback worker
	Reason    string
	Tasks     int
	StartedAt Millis
	EndedAt   Millis // 0 = it has not ended
	Failure   *jobhost.Failure
}

// JobOutput is what the tasks of a job returned.
type JobOutput struct {
	Results [][]byte // in the order of the tasks; nil = they are too large
	Tasks   int
	Size    int64 // of all results together
	// Ref names the object that a result is in, of one task the only one; empty = all are in the store.
	Ref string
}

// Whole reports whether all results are there.
func (o *JobOutput) Whole() bool { return len(o.Results) == o.Tasks }

// WorkflowQuery selects workflows.
type WorkflowQuery struct {
	Name   string
	Status *WorkflowStatus
	Parent string // id; empty = all
	// After ≤ started < Before; 0 = unbounded.
	After, Before Millis
	Below         Key // only those with a lower key; 0 = from the newest
	Limit         int
}

// Advance changes workflows for a reason that is no job's: a start, a signal, a
// cancel. Whether that was refused the transition knows.
type Advance struct{ Transition Transition }

// DeleteWorkflow removes workflows that have ended, with their jobs and the workflows that are their steps:
// about Limit tasks at once. Next is At while something is left. Open tasks, which it has only when
// they were revived after its end, are cancelled: they are in Dropped. Errors: not_found; conflict while
// it or one of its steps runs, or if it is a step of another.
type DeleteWorkflow struct {
	ID    string
	At    Millis
	Limit int
}

func (*Advance) op() {}

func (*DeleteWorkflow) op() {}

// Dropped is a job that was cancelled with a transition.
type Dropped struct {
	Origin     Origin
	ID, Worker string
	Tasks      []Changed
	Final      StatusCounts
	JobEnded   bool
}
