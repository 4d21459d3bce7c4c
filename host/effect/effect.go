// Package effect gathers what an attempt asks the host to change: keys and
// values of its worker, and further jobs. The attempt sees its own changes at
// once. They are handed over with its settlement, to be applied in the same
// batch, and come to nothing if it fails.
package effect

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Bounds of one attempt.
const (
	MaxChanges = 1_000   // keys that it changes
	MaxBytes   = 8 << 20 // of keys, values and payloads that wait for its success
)

// Limit is a limit that an attempt has hit.
type Limit int

// The limits.
const (
	LimitChanges  Limit = iota // [MaxChanges] or [MaxBytes]
	LimitQuota                 // what the keys of the worker cost together
	LimitChildren              // jobs of one parent, or generations of parents
	LimitQueue                 // the queue of a child's worker is full
)

// Config says what an attempt may do.
type Config struct {
	Queue *queue.Queue
	Lease *queue.Lease
	// Quota bounds what the keys of the worker cost together, as
	// [record.KVCost] counts; 0 = no bound.
	Quota int64
	// Deadline is when waiting for the store ends; zero = never.
	Deadline time.Time
	// Hit is told of each limit that was hit; nil = nobody.
	Hit func(Limit)
}

// Attempt gathers the effects of one attempt. One goroutine uses it. Its errors
// are of type [*jobhost.Error] where a guest has caused them.
type Attempt struct {
	cfg   Config
	keys  map[string]*key
	clean bytesAndKeys // of keys that were only read
	dirty bytesAndKeys // of keys that are changed; its bytes are those of payloads too

	size  int64 // what the worker's keys cost; -1 = not known yet
	grown int64 // what the changed keys cost, as if they were all new

	parent   *record.Parent // of children; nil until there are any
	room     int            // how many children more there may be
	numbers  int            // of submits that were asked for
	children []*queue.Child
	digests  map[string][16]byte // of children, by id
}

type bytesAndKeys struct{ bytes, keys int }

// New returns the empty effects of an attempt.
func New(cfg Config) *Attempt {
	if cfg.Hit == nil {
		cfg.Hit = func(Limit) {}
	}
	return &Attempt{cfg: cfg, keys: map[string]*key{}, size: -1, digests: map[string][16]byte{}}
}

// Take returns what was asked for, nil = nothing, and begins anew.
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

// context bounds a question to the store.
func (a *Attempt) context() (context.Context, context.CancelFunc) {
	if a.cfg.Deadline.IsZero() {
		return context.Background(), func() {}
	}
	return context.WithDeadline(context.Background(), a.cfg.Deadline)
}

// over is the error for a limit that was hit.
func (a *Attempt) over(l Limit, format string, args ...any) error {
	a.cfg.Hit(l)
	return &jobhost.Error{Code: jobhost.CodeExhausted, Message: fmt.Sprintf(format, args...)}
}

// fits sees that the changes stay within bounds when so much is added.
func (a *Attempt) fits(keys, bytes int) error {
	switch {
	case a.dirty.keys+keys > MaxChanges:
		return a.over(LimitChanges, "an attempt may change %d keys", MaxChanges)
	case a.dirty.bytes+bytes > MaxBytes:
		return a.over(LimitChanges, "what an attempt changes may have %d bytes", MaxBytes)
	}
	return nil
}
