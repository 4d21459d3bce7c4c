// Package state keeps what the tasks of jobs report of their progress, so that
// everyone sees the same: those who ask how far a job is, those who watch it,
// and tasks that wait for each other.
//
//	Manager of a task ─► Set ─► Store (version, time, durable) ─► Board ─► subscriptions, in the order of the store
//	                     Get ◄──────── lowest status wins ◄─────────┘
//
// A job has a fixed number of tasks. Each reports a [State] under tags, which are
// streams of work such as "ingest" and "export". A [Manager] is bound to one
// task and writes for it alone. A [Board] is a job in memory: it answers without
// asking the store, and passes each change on to its subscriptions. A [Store]
// only stores; the rules are written once, here, and every store passes the
// suite in statetest.
//
// When several states are asked for at once the lowest status prevails, ties go to
// the lowest task and then to the first tag. A task that has reported nothing
// counts as not started, and errors, below zero, are below that.
//
// Nothing in here starts a goroutine but to end a subscription with its context, and to
// close a board that no one uses.
package state

import (
	"errors"
	"strings"

	"github.com/jobhost/jobhost"
)

// The words of states are those of the root package, for all who don't import this one.
type (
	// State is what a task of a job has reported under a tag.
	State = jobhost.TaskState
	// Event is one event of what is watched.
	Event = jobhost.StateEvent
)

// The statuses that have a meaning to everyone.
const (
	StatusNotStarted = jobhost.StatusNotStarted
	StatusStarted    = jobhost.StatusStarted
	StatusFinished   = jobhost.StatusFinished
	StatusError      = jobhost.StatusError
	StatusWarning    = jobhost.StatusWarning
)

// Monitor is the task index of managers that only read.
const Monitor = -1

// Job names what states belong to.
type Job struct {
	ID string
	// Run keeps the states of several runs of one job apart; empty = the plain one.
	Run string
}

// runMark stands between the two in a key. Neither can have it.
const runMark = "~"

// Key names the job in stores.
func (j Job) Key() string {
	if j.Run == "" {
		return j.ID
	}
	return j.ID + runMark + j.Run
}

// ParseKey is the inverse of [Job.Key].
func ParseKey(key string) Job {
	id, run, _ := strings.Cut(key, runMark)
	return Job{ID: id, Run: run}
}

// Check reports what is wrong with the names.
func (j Job) Check() error {
	return errors.Join(jobhost.CheckID(j.ID), jobhost.CheckRun(j.Run))
}

// OfHost reports whether these are states that the host keeps of something else than a
// job of the queue: they don't come and go with the job of that name.
func (j Job) OfHost() bool { return strings.HasPrefix(j.Run, jobhost.ReservedTags) }

// The errors that callers may want to tell apart.
var (
	// ErrTaskMismatch refuses a write for a task that isn't the manager's.
	ErrTaskMismatch error = &jobhost.Error{Code: jobhost.CodeDenied, Field: "task", Message: "a manager sets the states of its own task only"}
	// ErrJobMismatch refuses a write for another job.
	ErrJobMismatch error = &jobhost.Error{Code: jobhost.CodeDenied, Field: "job", Message: "a manager sets the states of its own job only"}
	// ErrReadOnly refuses writes of monitors.
	ErrReadOnly error = &jobhost.Error{Code: jobhost.CodeDenied, Message: "a monitor sets no states"}
	// ErrClosed is the answer after Close, and what ends subscriptions then.
	ErrClosed error = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the states are closed"}
	// ErrDeleted ends everything about a job whose states were deleted. Should it come
	// again its versions begin anew.
	ErrDeleted error = &jobhost.Error{Code: jobhost.CodeNotFound, Message: "the states of the job were deleted"}
	// ErrSlow ends a subscription that did not read as fast as states changed.
	ErrSlow error = &jobhost.Error{
		Code: jobhost.CodeExhausted, Message: "the reader was too slow",
		Hint: "subscribe again, after the last cursor to be told only what has changed since",
	}
)

// NotFound is the error for a job that has no states.
func NotFound(job Job) error {
	return &jobhost.Error{Code: jobhost.CodeNotFound, Field: "job", Message: "there are no states of job " + job.Key()}
}

// Marked is the error for a job that is marked as deleted.
func Marked(job Job) error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "job", Message: "the states of job " + job.Key() + " are marked as deleted",
		Hint: "take another run of it, or delete them",
	}
}
