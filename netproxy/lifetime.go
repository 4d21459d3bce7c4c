package netproxy

import (
	"context"
	"sync"
	"time"
)

// lifetime is the context of one request. net/http derives a context from it for
// each attempt; [context.WithCancelCause] would keep that in a map, and allocate
// its channel on first use. A lifetime costs a third of it.
type lifetime struct {
	values context.Context // for Value
	done   chan struct{}

	mu     sync.Mutex  // protects the following
	forget func() bool // ends the watch of the parent context; nil = the parent never ends
	cause  error
	first  *func()              // called at the end
	after  map[*func()]struct{} // further calls at the end; rarely needed
}

// begin makes l end when ctx does.
func (l *lifetime) begin(ctx, values context.Context) {
	l.values, l.done = values, make(chan struct{})
	if ctx.Done() != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forget = context.AfterFunc(ctx, func() { l.end(context.Cause(ctx)) })
	}
}

// end ends l for a reason; only the first call counts.
func (l *lifetime) end(cause error) {
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return
	}
	l.cause = cause
	first, after, forget := l.first, l.after, l.forget
	l.first, l.after = nil, nil
	l.mu.Unlock()
	close(l.done)
	if forget != nil {
		forget()
	}
	if first != nil {
		(*first)()
	}
	for f := range after {
		(*f)()
	}
}

// why returns the reason of its end; nil = it has not ended.
func (l *lifetime) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Done implements [context.Context].
func (l *lifetime) Done() <-chan struct{} { return l.done }

// Err implements [context.Context].
func (l *lifetime) Err() error {
	if l.why() != nil {
		return context.Canceled
	}
	return nil
}

// Deadline implements [context.Context]: the request's timeout is a reason to end
// like others.
func (*lifetime) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements [context.Context].
func (l *lifetime) Value(key any) any { return l.values.Value(key) }

// AfterFunc is used by package context for contexts that aren't its own, so that
// contexts derived from them need no goroutine. f must not block.
func (l *lifetime) AfterFunc(f func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := &f
	switch {
	case l.cause != nil:
		go f() // as in package context; the caller holds locks
		return func() bool { return false }
	case l.first == nil:
		l.first = one
	default:
		if l.after == nil {
			l.after = make(map[*func()]struct{})
		}
		l.after[one] = struct{}{}
	}
	return func() bool { return l.drop(one) }
}

// drop removes a call that was registered; false = too late.
func (l *lifetime) drop(f *func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == f {
		l.first = nil
		return true
	}
	_, there := l.after[f]
	delete(l.after, f)
	return there
}
