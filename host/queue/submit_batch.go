package queue

import (
	"context"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// SubmitBatch admits many jobs in one durable batch and returns one answer for
// each, in their order.
func (q *Queue) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	answers := make([]jobhost.Submitted, len(specs))
	var (
		ops   []record.Op
		lanes []*lane
		index []int // of ops in answers
	)
	for i := range specs {
		spec := specs[i] // which stays as the caller has it
		job, l, err := q.prepare(ctx, &spec, fromOutside)
		if err != nil {
			answers[i].Receipt, answers[i].Err = q.existing(ctx, &spec, job, err)
			continue
		}
		ops, lanes, index = append(ops, &record.Submit{Job: job}), append(lanes, l), append(index, i)
	}
	if len(ops) == 0 {
		return answers, nil
	}
	err := q.commit(ctx, ops, func(results []record.OpResult) {
		for i, op := range ops {
			answers[index[i]] = q.submitted(lanes[i], op.(*record.Submit).Job, results[i])
		}
	})
	if err != nil {
		return nil, err
	}
	for _, i := range index {
		q.stateOfExisting(ctx, &answers[i])
	}
	return answers, nil
}
