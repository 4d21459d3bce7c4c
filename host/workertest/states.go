package workertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// stateTime is the time of everything that a guest is shown, so that it is reproducible.
var stateTime = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// SetState implements [hostcall.States].
func (b *box) SetState(_ context.Context, _ *hostcall.Attempt, s jobhost.TaskState) error {
	s.Payload = bytes.Clone(s.Payload)
	s.Timestamp, s.Version, s.SchemaVersion = stateTime, 1, cmp.Or(s.SchemaVersion, 1)
	i := slices.IndexFunc(b.states, func(o GivenState) bool {
		return o.JobID == s.JobID && o.TaskID == s.TaskID && o.Tag == s.Tag
	})
	switch {
	case i >= 0:
		s.Version = b.states[i].Version + 1
		b.states[i].TaskState = s
	case len(b.states) == maxKept:
		return errTooMuch
	default:
		b.states = append(b.states, GivenState{TaskState: s})
	}
	for _, w := range b.watches {
		if w.query != nil && matches(w.query, &s) {
			w.push(&jobhost.StateEvent{State: s})
		}
	}
	return nil
}

// matches reports whether a state matches a query; the job of the query is set.
func matches(q *hostcall.StateQuery, s *jobhost.TaskState) bool {
	return s.JobID == q.Job && (q.Task == hostcall.AllTasks || s.TaskID == q.Task) && (q.Tag == "" || s.Tag == q.Tag)
}

// State implements [hostcall.States]: the lowest status, task and tag win, and a task
// without a report is not started.
func (b *box) State(_ context.Context, at *hostcall.Attempt, q hostcall.StateQuery) (jobhost.TaskState, error) {
	tasks := 0
	if q.Job = cmp.Or(q.Job, at.Job); q.Job == at.Job {
		tasks = at.Tasks
	}
	if q.Task != hostcall.AllTasks {
		tasks = 0
	}
	var found []jobhost.TaskState
	reported := map[int]bool{}
	for i := range b.states {
		if s := &b.states[i].TaskState; matches(&q, s) {
			found = append(found, *s)
			reported[s.TaskID] = true
		}
	}
	for task := range tasks {
		if !reported[task] {
			found = append(found, jobhost.TaskState{JobID: q.Job, TaskID: task, Tag: q.Tag})
		}
	}
	if len(found) == 0 {
		return jobhost.TaskState{JobID: q.Job, TaskID: max(q.Task, 0), Tag: q.Tag}, nil
	}
	return slices.MinFunc(found, func(a, b jobhost.TaskState) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.TaskID, b.TaskID), strings.Compare(a.Tag, b.Tag))
	}), nil
}

// WatchState implements [hostcall.States].
func (b *box) WatchState(_ context.Context, at *hostcall.Attempt, q hostcall.StateQuery) (hostcall.Stream, error) {
	q.Job = cmp.Or(q.Job, at.Job)
	s := &stream{query: &q}
	for i := range b.states {
		if state := b.states[i].TaskState; matches(&q, &state) {
			s.push(&jobhost.StateEvent{State: state, Replay: true})
		}
	}
	s.push(&jobhost.StateEvent{Replay: true, Sentinel: true})
	b.watches = append(b.watches, s)
	return s, nil
}

// WorkerOf implements [hostcall.States].
func (b *box) WorkerOf(_ context.Context, job string) (string, error) {
	for i := range b.states {
		if s := &b.states[i]; s.JobID == job && s.Worker != "" {
			return s.Worker, nil
		}
	}
	return "", &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no job " + job}
}

// Receive implements [hostcall.Inbox].
func (b *box) Receive(*hostcall.Attempt) hostcall.Stream {
	if b.test.Messages == nil {
		return nil
	}
	if b.inbox == nil {
		b.inbox = &stream{closes: true}
		for _, m := range b.test.Messages {
			b.inbox.messages = append(b.inbox.messages, []byte(m))
		}
	}
	return b.inbox
}

// stream is a sequence of messages.
type stream struct {
	messages [][]byte
	closes   bool                 // after the last one
	query    *hostcall.StateQuery // of the watch; nil = none
}

func (s *stream) push(e *jobhost.StateEvent) {
	if message, err := json.Marshal(e); err == nil { // a state can always be encoded
		s.messages = append(s.messages, message)
	}
}

func (s *stream) ready() (time.Time, bool) { //nolint:unparam // it is ready at once or never, unlike other items
	return time.Time{}, len(s.messages) > 0 || s.closes
}

// Next implements [hostcall.Stream].
func (s *stream) Next() ([]byte, bool, error) {
	if len(s.messages) == 0 {
		if s.closes {
			return nil, false, errClosed
		}
		return nil, false, nil
	}
	message := s.messages[0]
	s.messages = s.messages[1:]
	return message, true, nil
}

// Drop implements [hostcall.Pending].
func (s *stream) Drop() { s.query = nil }

var errClosed error = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "there will be no more messages"}
