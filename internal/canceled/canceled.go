// Package canceled has a context that is done, for calls that wait but are only
// to look.
package canceled

import "context"

var done = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Context returns a context that is done. It is always the same one.
func Context() context.Context { return done }
