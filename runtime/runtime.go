// Package runtime turns a plugin's bytes into sandboxes that each run one
// task at a time. It says what an engine must do; runtime/wasm is one.
//
//	Engine.Load ─► Plugin ─► Instantiate ─► Instance ─► Run(attempt) ─► Result
//
// A [Sandbox] keeps one instance for one slot of a pool and replaces it when
// it broke.
package runtime

import (
	"cmp"
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Engine loads plugins of one kind. It is safe for many goroutines.
type Engine interface {
	// Load checks and compiles a plugin. Errors carry a code and a hint:
	// invalid for a plugin that can't be loaded, with what is wrong with it.
	// Loading the same bytes at the same time compiles them once.
	Load(ctx context.Context, src Source) (Plugin, error)
	// Close frees everything, the plugins that are still open included.
	Close(ctx context.Context) error
}

// Source is a plugin to load.
type Source struct {
	// Worker is the name to use in errors and to the guest.
	Worker string
	// Path is where the bytes came from, for errors; Bytes are the module.
	Path  string
	Bytes []byte
	// Entry is the export to call by default; empty = the ABI's own.
	Entry  string
	Limits Limits
}

// Limits bound one sandbox. Zero values mean the defaults of [DefaultLimits].
type Limits struct {
	MemoryBytes int64         // linear memory, a multiple of 64 KiB after rounding up
	Timeout     time.Duration // of one attempt, unless the job says otherwise
	OutputBytes int           // result of one attempt
	LogBytes    int           // log of one attempt
	LineBytes   int           // one line of the log
	StartTime   time.Duration // of making an instance
}

// DefaultLimits returns the limits of workers that say nothing else.
func DefaultLimits() Limits {
	return Limits{
		MemoryBytes: 64 << 20,
		Timeout:     30 * time.Second,
		OutputBytes: 1 << 20,
		LogBytes:    256 << 10,
		LineBytes:   8 << 10,
		StartTime:   30 * time.Second,
	}
}

// OrDefaults returns the limits with zero values replaced by the defaults.
func (l Limits) OrDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		MemoryBytes: cmp.Or(l.MemoryBytes, d.MemoryBytes),
		Timeout:     cmp.Or(l.Timeout, d.Timeout),
		OutputBytes: cmp.Or(l.OutputBytes, d.OutputBytes),
		LogBytes:    cmp.Or(l.LogBytes, d.LogBytes),
		LineBytes:   cmp.Or(l.LineBytes, d.LineBytes),
		StartTime:   cmp.Or(l.StartTime, d.StartTime),
	}
}

// Plugin is a loaded plugin. It is safe for many goroutines.
type Plugin interface {
	Info() Info
	// Instantiate makes a sandbox and runs its initialisation, for at most
	// Limits.StartTime.
	Instantiate(ctx context.Context) (Instance, error)
	// Close frees the plugin; its instances must be closed before.
	Close(ctx context.Context) error
}

// Instance is one sandbox. One goroutine uses it at a time.
type Instance interface {
	// Run runs one attempt to its end. Everything that can happen to a guest
	// is a Result, never an error. It returns soon after ctx ends or
	// at.Deadline passes.
	Run(ctx context.Context, at *hostcall.Attempt) Result
	Close(ctx context.Context) error
}

// Result is how an attempt ended in the sandbox.
type Result struct {
	Outcome jobhost.Outcome
	// Broken says that the instance must not be used again.
	Broken bool
}

// Info describes a plugin, for people and for `jobhost worker inspect`.
type Info struct {
	SHA256 string // of the bytes, lower-case hex
	Size   int    // of the bytes
	ABI    string // "jobhost"
	Entry  string // the export that is called by default
	// Entries are all exports that can be called, sorted.
	Entries []string
	// Imports are the capabilities that the module asks for, as
	// "module.name", sorted.
	Imports []string
	// MemoryMin and MemoryMax are what the module declares, in bytes; max 0 = none.
	MemoryMin, MemoryMax uint64
}
