package host

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
)

// load loads the plugins of workers, a few at a time, and reports every one
// that can't be loaded; then none is.
func (h *Host) load(ctx context.Context, workers []Worker) ([]runtime.Plugin, error) {
	h.cfg.Logger.Info("workers are being loaded; the first time they are compiled", logkey.Count, len(workers))
	plugins := make([]runtime.Plugin, len(workers))
	errs := make([]error, len(workers))
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for i := range workers {
		group.Go(func() error {
			plugins[i], errs[i] = h.loadOne(ctx, &workers[i])
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, closeAll(plugins))
	}
	return plugins, nil
}

func (h *Host) loadOne(ctx context.Context, w *Worker) (runtime.Plugin, error) {
	began := time.Now()
	if w.webhook != nil {
		return w.webhook.Open(), nil
	}
	plugin, err := h.cfg.Engine.Load(ctx, w.Source())
	if err != nil {
		return nil, fmt.Errorf("load worker %s: %w", w.Name, err)
	}
	h.cfg.Logger.Info("worker loaded", logkey.Worker, w.Name, "plugin", w.Path,
		logkey.SHA256, short(plugin.Info().SHA256), "slots", w.PoolSize, "took", time.Since(began).Round(time.Millisecond))
	return plugin, nil
}

func closeAll(plugins []runtime.Plugin) error {
	var errs []error
	for _, p := range plugins {
		if p != nil {
			errs = append(errs, p.Close(context.Background()))
		}
	}
	return errors.Join(errs...)
}
