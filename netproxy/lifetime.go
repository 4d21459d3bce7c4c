package netproxy

import (
	"context"
	"sync"
	"time"
)

// lifetime is the context of one request. net/http derives a context from it for
// each attempt; [context.WithCancelCause] would keep that in a map, and make its
// channel when it is first asked for. This one costs a third of it.
type lifetime struct {
	values context.Context // what Value asks
	done   chan struct{}

	mu     sync.Mutex  // protects the following
	forget func() bool // ends the watch of whoever asked; nil = that one never ends
	cause  error
	first  *func()              // what is to be done at the end
	after  map[*func()]struct{} // and what else; rarely needed
}

// begin makes it end with ctx.
func (l *lifetime) begin(ctx, values context.Context) {
	l.values, l.done = values, make(chan struct{})
	if ctx.Done() != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forget = context.AfterFunc(ctx, func() { l.end(context.Cause(ctx)) })
	}
}

// end ends it, for a reason; only the first counts.
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

// why returns the reason of its end; nil = it goes on.
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

// Deadline implements [context.Context]: the end of the request's time is a reason
// like others.
func (*lifetime) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements [context.Context].
func (l *lifetime) Value(key any) any { return l.values.Value(key) }

// AfterFunc is what package context asks of contexts that aren't its own, so that
// those derived from them need no goroutine. f must not block.
func (l *lifetime) AfterFunc(f func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := &f
	switch {
	case l.cause != nil:
		go f() // as package context does it; the caller holds locks
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

// drop forgets something that was to be done at the end; false = it was too late.
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
