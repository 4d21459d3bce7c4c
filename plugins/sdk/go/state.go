package jobhost

import (
	"math"
	"strings"
	"time"
)

// The statuses of a [State] that mean the same for all. Other positive numbers are the worker's own, such as
// its progress; other negative ones are its errors.
const (
	StateNotStarted int32 = 0
	StateStarted    int32 = 1
	StateFinished   int32 = math.MaxInt32
	StateError      int32 = -1
	StateWarning    int32 = -2
)

// State is what a task of a job has reported under a tag, which names one of its streams of
// work. A state that was never reported has Version 0 and is not started.
type State struct {
	Job     string
	Task    int
	Tag     string
	Status  int32
	Message string
	// Payload is a JSON object, or nil.
	Payload []byte
	// Time is when it was reported, by the host's clock.
	Time time.Time
	// Version counts the reports of a task under a tag, from 1.
	Version int64
}

// SetState reports how far this task is, to the other tasks of the job and to
// all watchers. It returns when that is durable, whatever happens to the
// attempt. A tag has 1 to 128 of A-Z a-z 0-9 . _ - and begins with a letter or
// digit, a message has up to 4 KiB. payload is a JSON object of up to 64 KiB, as
// from [encoding/json.Marshal], or nil.
//
// Errors: [ErrInvalid], [ErrLimit], [ErrStopped], and [ErrDenied] for a tag that
// begins with "_", which are the host's.
func (j *Job) SetState(tag string, status int32, message string, payload []byte) error {
	return failed("set state "+tag, j.host.StateSet(tag, status, message, payload))
}

// SetStarted is [Job.SetState] with [StateStarted] and "🟢 Started".
func (j *Job) SetStarted(tag string) error {
	return j.SetState(tag, StateStarted, "🟢 Started", nil)
}

// SetFinished is [Job.SetState] with [StateFinished] and "⚫ Finished".
func (j *Job) SetFinished(tag string) error {
	return j.SetState(tag, StateFinished, "⚫ Finished", nil)
}

// SetError is [Job.SetState] with [StateError] and the error after "🔴 ".
func (j *Job) SetError(tag string, err error) error {
	return j.SetState(tag, StateError, stateMessage("🔴 ", err.Error()), nil)
}

// SetWarning is [Job.SetState] with [StateWarning] and the text after "🟡 ".
func (j *Job) SetWarning(tag, warning string) error {
	return j.SetState(tag, StateWarning, stateMessage("🟡 ", warning), nil)
}

// stateMessage turns any text into a valid message.
func stateMessage(mark, text string) string {
	const most, cut = 4 << 10, "…"
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(mark)+len(text) <= most {
		return mark + text
	}
	return mark + strings.ToValidUTF8(text[:most-len(mark)-len(cut)], "") + cut
}

// StateOption selects states; without any these are the ones of this job.
type StateOption func(*stateQuery)

type stateQuery struct {
	task int32
	tag  string
	job  *string
}

// allTasks stands for all tasks of a job.
const allTasks = -1

// WithTask selects the states of one task, from 0.
func WithTask(task int) StateOption { return func(q *stateQuery) { q.task = int32(max(task, -2)) } }

// WithTag selects the states under one tag. Under "_run" the host reports how
// the attempts of each task go.
func WithTag(tag string) StateOption { return func(q *stateQuery) { q.tag = tag } }

// WithJob selects the states of another job, if the manifest lets this worker
// watch those of that job's worker.
func WithJob(id string) StateOption { return func(q *stateQuery) { q.job = &id } }

func stateQueryOf(opts []StateOption) (task int32, tag string) {
	q := stateQuery{task: allTasks}
	for _, o := range opts {
		o(&q)
	}
	if q.job != nil {
		q.tag = *q.job + "/" + q.tag
	}
	return q.task, q.tag
}

// GetState returns the lowest of the selected states: the one with the lowest
// status, so that a job is as far as its slowest task, and an error shows.
//
//	s, err := job.GetState(jobhost.WithTag("ingest"))
//
// Errors: [ErrDenied] for a job that this worker may not see, whether it exists or
// not, [ErrInvalid] for an invalid selection, [ErrStopped].
func (j *Job) GetState(opts ...StateOption) (State, error) {
	task, tag := stateQueryOf(opts)
	return j.getState(task, tag)
}

func (j *Job) getState(task int32, tag string) (State, error) {
	what := "get state " + tag
	text, e := j.host.StateGet(task, tag)
	if e != 0 {
		return State{}, failed(what, e)
	}
	r := jsonReader{rest: text}
	s := r.state()
	if !r.ended() {
		return State{}, failed(what, ErrIO)
	}
	return s, nil
}
