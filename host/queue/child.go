package queue

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

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
