package jobhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost/internal/jsondepth"
)

// Statuses of task states. Other positive numbers are the application's measure
// of progress, other negative ones its errors.
const (
	StatusNotStarted int32 = 0
	StatusStarted    int32 = 1
	StatusFinished   int32 = math.MaxInt32
	StatusError      int32 = -1
	StatusWarning    int32 = -2
)

// Bounds of task states that no configuration changes.
const (
	MaxTagBytes          = 128
	MaxStateMessageBytes = 4 << 10
	MaxStatePayloadBytes = 64 << 10
	MaxStatesPerJob      = 100_000  // states of one job
	MaxStateBytesPerJob  = 64 << 20 // of the tags, messages and payloads of one job
	// ReservedTags is the prefix of tags that only the host sets, and of runs that
	// only it creates: those do not belong to the queue's job of that name.
	ReservedTags = "_"
	// TagRun is the tag under which the host reports the progress of a task's
	// attempts.
	TagRun = "_run"
)

// TaskState is what a task of a job has reported under a tag, which names one of
// its streams of work.
type TaskState struct {
	JobID  string `json:"job"`
	TaskID int    `json:"task"` // its index, from 0
	Tag    string `json:"tag"`
	// Status is the progress: 0 not started, [StatusFinished], below 0 an error.
	Status  int32  `json:"status"`
	Message string `json:"message,omitempty"`
	// Timestamp is when the store accepted it, by the store's clock; zero =
	// never reported.
	Timestamp time.Time `json:"timestamp,omitzero"`
	// Version counts the changes of a job's (task, tag) from 1, assigned by the
	// store; 0 = never reported.
	Version int64 `json:"version"`
	// EventID identifies the write: one that repeats the EventID of the last write
	// of its (task, tag) changes nothing. Empty = the store assigns one.
	EventID string `json:"event_id,omitempty"`
	// Payload is a JSON object of the application, up to [MaxStatePayloadBytes]
	// and nested up to 64 levels deep, or empty. It must not be modified.
	Payload json.RawMessage `json:"payload,omitempty"`
	// SchemaVersion is the payload's, at least 1; 0 in a write = 1.
	SchemaVersion int `json:"schema_version,omitempty"`
}

// StateEvent is one event of a watch: first the existing states, each with
// Replay, then the sentinel, which has no state, then each change.
type StateEvent struct {
	State    TaskState `json:"state,omitzero"`
	Replay   bool      `json:"replay"`
	Sentinel bool      `json:"sentinel,omitempty"`
	// Cursor is where to continue: see [StateQuery.After].
	Cursor string `json:"cursor,omitempty"`
}

// StateQuery selects states of a job.
type StateQuery struct {
	Job string
	// Run selects a run of the job whose states are kept apart; empty = the plain one.
	Run string
	// Task selects those of one task; nil = of all.
	Task *int
	// Tag selects those of one tag; empty = of all.
	Tag string
	// After is the Cursor of the last event that a watcher has seen: what has not
	// changed since is not repeated. If the host has been restarted since, or has
	// unloaded the job while it had no watcher, everything is repeated.
	After string
}

// StateJob describes a job that has states.
type StateJob struct {
	Job   string `json:"job"`
	Run   string `json:"run,omitempty"`
	Tasks int    `json:"tasks"`
	// States is the number of its states.
	States    int       `json:"states"`
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at"`
	// DeletedAt is when it was marked as deleted; nil = it was not.
	DeletedAt *time.Time `json:"deleted_at,omitempty"`
}

// StateJobFilter selects jobs that have states.
type StateJobFilter struct {
	// Deleted also lists those that are marked as deleted.
	Deleted bool
	// Cursor continues a list: the Next of the previous page.
	Cursor string
	// Limit is the size of a page, up to [MaxPage]; 0 = 50.
	Limit int
}

// Check reports everything that is wrong with the filter.
func (f *StateJobFilter) Check() error {
	return errors.Join(checkText("cursor", f.Cursor, 2*MaxIDBytes+1), inRange("limit", f.Limit, 0, MaxPage))
}

// StateJobPage is one page of a list of jobs that have states, by id.
type StateJobPage struct {
	Jobs []StateJob `json:"jobs"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
}

// StateReport lists and summarizes the states of a job.
type StateReport struct {
	Job   string `json:"job"`
	Run   string `json:"run,omitempty"`
	Tasks int    `json:"tasks"`
	// State is the lowest of the requested ones; tasks that have reported
	// nothing count as not started.
	State TaskState `json:"state"`
	// States lists those that exist, by task and tag.
	States []TaskState `json:"states"`
}

// StateCleanup says which states to clean up: those of jobs unknown to the
// queue (the states of others are removed with their jobs), and those of fibers
// that have ended.
type StateCleanup struct {
	// TombstoneAge is how long after its last change a job is marked as deleted,
	// and DeleteAge how long after it is removed; DeleteAge must be longer.
	TombstoneAge Duration `json:"tombstone_age"`
	DeleteAge    Duration `json:"delete_age"`
	// DryRun only counts.
	DryRun bool `json:"dry_run,omitempty"`
}

// Check reports everything that is wrong with the request.
func (c *StateCleanup) Check() error {
	var order error
	if c.DeleteAge <= c.TombstoneAge {
		order = invalid("delete_age", "delete_age %v must be longer than tombstone_age %v", c.DeleteAge, c.TombstoneAge)
	}
	return errors.Join(
		inRange("tombstone_age", c.TombstoneAge, Duration(time.Second), Duration(MaxDelay)),
		inRange("delete_age", c.DeleteAge, Duration(time.Second), Duration(MaxDelay)),
		order,
	)
}

// StateCleaned is the result of a cleanup, or what it would be.
type StateCleaned struct {
	Tombstoned int  `json:"tombstoned"`
	Deleted    int  `json:"deleted"`
	DryRun     bool `json:"dry_run,omitempty"`
}

// StateKeeper reads the states of tasks, and stores those of tasks that run
// elsewhere. A job that is unknown to the host, both to its queue and among its
// states, is not_found.
type StateKeeper interface {
	// StateJobs lists the jobs that have states, by id.
	StateJobs(ctx context.Context, filter StateJobFilter) (StateJobPage, error)
	// States returns the states of a job and the one that represents it: the
	// lowest.
	States(ctx context.Context, query StateQuery) (StateReport, error)
	// SetState makes a state durable and returns it with its version. If the job
	// does not exist, it is created with that number of tasks, unless tasks is 0;
	// if it does, tasks is ignored. Errors: invalid (a task that the job doesn't
	// have, say), denied (a tag of the host), not_found, too_large, exhausted.
	SetState(ctx context.Context, run string, state TaskState, tasks int) (TaskState, error)
	// WatchStates yields states and their changes until ctx ends, the job is
	// deleted, the host stops or the reader is too slow; the last pair carries
	// an error that says which.
	WatchStates(ctx context.Context, query StateQuery) iter.Seq2[StateEvent, error]
}

// StateCleaner removes states.
type StateCleaner interface {
	// DeleteStates removes all states of a job that is unknown to the queue;
	// conflict for others. Its watchers are notified.
	DeleteStates(ctx context.Context, job, run string) error
	// CleanStates removes states of jobs that have not changed for a long time.
	CleanStates(ctx context.Context, c StateCleanup) (StateCleaned, error)
}

// CheckTag reports what is wrong with a tag: it is what [CheckID] accepts, and
// may begin with [ReservedTags].
func CheckTag(tag string) error {
	if isStateName(tag) {
		return nil
	}
	return &Error{
		Code: CodeInvalid, Field: "tag", Message: fmt.Sprintf("%s is not a tag", clip(tag)),
		Hint: "use 1 to 128 of A-Z a-z 0-9 . _ - beginning with a letter, digit or _",
	}
}

// CheckRun reports what is wrong with the name of a run: it is like a tag, or empty
// for the plain run.
func CheckRun(run string) error {
	if run == "" || isStateName(run) {
		return nil
	}
	return &Error{
		Code: CodeInvalid, Field: "run", Message: fmt.Sprintf("%s is not a run", clip(run)),
		Hint: "use 1 to 128 of A-Z a-z 0-9 . _ - beginning with a letter, digit or _",
	}
}

func isStateName(s string) bool {
	rest := s
	if len(rest) > 1 && rest[:1] == ReservedTags {
		rest = rest[1:]
	}
	return len(s) <= MaxTagBytes && isName(rest, true)
}

// Check reports everything that is wrong with a state to be set.
func (s *TaskState) Check() error {
	var payload error
	switch {
	case len(s.Payload) > MaxStatePayloadBytes:
		payload = &Error{
			Code: CodeTooLarge, Field: "payload", Message: fmt.Sprintf("the payload has %d bytes; it may have %d", len(s.Payload), MaxStatePayloadBytes),
			Hint: "keep it elsewhere, and where it is in the payload",
		}
	case len(s.Payload) > 0 && (s.Payload[0] != '{' || !utf8.Valid(s.Payload) || !json.Valid(s.Payload)):
		payload = invalid("payload", "the payload is not a JSON object in UTF-8")
	case jsondepth.Exceeds(s.Payload, maxPayloadDepth) >= 0:
		payload = invalid("payload", "the payload is nested more than %d deep", maxPayloadDepth)
	}
	return errors.Join(
		CheckTag(s.Tag),
		inRange("task", s.TaskID, 0, MaxTasks-1),
		checkStateMessage(s.Message),
		checkText("event_id", s.EventID, MaxIDBytes),
		inRange("schema_version", s.SchemaVersion, 0, math.MaxInt32),
		payload,
	)
}

// maxPayloadDepth is a depth that every JSON reader accepts, even nested in an
// answer.
const maxPayloadDepth = 64

// checkStateMessage rejects what is not text; messages may have several lines.
func checkStateMessage(s string) error {
	switch {
	case len(s) > MaxStateMessageBytes:
		return invalid("message", "message of %d bytes is longer than %d", len(s), MaxStateMessageBytes)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return invalid("message", "message is not valid UTF-8")
	}
	return nil
}
