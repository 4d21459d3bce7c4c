package scope

import "context"

// scopeContext is the context of a scope's goroutines. Contexts derived from it
// find the standard one inside, so they need no goroutine.
type scopeContext struct {
	context.Context
	s *Scope
}

type scopeKey struct{}

// Value returns the scope for the package's own key.
func (c *scopeContext) Value(key any) any {
	if key == (scopeKey{}) {
		return c.s
	}
	return c.Context.Value(key)
}

// Context returns the scope's context. It carries the scope, see [From], and ends
// when the scope is cancelled or fails, and also after its join. Its cause is a
// [*Cancelled] that wraps the reason.
func (s *Scope) Context() context.Context { return &s.ctx }

// From returns the scope that ctx belongs to, or nil if there is none.
func From(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}
