package host

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
)

// PauseWorker implements [jobhost.Operator].
func (h *Host) PauseWorker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return h.setMode(ctx, worker, jobhost.WorkerPaused)
}

// DrainWorker implements [jobhost.Operator].
func (h *Host) DrainWorker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return h.setMode(ctx, worker, jobhost.WorkerDraining)
}

// ResumeWorker implements [jobhost.Operator].
func (h *Host) ResumeWorker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return h.setMode(ctx, worker, jobhost.WorkerRunning)
}

func (h *Host) setMode(ctx context.Context, name string, mode jobhost.WorkerMode) (jobhost.WorkerStatus, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.WorkerStatus{}, err
	}
	if mode == jobhost.WorkerRunning {
		if err := h.readmit(ctx, name); err != nil {
			return jobhost.WorkerStatus{}, err
		}
	}
	if err := q.SetMode(ctx, name, mode); err != nil {
		return jobhost.WorkerStatus{}, err
	}
	if w := h.running.Load().workers[name]; mode == jobhost.WorkerRunning && w != nil {
		if err := h.forgive(ctx, q, name); err != nil {
			return jobhost.WorkerStatus{}, err
		}
		if w.fallible != nil {
			w.fallible.Enable()
		}
	}
	h.cfg.Logger.Info("worker's mode was set", logkey.Worker, name, logkey.Mode, mode)
	return h.workerStatus(ctx, name)
}

// ResetBreaker implements [jobhost.Operator].
func (h *Host) ResetBreaker(ctx context.Context, name string) (jobhost.WorkerStatus, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.WorkerStatus{}, err
	}
	if err := q.ResetBreaker(ctx, name); err != nil {
		return jobhost.WorkerStatus{}, err
	}
	return h.workerStatus(ctx, name)
}

// ScaleWorker implements [jobhost.Operator].
func (h *Host) ScaleWorker(ctx context.Context, name string, slots int) (jobhost.WorkerStatus, error) {
	if err := jobhost.CheckSlots(slots); err != nil {
		return jobhost.WorkerStatus{}, err
	}
	if err := h.resize(name, slots); err != nil {
		return jobhost.WorkerStatus{}, err
	}
	return h.workerStatus(ctx, name)
}

// resize changes a worker's pool; not while a reload may swap what is in it.
func (h *Host) resize(name string, slots int) error {
	h.swap.Lock()
	defer h.swap.Unlock()
	if err := h.Ready(); err != nil {
		return err
	}
	w := h.running.Load().workers[name]
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
func (h *Host) workerStatus(ctx context.Context, name string) (jobhost.WorkerStatus, error) {
	list, err := h.Workers(ctx)
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
