package machine

import (
	"time"

	"github.com/jobhost/jobhost"
)

// Happening is what happened to a workflow.
type Happening uint8

// The happenings. All but the first, Revived, ChildResumed and Retry mean
// nothing to a workflow that has ended.
const (
	Started      Happening = iota + 1 // the workflow begins; its input is in the store
	JobSucceeded                      // a step's job has ended, all its tasks succeeded
	JobDead                           // a step's job has ended, a task of it is dead; with Failure
	JobCancelled                      // a step's job has ended, a task was cancelled and none is dead
	JobRetrying                       // an attempt failed, and there will be another; may be left out
	JobRevived                        // dead or cancelled tasks of a job are open again
	ChildEnded                        // a step's workflow has ended: Status, Failure
	ChildResumed                      // a step's workflow had failed and runs again
	Signalled                         // a signal has come: Signal, ID, Payload
	TimerDue                          // a timer that was asked for: Timer
	Cancelled                         // the workflow is to be cancelled: Reason
	Retry                             // Step is to run anew, or with None what made the workflow fail
)

// Run is one run of a step: a job, a workflow, or a wait.
type Run struct {
	Step int
	// Number counts the step's runs, and those of its fallback worker by themselves, from 1.
	Number   uint32
	Fallback bool // of the fallback worker
}

// Event is what happened, once. The same event may come again, but not after
// its job was revived.
type Event struct {
	What Happening
	// At is the time of it, as the store has it.
	At  time.Time
	Run Run // with those about jobs and children
	// Output is the result of a job of one task, or the output of a child, if it is
	// at hand; nil = the Reader has it.
	Output  []byte
	Failure *jobhost.Failure       // with JobDead, JobRetrying and ChildEnded
	Status  jobhost.WorkflowStatus // with ChildEnded
	Timer   Timer                  // with TimerDue
	Reason  string                 // with Cancelled
	Step    int                    // with Retry
	Signal  string                 // name, with Signalled
	// ID of a signal makes it count once; empty = each counts.
	ID      string
	Payload []byte // with Signalled
}

// Purpose is what a timer is for.
type Purpose uint8

// The purposes.
const (
	Wake  Purpose = iota + 1 // the end of a sleep
	Limit                    // the time of a step is up; of the workflow if Step is None
)

// Timer is a time that a workflow waits for. Step is [None] with the timeout of
// the workflow, whose Number counts how often the workflow has begun.
type Timer struct {
	Run
	Purpose Purpose
}
