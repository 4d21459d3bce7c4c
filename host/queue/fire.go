package queue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Firing is a [record.Fire] that is wanted.
type Firing struct {
	State  record.ScheduleState
	Forget bool
	Specs  []jobhost.Spec // with ids
}

// Fired is what became of a firing.
type Fired struct {
	// Err says why nothing was changed: a job was refused as in a submit, the
	// version is not the stored one, the store has failed.
	Err error
	// Existing says for each job whether its id was taken, so that it was not
	// submitted.
	Existing []bool
}

// Fire makes the firings durable, in one batch, and returns one answer for
// each. Each is applied as a whole or not at all. The error is the cause of
// ctx, when that ends first: then it is open what was applied.
func (q *Queue) Fire(ctx context.Context, firings []Firing) ([]Fired, error) {
	answers := make([]Fired, len(firings))
	var (
		ops   []record.Op
		lanes [][]*lane
		index []int // of ops in answers
	)
	for i := range firings {
		f := &firings[i]
		jobs, ls, err := q.admitAll(ctx, f.Specs)
		if err != nil {
			answers[i].Err = err
			continue
		}
		ops = append(ops, &record.Fire{State: f.State, Forget: f.Forget, Jobs: jobs})
		lanes, index = append(lanes, ls), append(index, i)
	}
	if len(ops) == 0 {
		return answers, nil
	}
	err := q.commit(ctx, ops, func(results []record.OpResult) {
		for i, op := range ops {
			answers[index[i]] = q.fired(lanes[i], op.(*record.Fire), results[i])
		}
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// admitAll admits all jobs or none.
func (q *Queue) admitAll(ctx context.Context, specs []jobhost.Spec) (jobs []*record.JobSpec, lanes []*lane, err error) {
	for i := range specs {
		spec := specs[i] // which stays as the caller has it
		job, l, err := q.prepare(ctx, &spec, fromSchedule)
		if err != nil {
			for j, l := range lanes {
				q.withdraw(jobs[j], l, true)
			}
			return nil, nil, err
		}
		jobs, lanes = append(jobs, job), append(lanes, l)
	}
	return jobs, lanes, nil
}

// fired runs when the fate of a firing is known.
func (q *Queue) fired(lanes []*lane, op *record.Fire, result record.OpResult) Fired {
	answer := Fired{Err: result.Err, Existing: make([]bool, len(op.Jobs))}
	if result.Err != nil {
		answer.Err = fmt.Errorf("fire: %w", result.Err)
	}
	for i, job := range op.Jobs {
		of := record.OpResult{Err: result.Err}
		if result.Err == nil {
			of = result.Fired[i]
		}
		q.submitted(lanes[i], job, of)
		answer.Existing[i] = of.Existing || of.Err != nil
	}
	return answer
}
