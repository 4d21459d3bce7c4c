package host

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
)

// apart is the plugin of a worker that runs in the host's process, loaded once more in
// a process of its own when a task needs that which was under way when a host died. It
// implements [pool.Apart].
type apart struct {
	host   *Host
	queue  *queue.Queue
	worker *settings
	turn   *op.Semaphore // taken while the plugin is loaded or looked at
	plugin processes     // nil = not loaded yet
}

func (h *Host) newApart(w *settings, q *queue.Queue) *apart {
	return &apart{host: h, queue: q, worker: w, turn: op.NewSemaphore(1)}
}

// Plugin implements [pool.Apart].
func (a *apart) Plugin(ctx context.Context) (runtime.Plugin, error) {
	if _, err := op.Perform(ctx, a.turn.Acquire()); err != nil {
		return nil, err
	}
	defer a.turn.Release()
	if a.plugin != nil {
		return a.plugin, nil
	}
	plugin, err := a.host.loadProcess(ctx, a.worker)
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		a.host.cfg.Logger.Error("there is no process apart for a task that was under way when a host died", logkey.Worker, a.worker.Name, logkey.Error, err)
		a.lack(err)
		return nil, err
	}
	a.adopt(plugin)
	a.host.cfg.Logger.Warn("tasks that were under way when a host died run in a process apart", logkey.Worker, a.worker.Name)
	return plugin, nil
}

// adopt makes a plugin the one that the tasks run on.
func (a *apart) adopt(plugin processes) {
	a.plugin = plugin
	a.host.held.setApart(a.worker.Name, plugin)
	plugin.OnDisabled(func(reason string) {
		if reason != "" {
			a.lack(errors.New(reason))
		}
	})
}

// processes is a plugin that runs in processes.
type processes interface {
	runtime.Plugin
	runtime.Fallible
}

// loadProcess loads a worker's plugin in a process, whatever the worker's setting is. An
// engine that knows of no processes must not get by with one that runs in that of the host.
func (h *Host) loadProcess(ctx context.Context, w *settings) (processes, error) {
	source := w.Source()
	source.Sandbox, source.Processes = runtime.SandboxProcess, 1
	plugin, err := h.cfg.Engine.Load(ctx, source)
	if err != nil {
		return nil, err
	}
	in, ok := plugin.(processes)
	if !ok {
		return nil, errors.Join(
			&jobhost.Error{Code: jobhost.CodeUnavailable, Field: "worker", Message: "this host has no sandboxes in processes of their own"},
			plugin.Close(ctx))
	}
	return in, nil
}

// lack holds the worker, since a task can't run anywhere, until it is resumed or reloaded as another version.
func (a *apart) lack(err error) {
	reason := "a task of it was under way when the host died, and there is no process of its own that it could run in: " + withoutCause(err)
	a.host.held.setLacking(a.worker.Name, reason)
	a.queue.Disable(a.worker.Name, reason)
}

// Close implements [pool.Apart].
func (a *apart) Close(ctx context.Context) error {
	if a.plugin == nil {
		return nil
	}
	a.plugin.OnDisabled(nil)
	return a.plugin.Close(ctx)
}
