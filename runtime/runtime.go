// Package runtime turns a plugin's bytes into sandboxes that each run one task
// at a time. It defines what an engine must do; runtime/wasm is one.
//
//	Engine.Load ─► Plugin ─► Instantiate ─► Instance ─► Run(attempt) ─► Result
//
// A [Sandbox] keeps one instance for one slot of a pool and replaces it when it
// is broken.
package runtime

import (
	"cmp"
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/extism"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Engine loads plugins of one kind. It is safe for concurrent use.
type Engine interface {
	// Load checks and compiles a plugin. Errors carry a code and a hint:
	// invalid for a plugin that can't be loaded, and why. Concurrent loads of
	// the same bytes compile them once.
	Load(ctx context.Context, src Source) (Plugin, error)
	// Close frees everything, including plugins that are still open.
	Close(ctx context.Context) error
}

// Source is a plugin to load.
type Source struct {
	// Worker is the name to use in errors and to the guest.
	Worker string
	// Path is where the bytes came from, for errors; Bytes are the module.
	Path  string
	Bytes []byte
	// ABI is how the host communicates with the plugin: one of [ABIs], or
	// [ABIAuto] or empty to infer it from the exports.
	ABI string
	// Entry is the export to call by default; empty = the ABI's own.
	Entry string
	// Features are the WebAssembly features that the modules may use beyond the
	// default ones: some of [Features].
	Features []string
	Limits   Limits
	// Isolation is what a sandbox keeps between jobs; empty = [IsolateJob].
	Isolation Isolation
	// Sandbox is where it runs; empty = [SandboxInline].
	Sandbox Placement
	// Processes is how many processes run it, for plugins that run in processes of
	// their own; 0 = 1. The slots of its pool are spread over them.
	Processes int
	// Slots is how many instances there will be at one time, for what must be sized in advance; 0 = 1.
	Slots int
	// Env is added to the environment that the plugin has anyway.
	Env map[string]string
	// System is what the plugin sees of an operating system.
	System System
	// Linked are further modules of the plugin, for ABIs that support them.
	Linked []Linked
	// Extism limits Extism plugins further.
	Extism extism.Limits
	// Config is the configuration that the plugin sees while it initialises.
	Config map[string]string
}

// Linked is a module that other modules of a plugin import from, by its name.
type Linked struct {
	Name  string
	Bytes []byte
}

// The ways a plugin can be written.
const (
	ABIAuto    = "auto"
	ABIJobhost = "jobhost" // the native ABI, docs/abi.md
	ABIWASI    = "wasi"    // a WASI preview 1 command: docs/wasi.md
	ABIExtism  = "extism"  // an Extism plugin: docs/extism.md
	ABIProcess = "process" // a native executable: docs/processes.md
	ABIBuiltin = "builtin" // a function of the host: package builtin
)

// ABIs returns the ABIs of modules: all except process, auto and builtin.
func ABIs() []string { return []string{ABIJobhost, ABIWASI, ABIExtism} }

// StackBytes is what each sandbox has for its call stack, besides its memory. A
// guest whose calls are nested more deeply fails.
const StackBytes = 24 << 20

// FeatureSIMD is 128-bit vectors. They must be requested because they are the
// least trusted part of the compiler: see docs/sandbox.md.
const FeatureSIMD = "simd"

// Features lists the features that workers must request, sorted.
func Features() []string { return []string{FeatureSIMD} }

// Placement says where a sandbox runs.
type Placement string

// The placements.
const (
	SandboxInline  Placement = "inline"  // in the process of the host
	SandboxProcess Placement = "process" // in a process of its own
)

// Placements lists all placements.
func Placements() []Placement { return []Placement{SandboxInline, SandboxProcess} }

// Isolation says what a sandbox keeps from one job to the next.
type Isolation string

// The isolations.
const (
	// IsolateJob: nothing. Memory, globals, tables and descriptors are reset to
	// their state after the plugin's initialisation; what can't be reset is
	// recreated.
	IsolateJob Isolation = "job"
	// IsolateInstance: everything, until the instance breaks. The fastest, for
	// plugins that keep caches and are trusted with all their jobs.
	IsolateInstance Isolation = "instance"
	// IsolateFresh: nothing, and each job's sandbox is initialised from scratch, at the
	// cost of the plugin's initialisation.
	IsolateFresh Isolation = "fresh"
)

// Isolations lists all isolations, the default first.
func Isolations() []Isolation { return []Isolation{IsolateJob, IsolateInstance, IsolateFresh} }

// System is what a plugin sees of an operating system, through WASI. The zero
// value grants nothing: no arguments, no files, clocks in steps of a
// millisecond. Randomness is always available.
type System struct {
	Args         []string // of commands, after the name
	Mounts       []Mount
	PreciseClock bool // clocks as precise as the host's
	// BareEnv leaves the variables JOBHOST_… out of the environment of a command.
	BareEnv bool
}

// Mount is a folder of the host that a plugin may see.
type Mount struct {
	Host  string // folder of the host
	Guest string // where the plugin sees it, an absolute path
	Write bool   // the plugin may change its contents
}

// Limits limit one sandbox. Zero values mean the defaults of [DefaultLimits].
type Limits struct {
	MemoryBytes int64         // linear memory, a multiple of 64 KiB after rounding up
	Timeout     time.Duration // of one attempt, unless the job says otherwise
	OutputBytes int           // result of one attempt
	LogBytes    int           // log of one attempt
	LineBytes   int           // one line of the log
	StartTime   time.Duration // for creating an instance
	// Fuel limits the work of one attempt: see [jobhost.Outcome]; 0 = only the
	// timeout applies.
	Fuel int64
	// CompileBytes limits the memory for compiling a module, according to an
	// estimate made in advance. A higher limit also allows more time.
	CompileBytes int64
	// TableEntries bounds the entries of each table.
	TableEntries uint32

	OpenRequests int   // HTTP requests that one attempt may have open at one time
	Requests     int   // HTTP requests that one attempt may send
	RequestBytes int64 // of bodies that one attempt may send and receive over HTTP
}

// DefaultLimits returns the limits of workers that don't set any.
func DefaultLimits() Limits {
	return Limits{
		MemoryBytes: 64 << 20,
		Timeout:     30 * time.Second,
		OutputBytes: 1 << 20,
		LogBytes:    256 << 10,
		LineBytes:   8 << 10,
		StartTime:   30 * time.Second,

		CompileBytes: 1 << 30,
		TableEntries: 100_000,

		OpenRequests: 64,
		Requests:     1000,
		RequestBytes: 64 << 20,
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

		Fuel:         l.Fuel,
		CompileBytes: cmp.Or(l.CompileBytes, d.CompileBytes),
		TableEntries: cmp.Or(l.TableEntries, d.TableEntries),

		OpenRequests: cmp.Or(l.OpenRequests, d.OpenRequests),
		Requests:     cmp.Or(l.Requests, d.Requests),
		RequestBytes: cmp.Or(l.RequestBytes, d.RequestBytes),
	}
}

// Plugin is a loaded plugin. It is safe for concurrent use.
type Plugin interface {
	Info() Info
	// Instantiate creates a sandbox and runs its initialisation, for at most
	// Limits.StartTime.
	Instantiate(ctx context.Context) (Instance, error)
	// Close frees the plugin; its instances must be closed before.
	Close(ctx context.Context) error
}

// Fallible is an optional ability of plugins that may lose what they need to run anything, and don't
// keep trying indefinitely to recover it.
type Fallible interface {
	// OnDisabled sets a function that is called with the reason when the plugin stops running anything, and with an
	// empty reason when it runs again; nil = none. While it is disabled, attempts return [jobhost.OutcomeReturned].
	OnDisabled(notify func(reason string))
	// Enable makes it try again.
	Enable()
}

// Instance is one sandbox. It is not safe for concurrent use.
type Instance interface {
	// Run runs one attempt to its end. Everything that can happen to a guest is
	// a Result, never an error. It returns soon after ctx ends or at.Deadline
	// passes.
	Run(ctx context.Context, at *hostcall.Attempt) Result
	Close(ctx context.Context) error
}

// Result is how an attempt ended in the sandbox.
type Result struct {
	Outcome jobhost.Outcome
	// Replace says why the instance must not be used again; empty = it can be.
	Replace Reason
	// Reset is how long it took to reset the instance; 0 = it was not reset.
	Reset time.Duration
	// MemoryRefused is true if the guest was refused more memory.
	MemoryRefused bool
}

// Reason is why an instance is replaced. There are only a few, so that they can
// be labels of a metric.
type Reason string

// The reasons.
const (
	ReplacedTrap      Reason = "trap"       // the guest trapped
	ReplacedStopped   Reason = "stopped"    // it was stopped at its deadline, or cancelled
	ReplacedFuel      Reason = "fuel"       // it used up its fuel
	ReplacedStack     Reason = "stack"      // its stack overflowed
	ReplacedExit      Reason = "exit"       // it exited, and instances are not reset
	ReplacedBadResult Reason = "bad_result" // it pointed outside its memory
	ReplacedInternal  Reason = "internal"   // the host has a bug
	ReplacedGrown     Reason = "grown"      // its memory has grown too far to be reset
	ReplacedTables    Reason = "tables"     // it may have changed what can't be reset
	ReplacedFresh     Reason = "fresh"      // each job has an instance of its own
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{
		ReplacedTrap, ReplacedStopped, ReplacedFuel, ReplacedStack, ReplacedExit, ReplacedBadResult,
		ReplacedInternal, ReplacedGrown, ReplacedTables, ReplacedFresh,
	}
}

// Info describes a plugin, for people and for `jobhost worker inspect`.
type Info struct {
	SHA256 string // of the bytes, lower-case hex
	Size   int    // of the bytes
	ABI    string // one of [ABIs]
	Entry  string // the export that is called by default
	// Entries are all callable exports, sorted.
	Entries []string
	// Imports are the capabilities that the module imports, as "module.name",
	// sorted.
	Imports []string
	// Features are those of [Features] that the modules need, sorted.
	Features []string
	// MemoryMin and MemoryMax are what the module declares, in bytes; max 0 = none.
	MemoryMin, MemoryMax uint64
	// CompileMemory is the estimated memory for compiling the modules, in bytes;
	// CompileNeed is the smallest [Limits.CompileBytes] that allows it.
	CompileMemory, CompileNeed int64
	// Isolation is what applies between jobs.
	Isolation Isolation
	// Replaced says why instances are replaced rather than reset after each
	// job; empty = they are reset.
	Replaced string
}
