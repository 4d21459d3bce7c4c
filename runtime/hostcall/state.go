package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
)

// States is an optional ability of [Services]: what tasks report of their
// progress. Errors are of type [*jobhost.Error] and safe to show to the guest.
type States interface {
	// SetState makes a state of the attempt's own task durable.
	SetState(ctx context.Context, at *Attempt, s jobhost.TaskState) error
	// State returns the lowest of the states that are selected.
	State(ctx context.Context, at *Attempt, q StateQuery) (jobhost.TaskState, error)
	// WatchState returns a stream of the selected states: first the existing
	// ones, then changes. Its messages are [jobhost.StateEvent]s as JSON.
	WatchState(ctx context.Context, at *Attempt, q StateQuery) (Stream, error)
	// WorkerOf returns the worker of a job; not_found if there is no such job.
	WorkerOf(ctx context.Context, job string) (string, error)
}

// StateQuery selects states of a job.
type StateQuery struct {
	Job  string // empty = the attempt's own
	Task int    // [AllTasks] = of all
	Tag  string // empty = of all
}

// AllTasks stands for all tasks of a job.
const AllTasks = -1

// otherJob separates a job from a tag.
const otherJob = "/"

// SetState makes a state of the attempt's task durable, at once, whatever happens to
// the attempt. It returns [ErrInvalid] for an invalid tag, message or payload,
// [ErrDenied] for a tag of the host, [ErrLimit] for what is too large or too much,
// and [ErrStopped] when it wasn't durable in time.
func (a *Attempt) SetState(ctx context.Context, tag string, status int32, message, payload []byte) Errno {
	if far := a.far(); far != nil {
		return far.SetState(ctx, tag, status, message, payload)
	}
	err := a.setState(ctx, tag, status, message, payload)
	return a.logErrno(ctx, "state_set", err)
}

func (a *Attempt) setState(ctx context.Context, tag string, status int32, message, payload []byte) error {
	states, ok := a.Services.(States)
	switch {
	case !ok:
		return errNoStates
	case len(message) > jobhost.MaxStateMessageBytes:
		return tooLarge("message", len(message), jobhost.MaxStateMessageBytes)
	case len(payload) > jobhost.MaxStatePayloadBytes: // before it is copied
		return tooLarge("payload", len(payload), jobhost.MaxStatePayloadBytes)
	}
	s := jobhost.TaskState{
		JobID: a.Job, TaskID: a.Task, Tag: tag, Status: status, Message: string(message), Payload: json.RawMessage(slices.Clone(payload)),
	}
	if err := s.Check(); err != nil {
		return err
	}
	if strings.HasPrefix(tag, jobhost.ReservedTags) {
		return &jobhost.Error{Code: jobhost.CodeDenied, Field: "tag", Message: "tag " + tag + " is the host's own"}
	}
	ctx, done := a.bounded(ctx)
	defer done()
	return states.SetState(ctx, a, s)
}

func tooLarge(field string, size, most int) error {
	return &jobhost.Error{Code: jobhost.CodeTooLarge, Field: field, Message: fmt.Sprintf("the %s has %d bytes; it may have %d", field, size, most)}
}

// State returns a [jobhost.TaskState] as JSON: the lowest one of a task, or [AllTasks],
// under a tag, or any if it is empty. Without a report the state is not started. "JOB/"
// before the tag selects another job, whose worker must be granted.
func (a *Attempt) State(ctx context.Context, task int32, tag string) ([]byte, Errno) {
	if far := a.far(); far != nil {
		return far.State(ctx, task, tag)
	}
	text, err := a.state(ctx, task, tag)
	return text, a.logErrno(ctx, "state_get", err)
}

func (a *Attempt) state(ctx context.Context, task int32, tag string) ([]byte, error) {
	ctx, done := a.bounded(ctx)
	defer done()
	states, q, err := a.stateQuery(ctx, task, tag)
	if err != nil {
		return nil, err
	}
	s, err := states.State(ctx, a, q)
	if err != nil {
		return nil, err
	}
	return json.Marshal(&s)
}

// WatchState returns a handle to the states that [Attempt.State] selects: each
// message is a [jobhost.StateEvent] as JSON.
func (a *Attempt) WatchState(ctx context.Context, task int32, tag string) (int32, Errno) {
	if far := a.far(); far != nil {
		return far.WatchState(ctx, task, tag)
	}
	if a.ops.held >= maxHandles || a.ops.streams >= maxStreams {
		return 0, ErrLimit
	}
	stream, err := a.watchState(ctx, task, tag)
	if err != nil {
		return 0, a.logErrno(ctx, "state_watch", err)
	}
	return a.keepStream(stream), OK
}

func (a *Attempt) watchState(ctx context.Context, task int32, tag string) (Stream, error) {
	ctx, done := a.bounded(ctx)
	defer done()
	states, q, err := a.stateQuery(ctx, task, tag)
	if err != nil {
		return nil, err
	}
	return states.WatchState(ctx, a, q)
}

// stateQuery parses a guest's query, and checks whether it is allowed.
func (a *Attempt) stateQuery(ctx context.Context, task int32, tag string) (States, StateQuery, error) {
	states, ok := a.Services.(States)
	if !ok {
		return nil, StateQuery{}, errNoStates
	}
	q := StateQuery{Task: int(task), Tag: tag}
	if job, rest, other := strings.Cut(tag, otherJob); other {
		if err := jobhost.CheckID(job); err != nil { // an empty one doesn't mean the guest's own
			return nil, q, err
		}
		q.Job, q.Tag = job, rest
	}
	if q.Task < AllTasks {
		return nil, q, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "task", Message: fmt.Sprintf("there is no task %d; -1 means all", q.Task)}
	}
	if q.Tag != "" {
		if err := jobhost.CheckTag(q.Tag); err != nil {
			return nil, q, err
		}
	}
	if q.Job == "" || q.Job == a.Job {
		q.Job = ""
		return states, q, nil
	}
	return states, q, a.mayWatch(ctx, states, q.Job)
}

// mayWatch checks that a job is of a worker whose states are granted. A missing
// job is denied as well, so that a guest can't find out which jobs exist.
func (a *Attempt) mayWatch(ctx context.Context, states States, job string) error {
	if len(a.MayWatch) > 0 { // otherwise the lookup would be useless
		worker, err := states.WorkerOf(ctx, job)
		if err == nil && slices.Contains(a.MayWatch, worker) {
			return nil
		}
		if err != nil && jobhost.CodeOf(err) != jobhost.CodeNotFound {
			return err
		}
	}
	return &jobhost.Error{
		Code: jobhost.CodeDenied, Field: "job", Message: "this worker may not see the states of job " + job,
		Hint: "add the job's worker to the worker's watch in the manifest",
	}
}

// logErrno logs what went wrong for the author of the guest, and returns the errno.
func (a *Attempt) logErrno(ctx context.Context, call string, err error) Errno {
	if err == nil {
		return OK
	}
	if a.Over(ctx) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return a.stopped()
	}
	a.Log(LevelWarn, []byte(call+": "+err.Error()))
	return ErrnoOf(err)
}

var errNoStates error = &jobhost.Error{Code: jobhost.CodeDenied, Message: "there are no states here: the job runs without a host"}
