package host

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

var _ jobhost.Server = (*Host)(nil)

// queue returns the queue, or an error with code unavailable before there is one.
func (h *Host) queue() (*queue.Queue, error) {
	r, err := h.now()
	if err != nil {
		return nil, err
	}
	return r.queue, nil
}

// now returns what is running; after a stop the queue still answers questions
// until the store is closed.
func (h *Host) now() (*running, error) {
	if r := h.running.Load(); r != nil {
		return r, nil
	}
	return nil, h.Ready()
}

// Submit implements [jobhost.Submitter].
func (h *Host) Submit(ctx context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Receipt{}, err
	}
	receipt, err := q.Submit(ctx, spec)
	h.countRefusal(err)
	return receipt, err
}

// SubmitBatch implements [jobhost.Submitter].
func (h *Host) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	q, err := h.queue()
	if err != nil {
		return nil, err
	}
	answers, err := q.SubmitBatch(ctx, specs)
	for i := range answers {
		h.countRefusal(answers[i].Err)
	}
	return answers, err
}

// Job implements [jobhost.Reader].
func (h *Host) Job(ctx context.Context, id string) (jobhost.Job, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Job{}, err
	}
	return q.Job(ctx, id)
}

// Jobs implements [jobhost.Reader].
func (h *Host) Jobs(ctx context.Context, filter jobhost.Filter) (jobhost.Page, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Page{}, err
	}
	return q.Jobs(ctx, filter)
}

// Result implements [jobhost.Reader].
func (h *Host) Result(ctx context.Context, id string, task int) (jobhost.Result, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Result{}, err
	}
	return q.Result(ctx, id, task)
}

// Results implements [jobhost.ResultLister].
func (h *Host) Results(ctx context.Context, id string, most int) iter.Seq2[jobhost.Result, error] {
	q, err := h.queue()
	if err != nil {
		return func(yield func(jobhost.Result, error) bool) { yield(jobhost.Result{}, err) }
	}
	return q.Results(ctx, id, most)
}

// Logs implements [jobhost.Reader].
func (h *Host) Logs(ctx context.Context, id string) ([]jobhost.AttemptLog, error) {
	q, err := h.queue()
	if err != nil {
		return nil, err
	}
	return q.Logs(ctx, id)
}

// Why implements [jobhost.Reader].
func (h *Host) Why(ctx context.Context, id string) (jobhost.Why, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Why{}, err
	}
	return q.Why(ctx, id)
}

// Cancel implements [jobhost.Controller].
func (h *Host) Cancel(ctx context.Context, id string) (jobhost.Job, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Job{}, err
	}
	return q.Cancel(ctx, id)
}

// Retry implements [jobhost.Controller].
func (h *Host) Retry(ctx context.Context, id string) (jobhost.Job, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Job{}, err
	}
	return q.Retry(ctx, id)
}

// CancelTask implements [jobhost.Controller].
func (h *Host) CancelTask(ctx context.Context, id string, task int) (jobhost.Job, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Job{}, err
	}
	return q.CancelTask(ctx, id, task)
}

// RetryTask implements [jobhost.Controller].
func (h *Host) RetryTask(ctx context.Context, id string, task int) (jobhost.Job, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Job{}, err
	}
	return q.RetryTask(ctx, id, task)
}

// Delete implements [jobhost.Controller].
func (h *Host) Delete(ctx context.Context, id string) error {
	q, err := h.queue()
	if err != nil {
		return err
	}
	return q.Delete(ctx, id)
}

// Dead implements [jobhost.DeadLetters].
func (h *Host) Dead(ctx context.Context, filter jobhost.DeadFilter) (jobhost.DeadPage, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.DeadPage{}, err
	}
	return q.Dead(ctx, filter)
}

// DeadSummary implements [jobhost.DeadLetters].
func (h *Host) DeadSummary(ctx context.Context, query jobhost.DeadQuery) (jobhost.DeadSummary, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.DeadSummary{}, err
	}
	return q.DeadSummary(ctx, query)
}

// ChangeDead implements [jobhost.DeadLetters].
func (h *Host) ChangeDead(ctx context.Context, change jobhost.DeadChange) (jobhost.DeadChanged, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.DeadChanged{}, err
	}
	return q.ChangeDead(ctx, change)
}

// Workers implements [jobhost.WorkerLister].
func (h *Host) Workers(ctx context.Context) ([]jobhost.WorkerStatus, error) {
	r, err := h.now()
	if err != nil {
		return nil, err
	}
	ended, err := h.cfg.Store.Counts(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]jobhost.WorkerStatus, 0, len(r.workers))
	for name, w := range r.workers {
		stats := r.queue.Stats(name)
		counts := stats.Counts()
		counts[jobhost.Succeeded] = ended[name][record.Succeeded]
		counts[jobhost.Dead] = ended[name][record.Dead]
		counts[jobhost.Cancelled] = ended[name][record.Cancelled]
		status := w.status()
		status.Disabled = r.queue.Disabled(name)
		status.Mode, status.Breaker = r.queue.Mode(name), r.queue.Breaker(name)
		status.Tasks = counts.Numbers()
		list = append(list, status)
	}
	slices.SortFunc(list, func(a, b jobhost.WorkerStatus) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
