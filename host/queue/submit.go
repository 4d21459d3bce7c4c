package queue

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Submit admits a job and returns when it is durable. When ctx ends before
// that, the error is its cause and the job may or may not be there: submitting
// it again with the same id is safe.
func (q *Queue) Submit(ctx context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	job, l, err := q.prepare(ctx, &spec, fromOutside)
	if err != nil {
		return q.existing(ctx, &spec, job, err)
	}
	return q.commitSubmit(ctx, job, l)
}

// commitSubmit makes an admitted job durable.
func (q *Queue) commitSubmit(ctx context.Context, job *record.JobSpec, l *lane) (jobhost.Receipt, error) {
	answer := make(chan jobhost.Submitted, 1)
	q.inflight.Add(1)
	q.store.Commit([]record.Op{&record.Submit{Job: job}}, func(results []record.OpResult, err error) {
		defer q.inflight.Done()
		if err != nil {
			results = []record.OpResult{{Err: err}}
		}
		answer <- q.submitted(l, job, results[0])
	})
	select {
	case a := <-answer:
		q.stateOfExisting(ctx, &a)
		return a.Receipt, a.Err
	case <-ctx.Done():
		return jobhost.Receipt{}, context.Cause(ctx)
	}
}

// existing answers a job that there is no room for: if it is there already,
// that is no news and needs no room. Everything else stays refused.
func (q *Queue) existing(ctx context.Context, spec *jobhost.Spec, job *record.JobSpec, refusal error) (jobhost.Receipt, error) {
	if job == nil || spec.ID == "" {
		return jobhost.Receipt{}, refusal
	}
	stored, err := q.store.Job(ctx, job.ID)
	switch {
	case jobhost.CodeOf(err) == jobhost.CodeNotFound:
		return jobhost.Receipt{}, refusal
	case err != nil:
		return jobhost.Receipt{}, fmt.Errorf("submit: %w", err)
	case !job.Repeats(&stored.JobSpec):
		return jobhost.Receipt{}, fmt.Errorf("submit: %w", record.TakenID(job.ID))
	}
	return jobhost.Receipt{ID: job.ID, State: q.describe(stored).State, Deduplicated: true}, nil
}

// stateOfExisting fills in where the job stands that was there before.
func (q *Queue) stateOfExisting(ctx context.Context, a *jobhost.Submitted) {
	if !a.Receipt.Deduplicated {
		return
	}
	job, err := q.Job(ctx, a.Receipt.ID)
	a.Receipt.State, a.Err = job.State, err
}

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

// submitted runs when the fate of a submit is known.
func (q *Queue) submitted(l *lane, job *record.JobSpec, result record.OpResult) jobhost.Submitted {
	q.release(job, result)
	if result.Err != nil || result.Existing {
		l.vacate(job.Tasks)
		if result.Err != nil {
			return jobhost.Submitted{Err: fmt.Errorf("submit: %w", result.Err)}
		}
		return jobhost.Submitted{Receipt: jobhost.Receipt{ID: cmp.Or(result.ID, job.ID), Deduplicated: true}}
	}
	job.Key = result.Key
	state := q.enter(l, job, job.Tasks)
	return jobhost.Submitted{Receipt: jobhost.Receipt{ID: job.ID, State: state}}
}

// enter puts a job that is durable into its lane, where there is room for so
// many tasks; the lane is nil if the worker is not known yet.
func (q *Queue) enter(l *lane, job *record.JobSpec, reserved int) jobhost.State {
	state := jobhost.Ready
	if job.ReadyAt > job.CreatedAt {
		state = jobhost.Scheduled
	}
	q.cfg.Publish(jobhost.Event{
		Kind: jobhost.EventSubmitted, Time: q.clock.now(), Job: job.ID, Worker: job.Worker, State: state,
		Workflow: job.Origin.WorkflowID(), Step: job.Origin.StepName(),
	})
	if l == nil {
		return state
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending -= reserved
	keep := l.waitingLocked() < shortQueue
	x := order.Traits{Group: job.Group(), Deadline: job.Deadline}
	bare := job.WithoutItems()
	for i := range job.Tasks {
		e := order.Entry{Key: job.Key + record.Key(i), ReadyAt: job.ReadyAt, Index: int16(i), Level: int8(job.Priority.Level())}
		if keep && l.soonLocked(e.ReadyAt) {
			l.keepNewLocked(e, bare, job.Item(i))
		}
		l.order.Push(e, x)
	}
	l.pumpLocked()
	return state
}
