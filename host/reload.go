package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/schedule"
	"github.com/jobhost/jobhost/host/webhook"
	"github.com/jobhost/jobhost/host/workflow"
)

// Update is what a host is to run from now on.
type Update struct {
	// Workers and Schedules are all of them, and Webhook what holds for webhooks, as in [Config].
	Workers   []Worker
	Schedules []schedule.Schedule
	Webhook   *webhook.Settings
	// Fibers are those that start with the host, as in [Config].
	Fibers []jobhost.FiberSpec
	// Workflows are the definitions that can be started by name; nil = as before.
	Workflows []jobhost.Workflow
	defined   workflow.Definitions
	// NeedsRestart names settings that changed and that only a start takes up.
	NeedsRestart []string
}

var errNoReread = &jobhost.Error{
	Code:    jobhost.CodeInvalid,
	Message: "this host can't be reloaded: it was not started from a manifest",
}

// Reload implements [jobhost.Reloader]: it changes over to what
// [Config.Reread] returns. Schedules are changed with all workers, not with one.
func (r *running) Reload(ctx context.Context, worker string) (jobhost.Reload, error) {
	h := r.host
	if h.cfg.Reread == nil {
		return jobhost.Reload{}, errNoReread
	}
	return h.reload(ctx, worker, h.cfg.Reread)
}

// SetWorkers is a reload to the workers given, for programs that embed a
// host; there must be at least one. Schedules and webhooks stay as they are.
func (h *Host) SetWorkers(ctx context.Context, workers []Worker) (jobhost.Reload, error) {
	update := Update{Workers: slices.Clone(workers), Schedules: h.definedSchedules(), Webhook: h.hooks.settings.Load()}
	return h.reload(ctx, "", func(context.Context) (Update, error) {
		update.Fibers = h.cfg.Fibers.Start // safe: read is called within the reload
		return update, nil
	})
}

// reload waits for its turn and goes through the steps. Until the last one
// nothing has changed, and everything can fail.
func (h *Host) reload(ctx context.Context, worker string, read func(context.Context) (Update, error)) (jobhost.Reload, error) {
	if err := h.beginReload(ctx); err != nil {
		return jobhost.Reload{}, err
	}
	defer h.reloading.Release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.leaving, func() { cancel(context.Cause(h.leaving)) })()
	changes, update, report, err := h.compare(ctx, worker, read)
	if err == nil {
		err = h.prepare(ctx, changes)
	}
	if err == nil {
		err = h.commit(changes)
	}
	if err != nil {
		return jobhost.Reload{}, err
	}
	for i := range changes {
		report.Workers = append(report.Workers, changes[i].report())
		h.tellReload(&changes[i])
	}
	if worker != "" {
		return report, nil
	}
	h.cfg.Logger.Info("manifest reloaded", "workers", len(update.Workers), "workflows", len(update.Workflows),
		"schedules", len(update.Schedules), "changed", changed(changes))
	r := h.running.Load()
	r.Define(update.defined)
	// Schedules and fibers come last, since their workers must be there. What can fail
	// now is the store, which ends the host.
	return report, errors.Join(r.setSchedules(context.WithoutCancel(ctx), update.Schedules), r.setFibers(update.Fibers))
}

// changed counts the workers that are not as they were.
func changed(changes []change) (n int) {
	for i := range changes {
		if changes[i].kind != jobhost.WorkerUnchanged {
			n++
		}
	}
	return n
}

// beginReload waits until no other reload is under way. After nil, the caller
// releases h.reloading.
func (h *Host) beginReload(ctx context.Context) error {
	if err := h.Ready(); err != nil {
		return err
	}
	if _, err := op.Perform(ctx, op.Choice(h.reloading.Acquire(), op.Done[struct{}](h.leaving))); err != nil {
		return err
	}
	if err := h.Ready(); err != nil {
		h.reloading.Release()
		return err
	}
	return nil
}

// change is what a reload means for one worker.
type change struct {
	kind   jobhost.WorkerChange
	name   string
	cfg    *settings     // what is to run; with Changed and Added
	plugin loaded        // from cfg
	took   time.Duration // to load it
	// readmits says that cfg is that of old, whose plugin leaves its quarantine.
	readmits bool
	old      *worker // what runs; nil with Added
	new      *worker // what runs afterwards; nil with Removed
}

// loads reports whether the change needs a plugin.
func (c *change) loads() bool {
	return c.kind == jobhost.WorkerChanged || c.kind == jobhost.WorkerAdded
}

// compare reads what is to run and tells what is to be done for it, by name.
func (h *Host) compare(ctx context.Context, worker string, read func(context.Context) (Update, error)) ([]change, Update, jobhost.Reload, error) {
	update, err := read(ctx)
	if err != nil {
		h.cfg.Metrics.Reloaded("", metrics.ReloadFailed)
		return nil, Update{}, jobhost.Reload{}, err
	}
	next := Config{
		Store: h.cfg.Store, Engine: h.cfg.Engine, Workers: update.Workers, Schedules: update.Schedules, Webhook: update.Webhook, MaxMemory: h.cfg.MaxMemory,
		Fibers: h.cfg.Fibers,
	}
	next.Fibers.Start = update.Fibers
	if err := next.Check(); err != nil {
		return nil, Update{}, jobhost.Reload{}, &jobhost.Error{Code: jobhost.CodeInvalid, Message: "reload host: " + err.Error()}
	}
	if err := h.redefine(&update); worker == "" && err != nil {
		return nil, Update{}, jobhost.Reload{}, &jobhost.Error{Code: jobhost.CodeInvalid, Message: "reload host: " + err.Error()}
	}
	changes := compare(h.running.Load().workers(), withOwn(update.Workers, update.Webhook))
	if worker != "" {
		changes = slices.DeleteFunc(changes, func(c change) bool { return c.name != worker })
		if len(changes) == 0 {
			return nil, Update{}, jobhost.Reload{}, &jobhost.Error{
				Code: jobhost.CodeNotFound, Field: "worker", Message: fmt.Sprintf("there is no worker %q", worker),
				Hint: "neither the host nor its manifest has it",
			}
		}
	}
	return changes, update, jobhost.Reload{Workers: []jobhost.WorkerReload{}, NeedsRestart: update.NeedsRestart}, nil
}

// compare tells the changes from what runs to what is to run, sorted by name.
// A worker whose plugin and settings are the same is left alone.
func compare(now map[string]*worker, workers []settings) []change {
	gone := maps.Clone(now)
	var changes []change
	for _, w := range workers {
		c := change{kind: jobhost.WorkerAdded, name: w.Name, cfg: &w, old: now[w.Name]}
		switch {
		case c.old == nil:
		case c.old.cfg.same(w):
			c.kind = jobhost.WorkerUnchanged
		default:
			c.kind = jobhost.WorkerChanged
		}
		changes = append(changes, c)
		delete(gone, w.Name)
	}
	for name, w := range gone {
		changes = append(changes, change{kind: jobhost.WorkerRemoved, name: name, old: w})
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.name, b.name) })
	return changes
}

// report describes a change that was made.
func (c *change) report() jobhost.WorkerReload {
	r := jobhost.WorkerReload{Name: c.name, Change: c.kind}
	if c.old != nil {
		r.Before = c.old.info.SHA256
	}
	if c.new != nil {
		r.SHA256, r.Version = c.new.info.SHA256, c.new.load
	}
	return r
}

// closePlugins closes what was loaded for changes that were not made.
func closePlugins(changes []change) error {
	var errs []error
	for i := range changes {
		errs = append(errs, changes[i].plugin.close())
	}
	return errors.Join(errs...)
}
