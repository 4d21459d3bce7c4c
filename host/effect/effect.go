// Package effect collects what an attempt asks the host to change: keys and
// values of its worker, and further jobs. The attempt sees its own changes
// immediately. They are handed over with its settlement, to be applied in the
// same batch, and are dropped if it fails.
package effect

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Limits of one attempt.
const (
	MaxChanges = 1_000   // keys it may change
	MaxBytes   = 8 << 20 // of keys, values and payloads that wait for its success
)

// Limit identifies a limit that an attempt has hit.
type Limit int

// The limits.
const (
	LimitChanges  Limit = iota // [MaxChanges] or [MaxBytes]
	LimitQuota                 // the total cost of the worker's keys
	LimitChildren              // jobs of one parent, or generations of parents
	LimitQueue                 // the queue of a child's worker is full
)

// Config configures the effects of an attempt.
type Config struct {
	Queue *queue.Queue
	Lease *queue.Lease
	// Quota bounds the total cost of the worker's keys, as computed by
	// [record.KVCost]; 0 = no bound.
	Quota int64
	// Deadline bounds waiting for the store; zero = no deadline.
	Deadline time.Time
	// Hit is called for each limit that was hit; nil = no call.
	Hit func(Limit)
}

// Attempt collects the effects of one attempt. It is used by one goroutine.
// Errors caused by the guest are of type [*jobhost.Error].
type Attempt struct {
	cfg   Config
	keys  map[string]*key
	clean bytesAndKeys // keys that were only read
	dirty bytesAndKeys // keys that are changed; its bytes include the payloads of jobs

	size  int64 // cost of the worker's keys in the store; -1 = not known yet
	grown int64 // cost of the changed keys, as if all were new

	parent   *record.Parent // of child jobs; nil until there are any
	room     int            // how many more children are allowed
	numbers  int            // submits asked for so far
	children []*queue.Child
	digests  map[string][16]byte // of child jobs, by id
}

type bytesAndKeys struct{ bytes, keys int }

// New returns the empty effects of an attempt.
func New(cfg Config) *Attempt {
	if cfg.Hit == nil {
		cfg.Hit = func(Limit) {}
	}
	return &Attempt{cfg: cfg, keys: map[string]*key{}, size: -1, digests: map[string][16]byte{}}
}

// Take returns the collected effects, nil = none, and resets the attempt.
func (a *Attempt) Take() *queue.Asked {
	asked := &queue.Asked{Quota: a.cfg.Quota, Children: a.children}
	for name, k := range a.keys {
		if k.change != unchanged {
			asked.KV = append(asked.KV, k.asked(name))
		}
	}
	*a = *New(a.cfg)
	if len(asked.KV) == 0 && len(asked.Children) == 0 {
		return nil
	}
	return asked
}

// context bounds a query to the store.
func (a *Attempt) context() (context.Context, context.CancelFunc) {
	if a.cfg.Deadline.IsZero() {
		return context.Background(), func() {}
	}
	return context.WithDeadline(context.Background(), a.cfg.Deadline)
}

// over reports a limit that was hit and returns the error for it.
func (a *Attempt) over(l Limit, format string, args ...any) error {
	a.cfg.Hit(l)
	return &jobhost.Error{Code: jobhost.CodeExhausted, Message: fmt.Sprintf(format, args...)}
}

// fits checks that the changes stay within the limits with this much added.
func (a *Attempt) fits(keys, bytes int) error {
	switch {
	case a.dirty.keys+keys > MaxChanges:
		return a.over(LimitChanges, "an attempt may change %d keys", MaxChanges)
	case a.dirty.bytes+bytes > MaxBytes:
		return a.over(LimitChanges, "what an attempt changes may have %d bytes", MaxBytes)
	}
	return nil
}
