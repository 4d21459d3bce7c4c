package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Workers implements [jobhost.WorkerLister].
func (r *running) Workers(ctx context.Context) ([]jobhost.WorkerStatus, error) {
	ended, err := r.host.cfg.Store.Counts(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]jobhost.WorkerStatus, 0, len(r.workers()))
	for name, w := range r.workers() {
		stats := r.Queue.Stats(name)
		counts := stats.Counts()
		counts[jobhost.Succeeded] = ended[name][record.Succeeded]
		counts[jobhost.Dead] = ended[name][record.Dead]
		counts[jobhost.Cancelled] = ended[name][record.Cancelled]
		status := w.status()
		status.Disabled = r.Queue.Disabled(name)
		status.Mode, status.Breaker = r.Queue.Mode(name), r.Queue.Breaker(name)
		status.Tasks = counts.Numbers()
		list = append(list, status)
	}
	slices.SortFunc(list, func(a, b jobhost.WorkerStatus) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// PauseWorker implements [jobhost.Operator].
func (r *running) PauseWorker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return r.setMode(ctx, worker, jobhost.WorkerPaused)
}

// DrainWorker implements [jobhost.Operator].
func (r *running) DrainWorker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return r.setMode(ctx, worker, jobhost.WorkerDraining)
}

// ResumeWorker implements [jobhost.Operator].
func (r *running) ResumeWorker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return r.setMode(ctx, worker, jobhost.WorkerRunning)
}

func (r *running) setMode(ctx context.Context, name string, mode jobhost.WorkerMode) (jobhost.WorkerStatus, error) {
	h := r.host
	if mode == jobhost.WorkerRunning {
		if err := h.readmit(ctx, name); err != nil {
			return jobhost.WorkerStatus{}, err
		}
	}
	if err := r.SetMode(ctx, name, mode); err != nil {
		return jobhost.WorkerStatus{}, err
	}
	if w := r.workers()[name]; mode == jobhost.WorkerRunning && w != nil {
		if err := h.forgive(ctx, r.Queue, name); err != nil {
			return jobhost.WorkerStatus{}, err
		}
		if w.fallible != nil {
			w.fallible.Enable()
		}
	}
	h.cfg.Logger.Info("worker's mode was set", logkey.Worker, name, logkey.Mode, mode)
	return r.workerStatus(ctx, name)
}

// ResetBreaker implements [jobhost.Operator].
func (r *running) ResetBreaker(ctx context.Context, name string) (jobhost.WorkerStatus, error) {
	if err := r.Queue.ResetBreaker(ctx, name); err != nil {
		return jobhost.WorkerStatus{}, err
	}
	return r.workerStatus(ctx, name)
}

// ScaleWorker implements [jobhost.Operator].
func (r *running) ScaleWorker(ctx context.Context, name string, slots int) (jobhost.WorkerStatus, error) {
	if err := jobhost.CheckSlots(slots); err != nil {
		return jobhost.WorkerStatus{}, err
	}
	if err := r.host.resize(name, slots); err != nil {
		return jobhost.WorkerStatus{}, err
	}
	return r.workerStatus(ctx, name)
}

// resize changes a worker's pool; not while a reload may swap what is in it.
func (h *Host) resize(name string, slots int) error {
	h.swap.Lock()
	defer h.swap.Unlock()
	if err := h.Ready(); err != nil {
		return err
	}
	w := h.running.Load().workers()[name]
	if w == nil {
		return errNoWorker(name)
	}
	before := w.pool.Size()
	if err := w.pool.Resize(slots); err != nil {
		return fmt.Errorf("scale worker %s: %w", name, err)
	}
	h.cfg.Logger.Info("worker scaled", logkey.Worker, name, logkey.Before, before, logkey.Count, slots)
	return nil
}

func errNoWorker(name string) error {
	return &jobhost.Error{
		Code: jobhost.CodeNotFound, Field: "worker",
		Message: fmt.Sprintf("there is no worker %q", name), Hint: "jobhost worker ls",
	}
}

// workerStatus returns what is known of one worker.
func (r *running) workerStatus(ctx context.Context, name string) (jobhost.WorkerStatus, error) {
	list, err := r.Workers(ctx)
	if err != nil {
		return jobhost.WorkerStatus{}, err
	}
	for i := range list {
		if list[i].Name == name {
			return list[i], nil
		}
	}
	return jobhost.WorkerStatus{}, errNoWorker(name) // a reload removed it meanwhile
}
