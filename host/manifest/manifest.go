// Package manifest reads manifest.toml, the one file that says what a host
// runs: its own settings in [host], one [worker.NAME] for each plugin, one
// [[schedule]] for each job that comes at certain times, one [[fiber]] for each
// fiber that starts with the host, with [fibers] for what holds for all of them, [cluster] for a host that shares its store,
// one [workflow.NAME] for each workflow, with [workflows] for all of them, [webhook], which says where webhooks may go, and [payload], which
// says where large payloads are.
//
// Reading is strict. A misspelt setting, a number without a unit or a file
// that is not there is a [Fault] with file, line, column and a hint, and all
// faults are reported at once. What comes out is plain structs with every
// default filled in and every path absolute. fields.go is the table of all
// settings; docs/manifest.md is checked against it.
package manifest

import (
	"log/slog"
	"path/filepath"
	goruntime "runtime"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/config"
	"github.com/jobhost/jobhost/runtime"
)

// Bounds that no setting changes.
const (
	MaxBytes        = 1 << 20   // of a manifest
	MaxWorkers      = 1000      // in a manifest
	MaxSchedules    = 1000      // in a manifest
	MaxFibers       = 10_000    // in a manifest
	MaxWorkflows    = 1000      // in a manifest
	MaxPluginBytes  = 32 << 20  // of a plugin's file,
	MaxProgramBytes = 256 << 20 // if it is an executable
	MaxEntries      = 256       // of a worker's config, and of its secrets
	MaxConfigBytes  = 64 << 10  // of one value of a worker's config
	MaxSecretBytes  = 64 << 10  // of one secret
	maxFaults       = 100       // that are listed; the others are counted
	maxAllowedHosts = 100
)

// Manifest is what a host is to run. It does not change after it was read.
type Manifest struct {
	// Dir is the folder that relative paths start at, absolute.
	Dir  string
	Host Host
	// Workers are sorted by name; there is at least one.
	Workers []Worker
	// Schedules are sorted by name.
	Schedules []Schedule
	Fibers    Fibers
	// FiberList is what starts with the host, sorted by id.
	FiberList []Fiber

	WorkflowSettings WorkflowSettings
	// Workflows are sorted by name. They are without faults, also together.
	Workflows []jobhost.Workflow
	// WorkflowFiles are the files, absolute, that parts of them were read from; what is
	// not there stands in the manifest.
	WorkflowFiles map[WorkflowPart]string

	Payload Payload
	Cluster Cluster
	// Webhook is nil when there is no such section.
	Webhook *Webhook
	// Warnings are what is allowed but probably not meant, sorted by position.
	Warnings Faults

	// Unpinned says that the digests of plugins that have a build don't count.
	Unpinned bool
}

// Host is the section [host].
type Host struct {
	// Listen is the address of the HTTP API, "host:port"; port 0 = any free one.
	Listen string
	// BehindProxy says that a proxy in front does TLS, so that Listen may be other than loopback.
	BehindProxy bool
	// OpenReads lets this machine read without the token; not with BehindProxy.
	OpenReads bool
	// OpenMetrics serves the metrics without the token.
	OpenMetrics bool
	// AllowedHosts are names to accept in the Host header besides those of
	// Listen, in lower case, without port.
	AllowedHosts []string
	Store        Store
	// States is where the states of tasks are kept.
	States     States
	Durability Durability
	// Data is the folder, absolute, for what is not in the store: the compile cache, the token.
	Data string
	// TokenFile is where the token of the API is kept, absolute.
	TokenFile string
	// MaxRunning bounds the running tasks of all workers together; 0 = only the pools do.
	MaxRunning int
	// MaxMemory bounds the linear memory of all sandboxes that run at one time,
	// in bytes; 0 = three quarters of what the machine has.
	MaxMemory int64
	// MinFree is how many bytes the disk of the store must have free for new jobs to be taken; 0 = any number.
	MinFree int64
	// MaxPayload is in bytes.
	MaxPayload int
	// ShutdownTimeout is how long running tasks may go on after the signal; 0 = not at all.
	ShutdownTimeout time.Duration
	// Trust says where workers run that don't say that themselves.
	Trust Trust
	// CancelGrace is how long a cancelled attempt may go on; 0 = not at all.
	CancelGrace time.Duration
	// Aging is how long a task waits to rise by one level of priority; 0 = off.
	Aging     time.Duration
	LogLevel  slog.Level
	LogFormat string // "text" or "json"
}

// Store says where jobs are kept.
type Store struct {
	// Driver is "sqlite", "mem" or [Postgres].
	Driver string
	// Dir is the folder of the database, absolute; empty for all but "sqlite".
	Dir string
	// URL is that of the database, without a password, of [Postgres].
	URL string
}

// States says where the states of tasks are kept; the zero value = in the store.
type States struct {
	// Project is that of Google Firestore, and Database its database there, empty =
	// the default one. Without a project they are in the store, beside the jobs.
	Project, Database string
}

// Durability says when a write is acknowledged.
type Durability string

// The durabilities.
const (
	Strict  Durability = "strict"  // when it survives power loss
	Relaxed Durability = "relaxed" // when the operating system has it
)

// Trust says whose faults the process of the host may meet.
type Trust string

// The kinds of trust.
const (
	TrustAll  Trust = "all"  // workers run in it
	TrustNone Trust = "none" // they run in processes of their own
)

// sandbox is where workers run that say nothing else.
func (t Trust) sandbox() runtime.Placement {
	if t == TrustNone {
		return runtime.SandboxProcess
	}
	return runtime.SandboxInline
}

// Worker is a section [worker.NAME]: the settings that a host runs by, and what stands beside
// them or in their place. Read the plugin, whose file is Path, with [Manifest.ReadPlugin].
type Worker struct {
	config.Worker
	Description string
	// SHA256 is the digest that the file must have, in lower-case hex; empty = any.
	SHA256 string
	// Build is the command line that makes the plugin, for dev; empty = none.
	Build string
	// Secrets and HTTP say where secrets come from, which the settings can't.
	Secrets map[string]Secret
	HTTP    *HTTP
}

// defaultHost returns the settings of a manifest that says nothing; [Host.derive] does the rest.
func defaultHost(dir string) Host {
	return Host{
		Listen:          "127.0.0.1:7070",
		Store:           Store{Driver: "sqlite", Dir: filepath.Join(dir, "data")},
		Durability:      Strict,
		OpenMetrics:     true,
		MaxPayload:      1 << 20,
		MinFree:         256 << 20,
		ShutdownTimeout: 30 * time.Second,
		CancelGrace:     5 * time.Second,
		Aging:           time.Minute,
		Trust:           TrustAll,
		LogLevel:        slog.LevelInfo,
		LogFormat:       "text",
	}
}

// derive fills in the defaults that depend on other settings.
func (h *Host) derive(dir string) {
	if h.Data == "" {
		h.Data = h.Store.Dir
	}
	if h.Data == "" {
		h.Data = filepath.Join(dir, "data")
	}
	if h.TokenFile == "" {
		h.TokenFile = filepath.Join(h.Data, "token")
	}
}

func defaultWorker(name string, cpus int) Worker {
	retention := jobhost.DefaultRetention()
	return Worker{
		Worker: config.Worker{
			Name:          name,
			ABI:           runtime.ABIAuto,
			Isolation:     runtime.IsolateJob,
			Processes:     1,
			Env:           map[string]string{},
			PoolSize:      cpus,
			QueueCapacity: 1_000_000,
			Limits:        runtime.DefaultLimits(),
			Retry:         jobhost.DefaultRetry(),
			Retention:     &retention,
			Config:        map[string]string{},
			KVQuota:       config.DefaultKVQuota,
		},
		Secrets: map[string]Secret{},
	}
}

// cpus is how many goroutines can run at once; GOMAXPROCS knows of cgroups.
func cpus() int { return goruntime.GOMAXPROCS(0) }
