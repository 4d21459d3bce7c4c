package workertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// submitted is a job that the worker submitted.
type submitted struct {
	jobhost.Spec
	id  string
	now bool
}

// SubmitJob implements [hostcall.Jobs]. Permission was checked before.
func (b *box) SubmitJob(at *hostcall.Attempt, spec *jobhost.Spec, when hostcall.SubmitTime) (string, error) {
	s := submitted{Spec: *spec, id: spec.ID, now: when == hostcall.SubmitNow}
	s.Payload, s.Labels = bytes.Clone(spec.Payload), maps.Clone(spec.Labels)
	if s.id == "" {
		s.id = fmt.Sprintf("%s-child-%d", at.Job, len(b.submitted)+1)
	}
	if len(b.submitted) >= jobhost.MaxChildren {
		return "", &jobhost.Error{Code: jobhost.CodeExhausted, Message: fmt.Sprintf("a job may submit %d jobs", jobhost.MaxChildren)}
	}
	b.submitted = append(b.submitted, s)
	return s.id, nil
}

// ending is the end of a job, which comes immediately.
type ending struct{ ended jobhost.Ended }

func (*ending) ready() (time.Time, bool) { return time.Time{}, true }

// Drop implements [hostcall.Pending].
func (*ending) Drop() {}

// Message implements [hostcall.Ending].
func (e *ending) Message(context.Context) ([]byte, error) { return json.Marshal(&e.ended) }

// Await implements [hostcall.Ops] with the case's next ending for a job of that
// worker.
func (b *box) Await(_ *hostcall.Attempt, id string) (hostcall.Ending, error) {
	var job *submitted
	for i := range b.submitted {
		if b.submitted[i].id == id {
			job = &b.submitted[i]
		}
	}
	if job == nil {
		return nil, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no job " + id}
	}
	if b.ended < len(b.test.Children) && b.test.Children[b.ended].Worker == job.Worker {
		given := b.test.Children[b.ended]
		b.ended++
		return given.ending(job), nil
	}
	b.unanswered = append(b.unanswered, fmt.Sprintf("a wait for job %s of worker %s: no [[child]] of the case says how it ends", id, job.Worker))
	return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the test does not say how job " + id + " of " + job.Worker + " ends"}
}

// ending creates the end of a job.
func (g *GivenEnd) ending(job *submitted) *ending {
	e := &ending{jobhost.Ended{
		Job: job.id, Worker: job.Worker, State: jobhost.Succeeded, Labels: job.Labels, EndedAt: stateTime,
		Tasks: jobhost.TaskNumbers{jobhost.Succeeded.String(): 1},
	}}
	switch {
	case g.Fail != nil:
		e.ended.State, e.ended.Failure = jobhost.Dead, g.Fail
		e.ended.Tasks = jobhost.TaskNumbers{jobhost.Dead.String(): 1}
	case utf8.ValidString(g.Result):
		e.ended.Result = g.Result
	default:
		e.ended.ResultBase64 = []byte(g.Result)
	}
	return e
}
