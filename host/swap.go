package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
)

// prepare loads and tries all plugins that the changes need and claims the
// tasks of workers that are new, while everything runs as before. After an error the queue
// may have a lane for such a worker, in which its tasks are held as before.
func (h *Host) prepare(ctx context.Context, changes []change) error {
	defer h.tellLoads(changes)()
	errs := make([]error, len(changes))
	var group errgroup.Group
	group.SetLimit(max(goruntime.GOMAXPROCS(0)-1, 1)) // one is left for the tasks that run
	for i := range changes {
		c := &changes[i]
		if !c.loads() {
			continue
		}
		group.Go(func() error {
			if errs[i] = h.prepareOne(ctx, c); errs[i] != nil {
				h.cfg.Metrics.Reloaded(c.name, metrics.ReloadFailed)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	err := errors.Join(errs...)
	if err == nil {
		err = h.fits(changes)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx) // the caller has gone away, or the host stops
	}
	if err != nil {
		return errors.Join(err, closePlugins(changes))
	}
	return nil
}

// tellLoads lets the log say what the changes wait for, until stop is called.
func (h *Host) tellLoads(changes []change) (stop func()) {
	n := 0
	for i := range changes {
		if changes[i].loads() && !changes[i].cfg.own() {
			n++
		}
	}
	h.loading.expect(n)
	return h.loading.tell(h.cfg.Logger)
}

// fits checks that each worker's tasks can run, by what loading has told of the plugins.
func (h *Host) fits(changes []change) error {
	workers := maps.Clone(h.running.Load().workers())
	for i := range changes {
		c := &changes[i]
		switch {
		case c.loads():
			workers[c.name] = &worker{cfg: c.cfg}
		case c.kind == jobhost.WorkerRemoved:
			delete(workers, c.name)
		}
	}
	if err := h.sandboxes(workers).check(); err != nil {
		return &jobhost.Error{Code: jobhost.CodeInvalid, Message: "reload host: " + err.Error()}
	}
	return nil
}

func (h *Host) prepareOne(ctx context.Context, c *change) error {
	began := time.Now()
	suspect := h.held.quarantineOf(c.cfg)
	if c.readmits {
		suspect = nil
	}
	plugin, err := h.loadOne(ctx, c.cfg, suspect)
	if err != nil {
		return err
	}
	c.plugin, c.took = plugin, time.Since(began)
	q := h.running.Load().Queue
	if plugin.quarantine != nil { // whose process makes a sandbox when it has a task
		err = h.noteQuarantines(ctx, q)
	} else {
		err = try(ctx, c.name, plugin.Plugin)
	}
	if err != nil {
		return err
	}
	return q.Prepare(ctx, c.cfg.forQueue())
}

// try makes a sandbox and throws it away: a version that can't even be
// initialised must not replace one that works.
func try(ctx context.Context, worker string, plugin runtime.Plugin) error {
	instance, err := plugin.Instantiate(ctx)
	if err != nil {
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Hint: jobhost.HintOf(err),
			Message: fmt.Sprintf("the new version of worker %s can't make a sandbox: %v", worker, err),
		}
	}
	return instance.Close(ctx)
}

var errDrains = &jobhost.Error{
	Code:    jobhost.CodeUnavailable,
	Message: "the host is stopping, and nothing was reloaded",
	Hint:    "it starts with the manifest as it is then",
}

// commit makes the changes. Only a host that is going down anyway can fail
// here, and may have made a part of them.
func (h *Host) commit(changes []change) error {
	h.swap.Lock()
	defer h.swap.Unlock()
	if h.State() != Running {
		return errors.Join(errDrains, closePlugins(changes))
	}
	r := h.running.Load()
	workers := maps.Clone(r.workers())
	var errs []error
	for i := range changes {
		c := &changes[i]
		if err := r.change(c); err != nil {
			errs = append(errs, fmt.Errorf("reload worker %s: %w", c.name, err))
			continue
		}
		if c.new != nil {
			workers[c.name] = c.new
		} else {
			delete(workers, c.name)
		}
	}
	r.current.Store(&workers)
	h.hooks.settings.Store(settingsIn(workers))
	r.SetMaxMemory(h.sandboxes(workers).taskMemory())
	return errors.Join(errs...)
}

// sandboxes are those of the workers given.
func (h *Host) sandboxes(workers map[string]*worker) *sandboxes {
	s := h.cfg.sandboxes(nil)
	for _, w := range workers {
		s.workers = append(s.workers, *w.cfg)
	}
	return s
}

// change makes one change.
func (r *running) change(c *change) error {
	h := r.host
	switch c.kind {
	case jobhost.WorkerChanged:
		if err := c.old.pool.Swap(h.forPool(c.cfg, c.plugin, r.Queue)); err != nil {
			return errors.Join(err, c.plugin.close())
		}
		c.old.unwatchDisabled()
		c.new = h.next(c.old, c.cfg, c.plugin)
		h.held.setLacking(c.name, "")
		h.holdStruck(c.cfg, r.Queue)
		r.Queue.Put(c.cfg.forQueue())
		c.new.watchDisabled(c.plugin.Plugin, r.Queue)
	case jobhost.WorkerAdded:
		c.new = h.newWorker(c.cfg, c.plugin, r)
		if err := r.startWorker(c.new); err != nil {
			return err
		}
		h.holdStruck(c.cfg, r.Queue)
		r.Queue.Put(c.cfg.forQueue())
		c.new.watchDisabled(c.plugin.Plugin, r.Queue)
	case jobhost.WorkerRemoved:
		c.old.unwatchDisabled()
		r.Queue.Disable(c.name, "")
		r.Queue.Park(c.name)
		c.old.pool.Close()
		r.endFibersOf(c.name)
		return r.retire(c.old)
	default:
		c.new = c.old
	}
	return nil
}

// retire joins the scope of a worker that was removed when its last task has
// ended: not before, since a scope that is being joined lets no task begin.
func (r *running) retire(w *worker) error {
	return r.root.Go("retire worker "+w.cfg.Name, func(context.Context) error {
		<-w.pool.Ended() // a host that stops cancels the slots
		_, err := w.scope.Join(context.Background())
		return err
	})
}

// tellReload logs, counts and publishes a change that was made.
func (h *Host) tellReload(c *change) {
	h.cfg.Metrics.Reloaded(c.name, metrics.ReloadOutcome(c.kind))
	event := jobhost.Event{Kind: jobhost.EventLoaded, Time: time.Now(), Worker: c.name}
	switch c.kind {
	case jobhost.WorkerUnchanged:
		return
	case jobhost.WorkerRemoved:
		event.Kind = jobhost.EventUnloaded
		h.cfg.Logger.Info("worker removed; its tasks are held", logkey.Worker, c.name, logkey.Before, short(c.old.info.SHA256))
	case jobhost.WorkerAdded:
		h.cfg.Logger.Info("worker added", logkey.Worker, c.name, logkey.SHA256, short(c.new.info.SHA256), logkey.Load, c.new.load)
	default:
		h.cfg.Logger.Info("worker swapped", logkey.Worker, c.name, logkey.Before, short(c.old.info.SHA256),
			logkey.SHA256, short(c.new.info.SHA256), logkey.Load, c.new.load, logkey.Duration, c.took.Round(time.Millisecond))
	}
	h.publish(event)
}

// short is as much of a digest as people compare.
func short(digest string) string { return digest[:min(len(digest), 12)] }
