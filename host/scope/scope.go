package scope

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost/host/op"
)

// Scope is a supervision domain. All its methods are safe for concurrent use.
//
// A scope is complete only after it, or its parent, has been joined: join every
// root that you create, and every child that you don't want to leave to its
// parent's join.
type Scope struct {
	id     uint64
	name   string
	parent *Scope // nil for a root
	tree   *tree
	forget bool // see Forget

	ctx       scopeContext
	cancelCtx context.CancelCauseFunc
	done      op.Signal // the outcome is known

	mu         sync.Mutex // protects the fields below
	closed     bool
	closedWhy  error
	cancelled  *Cancelled // the cause, also if it is a failure; nil = not cancelled
	primary    error      // the first failure
	extra      []error    // failures after it, and of finalisers
	running    int        // own goroutines
	idle       chan struct{}
	faulted    bool // cancelled by its own failure
	joining    bool
	sealed     bool      // only a finaliser can change the outcome any more
	ended      bool      // nothing can change the outcome any more
	finalisers *attached // the last one added
	watchers   *watchers // nil = none

	first, last *Scope   // children that haven't ended, in order of attachment
	kept        []Report // of children that have ended
	omitted     Omitted  // children that have ended without a report here

	prev, next *Scope // siblings; protected by the parent's mu
}

// tree is shared by all scopes under one root.
type tree struct {
	base   context.Context // the values given to the root; never ends
	ids    atomic.Uint64
	unhook func() bool // stops following the root's context
}

// New returns the root of a new tree. Its context, and those of all scopes below
// it, have the values of ctx but no deadline. When ctx ends, the root is
// cancelled with ctx's cause as reason.
//
// A root must be joined. The join may be waited for under another context, since
// this one will often have ended by then.
func New(ctx context.Context, name string) *Scope {
	t := &tree{base: context.WithoutCancel(ctx)}
	s := newScope(t, nil, name)
	s.id = t.ids.Add(1)
	follow := func() { s.Cancel(context.Cause(ctx)) }
	t.unhook = context.AfterFunc(ctx, follow)
	if ctx.Err() != nil {
		follow() // now, not soon
	}
	return s
}

func newScope(t *tree, parent *Scope, name string) *Scope {
	s := &Scope{name: name, parent: parent, tree: t}
	// Scopes cancel each other in an order of their own. If one context were
	// derived from the other's, a goroutine could see its context end before its
	// scope is marked as cancelled, and its error would look like a failure.
	s.ctx.s = s
	s.ctx.Context, s.cancelCtx = context.WithCancelCause(t.base)
	return s
}

// ChildOption changes how a child is attached.
type ChildOption func(*Scope)

// Forget makes the parent drop the child's report when the child has ended. The
// parent's report counts it under Omitted. It is for large numbers of children
// whose outcome is handled where they are joined.
func Forget() ChildOption { return func(s *Scope) { s.forget = true } }

// Child attaches a new scope below s. It fails with an [*AdmissionError] if s no
// longer admits anything.
func (s *Scope) Child(name string, opts ...ChildOption) (*Scope, error) {
	return s.attach(name, 0, opts)
}

// attach creates a child that already has the given number of goroutines.
func (s *Scope) attach(name string, running int, opts []ChildOption) (*Scope, error) {
	child := newScope(s.tree, s, name)
	child.running = running
	for _, opt := range opts {
		opt(child)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitLocked("child", name); err != nil {
		return nil, err
	}
	child.id = s.tree.ids.Add(1)
	child.prev = s.last
	if s.last == nil {
		s.first = child
	} else {
		s.last.next = child
	}
	s.last = child
	return child, nil
}

// childEnded removes a child from the tree and records its outcome.
func (s *Scope) childEnded(child *Scope, r Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if child.prev == nil {
		s.first = child.next
	} else {
		child.prev.next = child.next
	}
	if child.next == nil {
		s.last = child.prev
	} else {
		child.next.prev = child.prev
	}
	child.prev, child.next = nil, nil
	if child.forget {
		s.omitted.count(r.Status)
		return
	}
	s.keepLocked(r)
}

// ID is the scope's number, unique in its tree. Among siblings it rises in the
// order of attachment.
func (s *Scope) ID() uint64 { return s.id }

// Name is the name given to the scope. It need not be unique.
func (s *Scope) Name() string { return s.name }

// Path is the names from the root down to s, separated by slashes.
func (s *Scope) Path() string {
	if s.parent == nil {
		return s.name
	}
	return s.parent.Path() + "/" + s.name
}

// Parent is the scope that s was attached to, or nil for a root.
func (s *Scope) Parent() *Scope { return s.parent }
