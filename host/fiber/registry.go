// Package fiber runs fibers: long-running bodies, each with a name, an input queue and an
// output hub. It knows nothing of guests; the host passes in functions that run them.
//
//	Start ─► permit ─► body ⇄ input, Emit ─► exit ─► restart, or the end:
//	on_terminate ─► input closed ─► hub closed ─► status and history ─► registry ─► permit
//
// A fiber is one goroutine of the registry's scope. Each run of its body has a child scope
// of its own, so that it can be stopped alone and is stopped with the host. Queue, hub and
// permit belong to the fiber and survive restarts.
package fiber

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/scope"
)

// Config says how many fibers there may be and how much each may hold.
type Config struct {
	// Scope contains the fibers: its join waits for them, its cancellation stops them.
	Scope *scope.Scope
	// Max is how many fibers may have a permit at a time, up to [jobhost.MaxFibers]; 0 =
	// 10. Waiting ones count towards that constant too.
	Max int
	// FailWhenFull makes Start fail with exhausted if no permit is free, rather than wait
	// for one.
	FailWhenFull bool
	// InputMessages and InputBytes bound the input queue of a fiber; 0 = 64 and 4 MiB. An
	// empty queue accepts any message.
	InputMessages, InputBytes int
	// Replay is how many outputs of a fiber are remembered for subscriptions to the past,
	// ReplayBytes their total size; 0 = 64 and 4 MiB, and a Replay below 0 = none.
	Replay, ReplayBytes int
	// Buffer and BufferBytes bound the unread outputs of a subscription, before it ends
	// with [hub.ErrSlow]; 0 = 256 and 4 MiB. All fibers together have 64 MiB.
	Buffer, BufferBytes int
	// History is how many ended fibers can still be read, HistoryBytes the total size of
	// their results and failures; 0 = 1000 and 16 MiB. The oldest is dropped first; the
	// newest stays whatever its size.
	History, HistoryBytes int
	// Grace is how long the body of an interrupted fiber may continue before its context
	// ends; 0 = not at all.
	Grace time.Duration
	// Observe is notified of events.
	Observe Observe
	Logger  *slog.Logger // nil = no log
}

// DefaultMax is the default of Max.
const DefaultMax = 10

// Observe counts events, for metrics. Its functions may be called under locks, so they must
// be quick and not use the registry; nil ones are skipped.
type Observe struct {
	Started   func(worker string)
	Ended     func(worker string, status jobhost.FiberStatus)
	Restarted func(worker string)
	// Refused is called each time a limit is hit.
	Refused func(Limit)
}

// Limit is a limit that was hit.
type Limit int

// The limits.
const (
	LimitFibers   Limit = iota // Max, if Start doesn't wait; or [jobhost.MaxFibers]
	LimitInput                 // the input queue of a fiber is full, and the sender doesn't wait
	LimitReader                // a subscription was not read fast enough
	LimitRestarts              // a fiber failed permanently
)

// Body runs the guest of a fiber until it ends. A nil failure means that it completed with
// the result, which then belongs to the registry. It is called again at each restart.
//
// It should end soon after ctx, which is at the end of the grace period after an interrupt,
// or when the host stops. ctx belongs to the scope of this run; what the body starts in it
// is waited for. A panic is a failure with code internal.
type Body func(ctx context.Context, f *Fiber) (result []byte, failure *jobhost.Failure)

// OnTerminate is called once for each fiber that ends, with the description that will be
// remembered, before its end becomes visible. Its errors and panics are logged.
type OnTerminate func(end jobhost.Fiber) error

// Registry has the fibers by id. It is safe for concurrent use.
type Registry struct {
	cfg    Config
	unread *hub.Budget // of subscriptions to all fibers

	mu      sync.RWMutex      // protects the fields below; taken before the locks of fibers
	live    map[string]*Fiber // all that have not ended, including those waiting for a permit
	waiting list.List         // of *Fiber: the latter, first come, first served
	free    int               // permits
	stopped bool
	past    history
}

// New returns an empty registry, which stops with its scope.
func New(cfg Config) (*Registry, error) {
	if cfg.Scope == nil {
		return nil, errors.New("new fiber registry: it needs a scope")
	}
	cfg.Max = min(cmp.Or(max(cfg.Max, 0), DefaultMax), jobhost.MaxFibers)
	cfg.InputMessages = cmp.Or(max(cfg.InputMessages, 0), 64)
	cfg.InputBytes = cmp.Or(max(cfg.InputBytes, 0), 4<<20)
	cfg.Replay = cmp.Or(cfg.Replay, 64)
	cfg.ReplayBytes = cmp.Or(max(cfg.ReplayBytes, 0), 4<<20)
	cfg.Buffer = cmp.Or(max(cfg.Buffer, 0), 256)
	cfg.BufferBytes = cmp.Or(max(cfg.BufferBytes, 0), 4<<20)
	cfg.History = cmp.Or(max(cfg.History, 0), 1000)
	cfg.HistoryBytes = cmp.Or(max(cfg.HistoryBytes, 0), 16<<20)
	cfg.Observe = cfg.Observe.whole()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{cfg: cfg, unread: hub.NewBudget(64 << 20), live: map[string]*Fiber{}, free: cfg.Max}
	r.past = history{most: cfg.History, mostBytes: cfg.HistoryBytes, byID: map[string]*list.Element{}}
	context.AfterFunc(cfg.Scope.Context(), r.Stop)
	return r, nil
}

// whole returns o with no-op functions in place of missing ones.
func (o Observe) whole() Observe {
	if o.Started == nil {
		o.Started = func(string) {}
	}
	if o.Ended == nil {
		o.Ended = func(string, jobhost.FiberStatus) {}
	}
	if o.Restarted == nil {
		o.Restarted = func(string) {}
	}
	if o.Refused == nil {
		o.Refused = func(Limit) {}
	}
	return o
}

// Stats are numbers about a registry.
type Stats struct {
	Live    int // fibers with a permit
	Waiting int // waiting for one
	Ended   int // still readable
}

// Stats returns the current numbers.
func (r *Registry) Stats() Stats {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Stats{Live: r.cfg.Max - r.free, Waiting: r.waiting.Len(), Ended: r.past.ended.Len()}
}

// stopping reports whether the host is stopping. A scope is marked before the contexts
// below it end, so a stopped run can rely on it.
func (r *Registry) stopping() bool { return r.cfg.Scope.Status() != scope.StatusRunning }
