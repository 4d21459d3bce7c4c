package record

import (
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// ErrFenced is the answer to a settlement whose lease is not the current one:
// the job was cancelled, or the task was leased again.
var ErrFenced = errors.New("settle: the lease is no longer held")

// TakenID is the answer to a submit whose id belongs to a job with other content.
func TakenID(id string) error {
	return &jobhost.Error{
		Code:    jobhost.CodeConflict,
		Field:   "id",
		Message: fmt.Sprintf("job %s exists with other content", id),
		Hint:    "choose another id, or leave it out to get one",
	}
}

// Op is one durable change. The types below are all there are; a store
// switches over them.
type Op interface{ op() }

// OpResult is what became of an operation.
type OpResult struct {
	// Err is nil when the operation was applied, or was there already: see
	// Existing. Otherwise it is a *jobhost.Error, or [ErrFenced].
	Err error
	// Key is the job's, with every operation but Settle and ChangeKV.
	Key Key
	// Jobs come with a Settle that has effects: what became of each of its jobs.
	Jobs []Added
	// Existing comes with Submit: the job with the same id and content was
	// there before, and Key is that job's.
	Existing bool
	// ID is that of the job, with an Existing one that has another id.
	ID string
	// Worker is the job's, with Cancel and Revive; Tasks are the tasks that
	// they changed.
	Worker string
	Tasks  []Changed
	// JobEnded is true when the operation ended the last open task of its
	// job; Final holds the numbers of the job's tasks by status then.
	JobEnded bool
	Final    StatusCounts
	// Fired are the results for the jobs of a Fire, each as for a Submit of its own.
	Fired []OpResult
	// Then are the jobs that the operation's Then made and that were added, with their keys.
	Then []*JobSpec
	// Dropped are jobs that a transition or the removal of a workflow cancelled; those that a
	// transition submitted are in Then.
	Dropped []Dropped
	// Removed counts the tasks that Tidy removed, or Settle to keep its bound;
	// Evicted are the latter's jobs.
	Removed int64
	Evicted []string
	// Gone: there are references that [ObjectReader] lists as gone, or states that
	// [StateReader] does. It comes with operations that have removed a job, or may have.
	Gone bool
	// Next comes with Tidy: when there may be more to do for it; 0 = not before
	// another job ends.
	Next Millis
}

// Changed is a task that Cancel or Revive changed.
type Changed struct {
	Key   Key
	Index int
	Level int // of priority
	// Attempt counts the attempts that were made and count: before a Cancel,
	// 0 after a Revive.
	Attempt int
	// ReadyAt is when the task could run: before a Cancel, after a Revive.
	ReadyAt Millis
	Group   Group
	// Token of the lease: the one that a Cancel took away, the one that a
	// Revive gave to this process.
	Token int64
}

// Added is what became of a job that was submitted as an effect.
type Added struct {
	Key Key
	// Existing: it was there before, as with Submit.
	Existing bool
}

// Submit adds a job and its tasks, open, claimed by the submitting process.
// The result's Key is the job's; the tokens of its tasks are 0. A job with a
// UniqueKey is not added when the worker has another one that was submitted
// with that key and is unique still: that is the Existing one. Errors:
// conflict when the id is taken by a job with another digest: see [TakenID]; or
// its Ref by another job: see [ErrRefTaken];
// exhausted when its parent has [jobhost.MaxChildren] jobs: see [ErrChildren].
type Submit struct {
	Job *JobSpec
	// Incoming is the number of the job in the store's [Inbox], from which it is removed with this, also
	// when the submit is refused; 0 = it was not there.
	Incoming int64
}

// Settle ends an attempt. It is refused with [ErrFenced] unless Token is that
// of the current lease, and applied at most once. With effects that can't be
// applied it is refused too, with conflict or exhausted: nothing has changed,
// and the lease is still held.
type Settle struct {
	Key   Key
	Token int64
	// Status is what the task becomes; Open = it will run again at ReadyAt,
	// leased by this process with Token+1.
	Status  Status
	ReadyAt Millis // with Open
	Number  int    // of the attempt, from 1, for its log
	Attempt int    // attempts that count, this one included if it does
	// StartedAt and EndedAt are of the attempt.
	StartedAt, EndedAt Millis
	// Patient: a store without room for it may keep it back until there is some,
	// rather than fail: see [Roomy].
	Patient bool
	Result  []byte // with Succeeded; empty results are not stored
	// ResultRef names the object that the result is in, of ResultSize bytes, with
	// Succeeded and without Result; empty = there is none. It is of this attempt only.
	ResultRef  string
	ResultSize int64
	Failure    *jobhost.Failure // kept as a record; nil = none
	Suspect    bool             // the task is suspect from now on: see [Body]
	Log        []byte           // lines of the attempt; empty = none
	LogDropped int64
	Fuel       int64 // of the attempt; added to that of the task
	// ExpiresAt is until when the task is kept, unless Status is Open; 0 = forever.
	ExpiresAt Millis
	// MaxDead bounds the dead tasks of the worker, with Dead; 0 = no bound. To
	// keep it, jobs that have ended with a dead task are removed, the
	// lowest keys first, but not this task's job.
	MaxDead int
	// Effects are applied with Succeeded; nil = none.
	Effects *Effects
	// Then makes jobs that are added together with the operation, if that ends a
	// task; nil = none. It may be called more than once, and must not block. The
	// same goes for that of Cancel.
	Then func(End) []*JobSpec
	// Transition is what becomes of a workflow, unless the settlement is refused; nil = nothing.
	Transition Transition
}

// End says what an operation ended.
type End struct {
	// Job is true when it was the last open task of its job; Final holds the
	// numbers of the job's tasks by status then.
	Job   bool
	Final StatusCounts
}

// ChangeKV changes keys of a worker outside of any attempt. The
// changes are as in [Effects], all or none. Errors: conflict, exhausted.
type ChangeKV struct {
	Worker  string
	At      Millis
	Changes []KVChange
	Quota   int64
}

// Cancel ends all open tasks of a job, running ones too: their settlements
// will find themselves fenced. The result's Tasks are those it ended. Errors:
// not_found; conflict when no task is open and none is cancelled.
type Cancel struct {
	ID string
	// Tasks are the indexes of those to cancel; nil = all. Errors with them:
	// not_found for an index that the job doesn't have.
	Tasks []int
	At    Millis
	// ExpiresAt is until when the tasks are kept; 0 = forever.
	ExpiresAt Millis
	Then      func(End) []*JobSpec
	// Transition is what becomes of a workflow if tasks were cancelled; nil = nothing.
	Transition Transition
}

// Revive opens the dead and cancelled tasks of a job again with attempt 0 and
// without a deadline, leased by this process. Errors: not_found; conflict when there are none.
type Revive struct {
	ID string
	// Tasks are the indexes of those to revive; nil = all. Errors with them:
	// not_found for an index that the job doesn't have.
	Tasks []int
	At    Millis
	// Transition is what becomes of a workflow; nil = nothing.
	Transition Transition
}

// Delete removes a job with all that belongs to it. Errors: not_found;
// conflict while a task is open, or if the job is a step of a workflow.
type Delete struct{ ID string }

// Note keeps a short text under a name, for what outlives the process and is
// not about one job: that a worker is paused, say. An empty text removes it.
type Note struct{ Name, Text string }

// Rewind takes back times that were written while the clock was ahead, by From-To: of what was
// submitted, tried, ended or changed after To and not after Until, when it is ready, given up and
// removed, and how long its unique key or its own key lasts; and of tasks that were ready by From, when
// they are. Nothing becomes earlier than To. It comes before any claim.
type Rewind struct {
	// From is what the clock had shown at last, and To what it shows now.
	From, To Millis
	// Until is a time after everything that was written before now.
	Until Millis
}

func (*Rewind) op() {}

// NoteRestored is the note of a store that is a copy of another one, put where it is
// by a restore: what its rows refer to may be in use elsewhere.
const NoteRestored = "store.restored"

// Tidy removes jobs that have ended and that none of their tasks keeps any
// longer: each has an ExpiresAt that is not after At. It removes about Limit
// tasks at most, so that it delays other operations little; the result's Next
// says when to go on. With nothing left to remove it gives room back that the
// store has no use for.
type Tidy struct {
	At    Millis
	Limit int
	// Lag is how much later than it could be a job may be removed, so that not
	// every one needs a look of its own.
	Lag time.Duration
}

func (*Submit) op()   {}
func (*Settle) op()   {}
func (*Cancel) op()   {}
func (*Revive) op()   {}
func (*Delete) op()   {}
func (*Note) op()     {}
func (*ChangeKV) op() {}
func (*Fire) op()     {}
func (*Tidy) op()     {}
func (*Forget) op()   {}
