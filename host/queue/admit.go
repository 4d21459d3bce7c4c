package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
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

// prepare puts the payload where it belongs and admits the job, which takes a place in
// the queue: the caller must call submitted once the store has answered, or withdraw. If
// there is no room, the job comes with the error, so that existing can look whether it was
// submitted before.
func (q *Queue) prepare(ctx context.Context, spec *jobhost.Spec, who submitter) (*record.JobSpec, *lane, error) {
	ref, missing := q.objects.uploaded(ctx, spec)
	if missing != nil && ref == nil {
		return nil, nil, missing
	}
	job, l, err := q.admit(spec, ref, who)
	switch {
	case err == nil && missing != nil:
		l.vacate(job.Tasks)
		return job, nil, missing
	case err != nil:
		if ref != nil && missing == nil {
			q.objects.Release(ref.String(), false)
		}
		return job, nil, err
	}
	if err := q.objects.offload(ctx, job); err != nil {
		l.vacate(job.Tasks)
		return job, nil, err
	}
	return job, l, nil
}

// withdraw gives up a job that was prepared and will not be.
func (q *Queue) withdraw(job *record.JobSpec, l *lane, drop bool) {
	l.vacate(job.Tasks)
	if job.Ref != "" {
		q.objects.Release(job.Ref, drop)
	}
}

// admit checks a job, fills in its defaults and reserves its place in the
// queue. The caller must commit it and call submitted. A job that there is no
// room for comes with its error: see existing. Its payload is in ref if that is
// not nil, and in the spec too if it is small.
func (q *Queue) admit(spec *jobhost.Spec, ref *payload.Ref, who submitter) (*record.JobSpec, *lane, error) {
	if err := who.check(spec); err != nil {
		return nil, nil, err
	}
	if q.closed.Load() && (who == fromOutside || who == fromSchedule) {
		return nil, nil, errClosed
	}
	l := q.lanes.of(spec.Worker)
	if l == nil || l.parked.Load() {
		return nil, nil, q.noWorker(spec.Worker)
	}
	if len(spec.Payload) > q.cfg.MaxPayload && ref == nil { // an upload has a limit of its own
		return nil, nil, &jobhost.Error{
			Code:    jobhost.CodeTooLarge,
			Field:   "payload",
			Message: fmt.Sprintf("a payload of %d bytes is larger than %d", len(spec.Payload), q.cfg.MaxPayload),
			Hint:    "upload it first (POST /v1/payloads, jobhost submit --file), or raise host.max_payload",
		}
	}
	if cb := spec.Callback.Worker; cb != "" {
		if to := q.lanes.of(cb); to == nil || to.parked.Load() {
			return nil, nil, fmt.Errorf("callback: %w", q.noWorker(cb))
		}
	}
	denied := q.judgeCallback(spec)
	worker := l.worker.Load()
	job := q.fill(worker, spec)
	if ref != nil {
		job.Ref, job.Payload = ref.String(), nil
		job.Digest, job.DigestBefore = digestsOf(spec, ref)
	}
	if denied != nil {
		return job, nil, denied
	}
	if job.Tasks > worker.Capacity {
		return job, nil, &jobhost.Error{
			Code:    jobhost.CodeInvalid,
			Field:   "tasks",
			Message: fmt.Sprintf("%d tasks never fit into the queue of %s, which holds %d", job.Tasks, l.name, worker.Capacity),
			Hint:    "ask for fewer tasks, or raise the worker's queue_capacity",
		}
	}
	if refusal := q.refusal.Load(); refusal != nil {
		return job, nil, refusal
	}
	if err := l.accept(job.Tasks); err != nil {
		return job, nil, err
	}
	return job, l, nil
}

// submitter is where a job comes from. Attempts may do so while the host stops, only
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

// fill makes the job that is stored: the spec with all defaults.
func (q *Queue) fill(w *Worker, spec *jobhost.Spec) *record.JobSpec {
	now := q.clock.now()
	job := &record.JobSpec{
		ID:          spec.ID,
		Worker:      spec.Worker,
		Payload:     spec.Payload,
		ContentType: spec.ContentType,
		Entry:       spec.Entry,
		Priority:    jobhost.PriorityAt(spec.Priority.Level()),
		Tasks:       max(spec.Tasks, 1),
		MaxAttempts: spec.MaxAttempts,
		Timeout:     spec.Timeout,
		Retention:   (spec.Retention + time.Millisecond - 1).Truncate(time.Millisecond),
		Labels:      spec.Labels,

		ConcurrencyKey: spec.ConcurrencyKey,
		UniqueKey:      spec.UniqueKey,
		Callback:       spec.Callback,

		CreatedAt: record.MillisOf(now),
	}
	job.Digest, job.DigestBefore = digestsOf(spec, nil)
	if job.ID == "" {
		job.ID = jobhost.NewID()
	}
	if spec.Deadline > 0 {
		job.Deadline = record.MillisOf(now.Add(spec.Deadline))
	}
	if spec.UniqueFor > 0 {
		job.UniqueUntil = record.MillisOf(now.Add(spec.UniqueFor))
	}
	if job.MaxAttempts == 0 {
		job.MaxAttempts = w.Retry.MaxAttempts
	}
	if job.Timeout == 0 {
		job.Timeout = w.Timeout
	}
	switch {
	case !spec.RunAt.IsZero():
		job.ReadyAt = max(record.MillisOf(spec.RunAt), job.CreatedAt)
	default:
		job.ReadyAt = record.MillisOf(now.Add(spec.Delay))
	}
	return job
}

func (q *Queue) noWorker(name string) error {
	has := slices.DeleteFunc(q.lanes.loaded(), func(name string) bool { return strings.HasPrefix(name, jobhost.ReservedWorkers) })
	return &jobhost.Error{
		Code:    jobhost.CodeNotFound,
		Field:   "worker",
		Message: fmt.Sprintf("there is no worker %q", name),
		Hint:    "this host has: " + strings.Join(has, ", "),
	}
}

// existing answers a job that there is no room for: if it is there already,
// the answer needs no room. Everything else stays refused.
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
