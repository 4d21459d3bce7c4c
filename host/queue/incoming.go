package queue

import (
	"context"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Incoming is a job of the store's inbox: see [record.Inbox].
type Incoming struct {
	Number int64
	Spec   jobhost.Spec
	// Invalid is why there is no Spec.
	Invalid error
}

// SubmitIncoming submits jobs of the store's inbox, and removes them from there in the same batch. Those that can't be
// submitted are refused; refused is called for each, if ctx ends first perhaps after SubmitIncoming has returned. Those
// that there is no room for stay where they are: full are their workers.
func (q *Queue) SubmitIncoming(ctx context.Context, jobs []Incoming, refused func(Incoming, error)) (full []string, err error) {
	in := intake{queue: q, refused: refused}
	for i := range jobs {
		if !in.add(ctx, &jobs[i]) && !slices.Contains(full, jobs[i].Spec.Worker) {
			full = append(full, jobs[i].Spec.Worker)
		}
		if in.tasks >= intakeTasks || in.bytes >= intakeBytes {
			if err := in.commit(ctx); err != nil {
				return full, err
			}
		}
	}
	return full, in.commit(ctx)
}

// Bounds of a batch of incoming jobs, after which others get their turn: who submits them decides how large they are.
const (
	intakeTasks = 2048
	intakeBytes = 1 << 20
)

// intake is a batch of incoming jobs.
type intake struct {
	queue   *Queue
	refused func(Incoming, error)

	ops     []record.Op
	lanes   []*lane
	sources []*Incoming
	tasks   int
	bytes   int
}

// add adds a job, or its refusal, unless there is no room for it.
func (b *intake) add(ctx context.Context, in *Incoming) (room bool) {
	q := b.queue
	job, l, err := (*record.JobSpec)(nil), (*lane)(nil), in.Invalid
	if err == nil {
		job, l, err = q.prepare(ctx, &in.Spec, fromOutside)
	}
	if err == nil {
		b.put(&record.Submit{Job: job, Incoming: in.Number}, l, in)
		b.tasks, b.bytes = b.tasks+job.Tasks, b.bytes+len(job.Payload)
		return true
	}
	if _, there := q.existing(ctx, &in.Spec, job, err); there == nil {
		b.put(&record.Refuse{Incoming: in.Number}, nil, in)
		return true
	}
	if code := jobhost.CodeOf(err); code == jobhost.CodeExhausted || code == jobhost.CodeUnavailable {
		return false
	}
	b.refused(*in, err)
	b.put(&record.Refuse{Incoming: in.Number, Reason: err.Error()}, nil, in)
	return true
}

func (b *intake) put(op record.Op, l *lane, from *Incoming) {
	b.ops, b.lanes, b.sources = append(b.ops, op), append(b.lanes, l), append(b.sources, from)
}

// commit makes the batch durable and begins another one.
func (b *intake) commit(ctx context.Context) error {
	one := *b
	*b = intake{queue: b.queue, refused: b.refused}
	if len(one.ops) == 0 {
		return nil
	}
	var failed error
	if err := b.queue.commit(ctx, one.ops, func(results []record.OpResult) { failed = one.done(results) }); err != nil {
		return err // failed may be written later
	}
	return failed
}

// done notes what became of the jobs. It returns why they are still in the inbox, nil = they aren't.
func (b *intake) done(results []record.OpResult) (failed error) {
	for i, op := range b.ops {
		submit, ok := op.(*record.Submit)
		if !ok {
			continue
		}
		switch a := b.queue.submitted(b.lanes[i], submit.Job, results[i]); jobhost.CodeOf(a.Err) {
		case "":
		case jobhost.CodeUnavailable, jobhost.CodeInternal:
			failed = a.Err
		default:
			b.refused(*b.sources[i], a.Err)
		}
	}
	return failed
}
