package host

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/pool"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/extism"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// newWorker makes the pool of a plugin, which the pool owns from now on.
func (h *Host) newWorker(cfg *settings, plugin loaded, r *running) *worker {
	m := h.cfg.Metrics.Worker(cfg.Name)
	w := h.versionOf(cfg, plugin)
	w.metrics = m
	w.pool = pool.New(pool.Config{
		Worker:      cfg.Name,
		Queue:       r.Queue,
		States:      h.states,
		Services:    &services{host: h, guest: m.Guest(), now: r.Now},
		Jobs:        r,
		CancelGrace: h.cfg.CancelGrace,
		Ran:         m.Ran,
		Spool:       r.spool(),
		Hit:         h.hitEffects,
		Journal:     h.cfg.Journal,
		Logger:      h.cfg.Logger,

		EndedProcess: func(ctx context.Context, f *jobhost.Failure) { h.endedProcess(ctx, r.Queue, cfg.Name, f) },
	}, h.forPool(cfg, plugin, r.Queue))
	return w
}

// versionOf counts the load of a plugin and returns the worker that runs it.
func (h *Host) versionOf(cfg *settings, plugin loaded) *worker {
	h.loads[cfg.Name]++
	return &worker{cfg: cfg, info: plugin.Info(), load: h.loads[cfg.Name], since: time.Now().UTC(), quarantine: plugin.quarantine}
}

// next returns the worker with another version in its pool.
func (h *Host) next(w *worker, cfg *settings, plugin loaded) *worker {
	n := h.versionOf(cfg, plugin)
	n.pool, n.scope, n.metrics = w.pool, w.scope, w.metrics
	return n
}

// startWorker starts a worker's pool in a scope of its own. The pool is closed
// with the scope, or at once if there is an error.
func (r *running) startWorker(w *worker) error {
	child, err := r.root.Child("worker " + w.cfg.Name)
	if err == nil {
		w.scope = child
		r.host.watch(child)
		err = w.pool.Start(child)
	}
	if err != nil {
		w.pool.Close()
		return fmt.Errorf("start worker %s: %w", w.cfg.Name, err)
	}
	return nil
}

// forQueue is what the queue must know of a worker.
func (w *settings) forQueue() queue.Worker {
	return queue.Worker{
		Name: w.Name, Capacity: w.QueueCapacity, Retry: w.Retry, Timeout: w.Limits.Timeout, Memory: w.taskMemory(),
		Rate: w.RateLimit, RateBurst: w.RateBurst, PerKey: w.ConcurrencyPerKey, Breaker: w.Breaker,
		Retention: *w.Retention,
	}
}

// forPool is what the pool is to run. Results over spill bytes leave the memory;
// 0 = none do.
func (w *settings) forPool(plugin loaded, spill int) pool.Version {
	return pool.Version{
		Plugin:    plugin.Plugin,
		HTTP:      plugin.http,
		Size:      w.PoolSize,
		Config:    w.Config,
		Secrets:   w.Secrets,
		MaySubmit: w.MaySubmit,
		MayWatch:  w.MayWatch,
		KVQuota:   w.kvQuota(plugin.Info().ABI),
		Limits: hostcall.Limits{
			OutputBytes: w.Limits.OutputBytes,
			SpillBytes:  spill,
			LogBytes:    w.Limits.LogBytes,
			LineBytes:   w.Limits.LineBytes,

			OpenRequests: w.Limits.OpenRequests,
			Requests:     w.Limits.Requests,
			RequestBytes: w.Limits.RequestBytes,
		},
	}
}

// forPool is what the pool of a worker is to run.
func (h *Host) forPool(cfg *settings, plugin loaded, q *queue.Queue) pool.Version {
	v := cfg.forPool(plugin, h.spillBytes())
	switch {
	case cfg.own():
		v.Place = journal.Host
	case cfg.InProcesses():
		v.Place = journal.Process
	default:
		v.Place, v.Apart = journal.Inline, h.newApart(cfg, q)
		if plugin.quarantine != nil {
			v.Place = journal.Process
		}
	}
	return v
}

// kvQuota is what the worker's keys and values may cost together. Extism has a
// limit of its own for vars, which itself is too much.
func (w *settings) kvQuota(abi string) int64 {
	vars := cmp.Or(w.Extism.VarBytes, extism.DefaultVarBytes)
	if abi != runtime.ABIExtism || vars <= 1 || w.KVQuota > 0 && w.KVQuota < vars {
		return w.KVQuota
	}
	return vars - 1
}

func (w *worker) status() jobhost.WorkerStatus {
	s := jobhost.WorkerStatus{
		Name:          w.cfg.Name,
		Plugin:        w.cfg.Path,
		SHA256:        w.info.SHA256,
		Version:       w.load,
		LoadedAt:      w.since,
		ABI:           w.info.ABI,
		Entry:         w.info.Entry,
		Slots:         w.pool.Size(),
		Busy:          w.pool.Busy(),
		PoolSize:      w.cfg.PoolSize,
		QueueCapacity: w.cfg.QueueCapacity,
		RateLimit:     w.cfg.RateLimit.String(),

		ConcurrencyPerKey: w.cfg.ConcurrencyPerKey,

		Timeout:     jobhost.Duration(w.cfg.Limits.Timeout),
		MemoryBytes: w.cfg.Limits.MemoryBytes,
		Retry:       w.cfg.Retry.String(),
		Retention:   w.cfg.Retention.String(),
	}
	switch {
	case w.cfg.own():
		s.MemoryBytes = 0 // there is no sandbox
	case w.cfg.InProcesses():
		s.Sandbox, s.Processes = string(runtime.SandboxProcess), max(w.cfg.Processes, 1)
	case w.quarantine != nil:
		s.Sandbox, s.Quarantine = string(runtime.SandboxProcess), w.quarantine.reason()
		if w.quarantine.Failed == "" {
			s.Processes = 1
		}
	default:
		s.Sandbox = string(runtime.SandboxInline)
	}
	return s
}

// watchDisabled holds the tasks of a worker while its plugin can't run anything.
func (w *worker) watchDisabled(plugin runtime.Plugin, q *queue.Queue) {
	fallible, ok := plugin.(runtime.Fallible)
	if !ok {
		return
	}
	w.fallible = fallible
	fallible.OnDisabled(func(reason string) { q.Disable(w.cfg.Name, reason) })
}

// unwatchDisabled is for a version that is replaced: what its plugin reports from then on is
// ignored.
func (w *worker) unwatchDisabled() {
	if w.fallible != nil {
		w.fallible.OnDisabled(nil)
	}
}
