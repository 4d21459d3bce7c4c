package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/config"
	"github.com/jobhost/jobhost/host/crash"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/schedule"
	"github.com/jobhost/jobhost/host/webhook"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/payload"
)

// Config says what a host is made of. The caller opens the store and the
// engine and closes them after the host has stopped.
type Config struct {
	// Store keeps the jobs.
	Store record.Store
	// Engine loads the plugins. Tasks that were under way when a host died are only run on
	// plugins that it loads in a process of their own: see [runtime.Source.Sandbox].
	Engine runtime.Engine
	// Workers are what the host runs; at least one, each name once.
	Workers []Worker
	// Schedules submit jobs at their times; each name once, and their workers
	// among Workers. They need a store that is a [schedule.Store] too.
	Schedules []schedule.Schedule
	// Fibers bounds the fibers, and says which start with the host.
	Fibers Fibers
	// Webhook says which URLs may be notified of the ends of jobs, which one of dead
	// letters, and how; nil = none.
	Webhook *webhook.Settings
	// Workflows says which workflows there are, and how they are treated.
	Workflows Workflows
	// Clock is what schedules go by; nil = the system's, or the store's if hosts share it.
	Clock schedule.Clock
	// Reread says what the host is to run from now on, for [jobhost.Reloader]; nil =
	// only [Host.SetWorkers] changes what it runs.
	Reread func(context.Context) (Update, error)
	// MaxRunning bounds the running tasks of all workers together; 0 = only the pools do.
	MaxRunning int
	// MaxMemory bounds the memory of all sandboxes that run a task, in bytes,
	// each counted with the limit of its worker; 0 = three quarters of the
	// machine's, negative = no bound. Tasks over it wait.
	MaxMemory int64
	// States keep what tasks report; nil = tasks can't report. The caller closes them after
	// the host has stopped. If they are in the database of Store, the states of a job are
	// removed together with it, and otherwise soon after.
	States state.Store
	// MaxPayload bounds a job's payload, in bytes; 0 = 1 MiB. What was uploaded
	// before may be larger: see Payloads.
	MaxPayload int
	// Payloads keep what is too large for the store; nil = everything is in the
	// store, and nothing can be uploaded. The caller closes them after the host
	// has stopped.
	Payloads *payload.Set
	// PayloadThreshold is the largest payload or result that is in the store, in
	// bytes; 0 = 64 KiB.
	PayloadThreshold int
	// MaxUpload bounds an upload, in bytes; 0 = 1 GiB.
	MaxUpload int64
	// YoungFor is how old an object of Payloads is at most that its store may only not
	// show yet when it says that there is none; 0 = 5 min, less than 0 = none is.
	YoungFor time.Duration
	// KeepBytes bounds the results in memory that wait for a store of Payloads that is
	// away, in bytes; 0 = 64 MiB.
	KeepBytes int64
	// OrphanAge is the age at which an object of Payloads without a reference is removed;
	// 0 = two days.
	OrphanAge time.Duration
	// Place is where the database of Store is, such that no two hosts that live have
	// the same; empty = it is in memory, so that there is no copy of it.
	Place string
	// MinFree is how many bytes the disk of the store must have free for new
	// jobs to be taken; 0 = that is not looked at.
	MinFree int64
	// Journal notes which attempts are under way, so that those count which were when the host
	// before this one died; nil = they don't, and run again as if they had never begun. The
	// caller closes it after the host has stopped.
	Journal *journal.Journal
	// Crash tells how the host before this one has ended; nil = that is not known.
	Crash *crash.Recorder
	// FreeSpace tells how many bytes are free there; nil = that is not looked at.
	FreeSpace func() (int64, error)
	// Aging is how long a task waits to rise by one priority; 0 = 60 s, negative = never.
	Aging time.Duration
	// ShutdownTimeout is how long running tasks may go on after Run's context
	// ended; then they are stopped and go back to the queue. 0 = not at all.
	ShutdownTimeout time.Duration
	// HandOver tells, when the host is to stop, whether another one goes on with its jobs: then running tasks go back to
	// the queue at once. nil = none does.
	HandOver func() bool
	// CancelGrace is how long an attempt may go on after its job was cancelled; 0 = not at all.
	CancelGrace time.Duration
	// OnEvent is called with every event, in order for each job, and must not
	// block; nil = it isn't.
	OnEvent func(jobhost.Event)
	// Listens tells where the host's own API listens, which no guest may reach; nil =
	// it has none.
	Listens func() []netip.AddrPort
	// Metrics are fed by the host; nil = a registry of its own.
	Metrics *metrics.Metrics
	// Logger; nil = nothing is logged.
	Logger *slog.Logger
}

// Worker is a plugin with its pool, its limits and its grants.
type Worker = config.Worker

// HTTP is where a worker may go, and how much it may send.
type HTTP = config.HTTP

// defaultMaxPayload is the bound of payloads of hosts that say nothing else.
const defaultMaxPayload = 1 << 20

// DefaultPayloadThreshold is the threshold of hosts that say nothing else.
const DefaultPayloadThreshold = 64 << 10

// Check reports everything that is wrong with the configuration.
func (c *Config) Check() error {
	var errs []error
	if c.Store == nil {
		errs = append(errs, errors.New("no store"))
	}
	if c.Engine == nil {
		errs = append(errs, errors.New("no engine"))
	}
	if len(c.Workers) == 0 {
		errs = append(errs, errors.New("no workers"))
	}
	errs = append(errs, c.sandboxes(withOwn(c.Workers, nil)).check())
	seen := map[string]bool{}
	for i := range c.Workers {
		w := &c.Workers[i]
		if seen[w.Name] {
			errs = append(errs, fmt.Errorf("worker %s is there twice", w.Name))
		}
		seen[w.Name] = true
		if err := w.Check(); err != nil {
			errs = append(errs, fmt.Errorf("worker %s: %w", w.Name, err))
		}
	}
	errs = append(errs, c.checkOwn()...)
	errs = append(errs, c.Workflows.Check())
	return errors.Join(append(errs, c.checkSchedules(seen), c.checkFibers(seen))...)
}

func (c *Config) setDefaults() {
	if c.Metrics == nil {
		c.Metrics = metrics.New()
	}
	if c.OnEvent == nil {
		c.OnEvent = func(jobhost.Event) {}
	}
	c.PayloadThreshold = cmp.Or(c.PayloadThreshold, DefaultPayloadThreshold)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.MaxPayload = cmp.Or(c.MaxPayload, defaultMaxPayload)
	c.Workflows.setDefaults()
}
