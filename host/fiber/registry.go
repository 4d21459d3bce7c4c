// Package fiber keeps fibers: long-running bodies with a name, a queue of input
// and a hub of output each. It knows nothing of guests; the host hands it
// functions that run them.
//
//	Start ─► permit ─► body ⇄ input, Emit ─► exit ─► restart, or the end:
//	on_terminate ─► input closed ─► hub closed ─► status and history ─► registry ─► permit
//
// A fiber is one goroutine of the registry's scope. Each run of its body has a
// child scope of its own, so that it can be stopped alone and is stopped with
// the host. Queue, hub and permit are the fiber's and survive restarts.
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
	// Scope is what fibers live in: its join waits for them, its cancellation
	// stops them.
	Scope *scope.Scope
	// Max is how many fibers may have a permit at one time, up to
	// [jobhost.MaxFibers]; 0 = 10. Those that wait count for that constant too.
	Max int
	// FailWhenFull makes Start answer exhausted when no permit is free, rather
	// than wait for one.
	FailWhenFull bool
	// InputMessages and InputBytes bound what waits in the queue of one fiber;
	// 0 = 64 and 4 MiB. An empty queue takes any message.
	InputMessages, InputBytes int
	// Replay is how many outputs of a fiber are remembered for subscriptions to
	// the past, ReplayBytes how large they may be together; 0 = 64 and 4 MiB,
	// and a Replay below 0 = none.
	Replay, ReplayBytes int
	// Buffer and BufferBytes bound what one subscription has unread, before it
	// ends with [hub.ErrSlow]; 0 = 256 and 4 MiB. Those of all fibers have 64 MiB together.
	Buffer, BufferBytes int
	// History is how many ended fibers can still be read, HistoryBytes how large
	// their results and failures may be together; 0 = 1000 and 16 MiB. The
	// oldest goes first; the newest stays whatever its size.
	History, HistoryBytes int
	// Grace is how long the body of an interrupted fiber may go on until its
	// context ends; 0 = not at all.
	Grace time.Duration
	// Observe is told what happens.
	Observe Observe
	Logger  *slog.Logger // nil = no log
}

// DefaultMax is the Max of configurations that say nothing else.
const DefaultMax = 10

// Observe counts, for metrics. Its functions may be called under locks and so
// must be quick and not use the registry; nil ones are left out.
type Observe struct {
	Started   func(worker string)
	Ended     func(worker string, status jobhost.FiberStatus)
	Restarted func(worker string)
	// Refused is told of each time that a limit was hit.
	Refused func(Limit)
}

// Limit is a limit that was hit.
type Limit int

// The limits.
const (
	LimitFibers   Limit = iota // Max, and whoever starts doesn't wait; or [jobhost.MaxFibers]
	LimitInput                 // the input queue of a fiber is full, and whoever submits doesn't wait
	LimitReader                // a subscription was not read fast enough
	LimitRestarts              // a fiber failed for good
)

// Body runs the guest of a fiber until it ends. A nil failure means that it has
// completed with the result, which is the registry's from then on. It is called
// again at each restart.
//
// It should end soon after ctx has: that is the end of the grace after an
// interrupt, or of the host. ctx belongs to a scope of this run; what the body
// starts in it is waited for. A panic is a failure with code internal.
type Body func(ctx context.Context, f *Fiber) (result []byte, failure *jobhost.Failure)

// OnTerminate is called once for each fiber that ends, with what it will be
// remembered as, before its end shows. Its errors and panics are logged.
type OnTerminate func(end jobhost.Fiber) error

// Registry keeps fibers, by id. All methods may be called from many goroutines.
type Registry struct {
	cfg    Config
	unread *hub.Budget // of subscriptions to all fibers

	mu      sync.RWMutex      // protects the fields below; taken before the locks of fibers
	live    map[string]*Fiber // all that have not ended, those too that wait for a permit
	waiting list.List         // of *Fiber: those, first come first served
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

// whole returns o with functions that do nothing in place of those it lacks.
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
	Waiting int // that wait for one
	Ended   int // that can still be read
}

// Stats returns the numbers of now.
func (r *Registry) Stats() Stats {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Stats{Live: r.cfg.Max - r.free, Waiting: r.waiting.Len(), Ended: r.past.ended.Len()}
}

// stopping reports whether the host has been told to stop. A scope is marked
// before the contexts below it end, so this is known to whoever was stopped.
func (r *Registry) stopping() bool { return r.cfg.Scope.Status() != scope.StatusRunning }
