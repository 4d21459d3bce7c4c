package host

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost/host/deferred"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime"
)

// load loads the plugins of workers, a few at a time, and reports every one
// that can't be loaded; then none is. Those in quarantine come last, one by one.
func (h *Host) load(ctx context.Context, workers []settings) ([]loaded, error) {
	var names []string
	for i := range workers {
		if !workers[i].own() {
			names = append(names, workers[i].Name)
		}
	}
	h.cfg.Logger.Info("loading workers; a plugin is compiled the first time", logkey.Count, len(names), logkey.Worker, strings.Join(names, ","))
	h.loading.expect(len(names))
	defer h.loading.tell(h.cfg.Logger)()
	plugins := make([]loaded, len(workers))
	errs := make([]error, len(workers))
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	var suspects []int
	for i := range workers {
		if h.held.quarantineOf(&workers[i]) != nil {
			suspects = append(suspects, i)
			continue
		}
		group.Go(func() error {
			plugins[i], errs[i] = h.loadOne(ctx, &workers[i], nil)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	for _, i := range suspects {
		plugins[i], errs[i] = h.loadOne(ctx, &workers[i], h.held.quarantineOf(&workers[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, closeAll(plugins))
	}
	return plugins, nil
}

// loaded is what a version of a worker is made of. Its owner closes it.
type loaded struct {
	runtime.Plugin               // nil = nothing is loaded
	http           netproxy.Pool // nil = the worker may send no requests
	quarantine     *quarantine   // why it isn't in the process of the host; nil = no such reason
}

// close frees it.
func (l *loaded) close() error {
	if l.Plugin == nil {
		return nil
	}
	err := l.Close(context.Background())
	if l.http != nil {
		err = errors.Join(err, l.http.Stop(0))
	}
	return err
}

// loadOne loads a worker's plugin, which may be in quarantine, and opens what sends its
// requests.
func (h *Host) loadOne(ctx context.Context, w *settings, q *quarantine) (l loaded, err error) {
	if !w.own() {
		defer h.loading.begin(w.Name)()
	}
	if q != nil {
		l, err = h.loadApart(ctx, w, q)
	} else {
		l.Plugin, err = h.loadPlugin(ctx, w)
	}
	if err != nil {
		return loaded{}, err
	}
	w.extism = l.Info().ABI == runtime.ABIExtism
	if l.http, err = h.openHTTP(w); err != nil {
		return loaded{}, errors.Join(err, l.Close(ctx))
	}
	return l, nil
}

func (h *Host) loadPlugin(ctx context.Context, w *settings) (runtime.Plugin, error) {
	began := time.Now()
	switch {
	case w.webhook != nil:
		return w.webhook.Open(h.cfg.Listens), nil
	case w.defers:
		return deferred.New(deferred.Config{Pool: h.poolOf, MaxPayload: h.cfg.MaxPayload}), nil
	}
	plugin, err := h.loadNoted(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("load worker %s: %w", w.Name, err)
	}
	h.cfg.Logger.Info("worker loaded", logkey.Worker, w.Name, "plugin", w.Path,
		logkey.SHA256, short(plugin.Info().SHA256), "slots", w.PoolSize, "took", time.Since(began).Round(time.Millisecond))
	return plugin, nil
}

// loadNoted loads a plugin. The journal has it for as long as that takes, if it may end
// the host.
func (h *Host) loadNoted(ctx context.Context, w *settings) (runtime.Plugin, error) {
	if w.InProcesses() {
		return h.cfg.Engine.Load(ctx, w.Source())
	}
	digest := digestOf(w)
	noted := h.noteLoad(w.Name, digest)
	defer noted.End()
	plugin, err := h.cfg.Engine.Load(ctx, w.Source())
	if err != nil {
		return nil, err
	}
	if _, ok := plugin.(runtime.Fallible); ok {
		return plugin, nil // it makes its sandboxes in processes
	}
	return &watched{Plugin: plugin, host: h, worker: w.Name, digest: digest}, nil
}

func closeAll(plugins []loaded) error {
	var errs []error
	for i := range plugins {
		errs = append(errs, plugins[i].close())
	}
	return errors.Join(errs...)
}
