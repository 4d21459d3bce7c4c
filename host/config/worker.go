// Package config holds the settings of a worker, which a manifest reads and a host runs by.
package config

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/extism"
)

// Worker is a plugin with its pool, its limits and its grants.
type Worker struct {
	Name string
	// Path is the file that Plugin came from; in a manifest it is absolute.
	Path string
	// Plugin is the module.
	Plugin []byte
	// ABI is how to talk to the plugin; empty = tell from what it exports.
	ABI string
	// Isolation is what sandboxes keep between jobs; empty = [runtime.IsolateJob].
	Isolation runtime.Isolation
	// Features are those of [runtime.Features] that the plugin may use.
	Features []string
	// Sandbox is where sandboxes run, and Processes in how many processes, if not in that of the
	// host; zero values = [runtime.SandboxInline], and one.
	Sandbox   runtime.Placement
	Processes int
	// Env is what the plugin finds in its environment, besides what it finds anyway.
	Env map[string]string
	// System is what the plugin finds of an operating system.
	System runtime.System
	// Linked and Extism are what a manifest of Extism says besides.
	Linked []runtime.Linked
	Extism extism.Limits
	// Entry is the export to call; empty = the ABI's own.
	Entry string
	// PoolSize is how many tasks may run at once, each in a sandbox of its own; at least 1.
	PoolSize int
	// QueueCapacity bounds the tasks that wait; at least 1.
	QueueCapacity int
	// RateLimit bounds how often tasks begin, and RateBurst how many at once
	// after a rest; zero values = no bound, and what comes in 100 ms.
	RateLimit jobhost.Rate
	RateBurst int
	// ConcurrencyPerKey bounds the tasks with one concurrency key that run at once; 0 = no bound.
	ConcurrencyPerKey int
	// Breaker holds tasks while others fail; the zero value = none.
	Breaker jobhost.BreakerPolicy
	// Limits of each sandbox and attempt; zero values = the defaults.
	Limits runtime.Limits
	// Retry says when failed tasks run again; the zero value = [jobhost.DefaultRetry].
	Retry jobhost.RetryPolicy
	// Retention says how long jobs are kept after their end; nil = [jobhost.DefaultRetention].
	Retention *jobhost.Retention
	// Config and Secrets are what guests may read.
	Config, Secrets map[string]string
	// MaySubmit are the workers that guests may submit jobs to; empty = none, not even their own.
	MaySubmit []string
	// MayWatch are the workers whose jobs' states guests may see; those of its own job each may.
	MayWatch []string
	// KVQuota bounds what the guests' keys and values cost together, in bytes,
	// each key with 40 more than its own; 0 = [DefaultKVQuota], negative = no bound.
	KVQuota int64

	// HTTP is where guests may go; nil = nowhere.
	HTTP *HTTP
}

// DefaultKVQuota is the quota of workers that say nothing else.
const DefaultKVQuota = 64 << 20

// Check reports everything that is wrong with the settings.
func (w *Worker) Check() error {
	errs := []error{jobhost.CheckWorker(w.Name)}
	if w.PoolSize < 1 {
		errs = append(errs, fmt.Errorf("pool size %d is less than 1", w.PoolSize))
	}
	if w.QueueCapacity < 1 {
		errs = append(errs, fmt.Errorf("queue capacity %d is less than 1", w.QueueCapacity))
	}
	if w.Breaker != (jobhost.BreakerPolicy{}) {
		errs = append(errs, w.Breaker.Check())
	}
	if w.Retry != (jobhost.RetryPolicy{}) {
		errs = append(errs, w.Retry.Check())
	}
	if w.Retention != nil {
		errs = append(errs, w.Retention.Check())
	}
	if w.HTTP != nil {
		errs = append(errs, w.HTTP.Check())
	}
	return errors.Join(errs...)
}

// SetDefaults puts the defaults in the place of zero values.
func (w *Worker) SetDefaults() {
	if w.Retry == (jobhost.RetryPolicy{}) {
		w.Retry = jobhost.DefaultRetry()
	}
	if w.Retention == nil {
		retention := jobhost.DefaultRetention()
		w.Retention = &retention
	}
	w.Limits = w.Limits.OrDefaults()
	w.KVQuota = cmp.Or(w.KVQuota, DefaultKVQuota)
}

// Source is what the engine is asked to load.
func (w *Worker) Source() runtime.Source {
	return runtime.Source{
		Worker:    w.Name,
		Path:      w.Path,
		Bytes:     w.Plugin,
		ABI:       w.ABI,
		Entry:     w.Entry,
		Limits:    w.Limits,
		Isolation: w.Isolation,
		Features:  w.Features,
		Sandbox:   w.Sandbox,
		Processes: w.Processes,
		Slots:     w.PoolSize,
		Env:       w.Env,
		System:    w.System,
		Linked:    w.Linked,
		Extism:    w.Extism,
		Config:    w.Config,
	}
}

// InProcesses reports whether the worker runs in processes of its own.
func (w *Worker) InProcesses() bool {
	return w.ABI == runtime.ABIProcess || w.Sandbox == runtime.SandboxProcess
}
