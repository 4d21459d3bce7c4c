package queue

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Child is a job that an attempt wants submitted with its success. It holds a
// place in the queue of its worker until the attempt is settled, or Release.
type Child struct {
	Job  *record.JobSpec
	lane *lane
}

// Child admits a job that an attempt wants, as Submit does, but for what the
// store alone can tell: an id that is taken. While the host stops, attempts
// that still run may have children; those are run after the next start.
func (q *Queue) Child(ctx context.Context, spec jobhost.Spec, parent *record.Parent) (*Child, error) {
	job, l, err := q.prepare(ctx, &spec, fromAttempt)
	if err != nil {
		return nil, err
	}
	job.Parent = parent
	return &Child{Job: job, lane: l}, nil
}

// OwnChild is Child for a worker of the host's own.
func (q *Queue) OwnChild(ctx context.Context, spec jobhost.Spec, parent *record.Parent) (*Child, error) {
	job, l, err := q.prepare(ctx, &spec, fromHost)
	if err != nil {
		return nil, err
	}
	job.Parent = parent
	return &Child{Job: job, lane: l}, nil
}

// submitter is who submits a job. Attempts may do so while the host stops, only
// the host to workers of its own, and only schedules under the ids of ticks.
type submitter int

const (
	fromOutside submitter = iota
	fromAttempt
	fromSchedule
	fromHost
)

// check looks at a spec by itself.
func (who submitter) check(spec *jobhost.Spec) error {
	if who == fromOutside || who == fromAttempt {
		return spec.Check()
	}
	plain := *spec
	if who == fromHost {
		plain.Worker = strings.TrimPrefix(spec.Worker, jobhost.ReservedWorkers)
		return plain.Check()
	}
	plain.ID = ""
	return errors.Join(jobhost.CheckID(spec.ID), plain.Check())
}

// Release gives up the place of a child that will not be, with its payload.
func (c *Child) Release() { c.lane.q.withdraw(c.Job, c.lane, true) }

// SubmitChild submits a job of an attempt at once, whatever becomes of the
// attempt, and returns when it is durable.
func (q *Queue) SubmitChild(ctx context.Context, spec jobhost.Spec, parent *record.Parent) (jobhost.Receipt, error) {
	job, l, err := q.prepare(ctx, &spec, fromAttempt)
	if err != nil {
		return q.existing(ctx, &spec, job, err)
	}
	job.Parent = parent
	return q.commitSubmit(ctx, job, l)
}

// ChildID names the n-th job that a task submits. Each attempt of the task comes
// to the same names, so that what one of them has submitted is not submitted
// again by the next. The key makes them differ from those of an earlier job with
// the parent's id, and the time keeps them together in the store's index.
func ChildID(parent *record.JobSpec, task, n int) string {
	var b []byte
	b = append(b, "child of job "...)
	b = binary.LittleEndian.AppendUint64(b, uint64(parent.Key))
	b = binary.LittleEndian.AppendUint64(b, uint64(task))
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	sum := sha256.Sum256(append(b, parent.ID...))
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(parent.CreatedAt)<<16)
	id := uuid.UUID(append(at[:6:6], sum[:10]...))
	id[6] = id[6]&0x0f | 0x80 // version 8: what it consists of is our own affair
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// settleEffects commits a success with effects.
func (q *Queue) settleEffects(lease *Lease, report Report, op *record.Settle) {
	children := report.Effects.Children
	op.Effects = &record.Effects{KV: report.Effects.KV, Quota: report.Effects.Quota}
	for _, child := range children {
		op.Effects.Jobs = append(op.Effects.Jobs, child.Job)
	}
	q.commitSettle(op, lease.Job, func(result record.OpResult, err error) {
		if err == nil && result.Err == nil {
			// Told before the end of their parent, which somebody may wait for.
			for i, child := range children {
				added := result.Jobs[i]
				q.submitted(child.lane, child.Job, record.OpResult{Key: added.Key, Existing: added.Existing})
			}
			q.settled(lease, report.Outcome.Kind, op, jobhost.Succeeded, result)
			return
		}
		if err != nil {
			report.Effects.forsake()
			q.unsettled(lease, err)
			return
		}
		report.Effects.release()
		report.Effects = nil
		q.refused(lease, report, result.Err)
	})
}

// forsake gives up children of which nobody knows whether they are durable, so
// their payloads stay.
func (a *Asked) forsake() {
	for _, child := range a.Children {
		child.lane.q.withdraw(child.Job, child.lane, false)
	}
}

// refused goes on with an attempt whose settlement was refused. When its lease
// is gone, that is the end of it. When its effects can't be applied, it has
// failed, which needs a settlement of its own: from another goroutine, since
// the store's callbacks must not wait for room in the store.
func (q *Queue) refused(lease *Lease, report Report, err error) {
	failure := inapplicable(err)
	if failure == nil {
		q.unsettled(lease, err)
		return
	}
	report.Outcome = jobhost.Outcome{Kind: jobhost.OutcomeFailed, Fuel: report.Outcome.Fuel, Failure: failure}
	q.inflight.Add(1)
	time.AfterFunc(0, func() {
		defer q.inflight.Done()
		q.settle(lease, report)
	})
}

// inapplicable is the record of an attempt whose effects were refused; nil = that is
// not what happened.
func inapplicable(err error) *jobhost.Failure {
	f := &jobhost.Failure{
		Category: jobhost.CategoryResource, Severity: jobhost.SeverityError, Retryable: true,
		Message: fmt.Sprintf("the attempt succeeded, but its effects can't be applied: %v", err),
	}
	switch jobhost.CodeOf(err) {
	case jobhost.CodeConflict:
		f.Code, f.Severity = jobhost.FailConflict, jobhost.SeverityWarning
	case jobhost.CodeExhausted:
		f.Code = jobhost.FailLimit
	default:
		return nil
	}
	return f
}
