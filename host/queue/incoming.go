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
// submitted are refused; refused is called for each. Those that there is no room for stay where they are; it returns the
// workers that they are for.
func (q *Queue) SubmitIncoming(ctx context.Context, jobs []Incoming, refused func(Incoming, error)) (full []string, err error) {
	var (
		ops     []record.Op
		lanes   []*lane
		sources []Incoming
	)
	add := func(op record.Op, l *lane, from Incoming) {
		ops, lanes, sources = append(ops, op), append(lanes, l), append(sources, from)
	}
	for _, in := range jobs {
		job, l, err := (*record.JobSpec)(nil), (*lane)(nil), in.Invalid
		if err == nil {
			job, l, err = q.prepare(ctx, &in.Spec, fromOutside)
		}
		if err == nil {
			add(&record.Submit{Job: job, Incoming: in.Number}, l, in)
			continue
		}
		if _, there := q.existing(ctx, &in.Spec, job, err); there == nil {
			add(&record.Refuse{Incoming: in.Number}, nil, in)
			continue
		}
		if code := jobhost.CodeOf(err); code == jobhost.CodeExhausted || code == jobhost.CodeUnavailable {
			if !slices.Contains(full, in.Spec.Worker) {
				full = append(full, in.Spec.Worker)
			}
			continue // later ones may be for a worker that has room
		}
		refused(in, err)
		add(&record.Refuse{Incoming: in.Number, Reason: err.Error()}, nil, in)
	}
	if len(ops) == 0 {
		return full, nil
	}
	return full, q.commit(ctx, ops, func(results []record.OpResult) {
		for i, op := range ops {
			submit, ok := op.(*record.Submit)
			if !ok {
				continue
			}
			if a := q.submitted(lanes[i], submit.Job, results[i]); a.Err != nil {
				refused(sources[i], a.Err)
			}
		}
	})
}
