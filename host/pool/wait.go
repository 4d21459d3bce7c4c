package pool

import (
	"context"
	"time"

	"github.com/jobhost/jobhost/host/deferred"
	"github.com/jobhost/jobhost/host/pending"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

var (
	_ hostcall.Ops  = (*slot)(nil)
	_ hostcall.HTTP = (*slot)(nil)
)

// After implements [hostcall.Ops].
func (s *slot) After(_ *hostcall.Attempt, d time.Duration) hostcall.Pending {
	return pending.After(d)
}

// Await implements [hostcall.Ops].
func (s *slot) Await(_ *hostcall.Attempt, job string) (hostcall.Ending, error) {
	return pending.Await(s.pool.scope, s.pool.cfg.Jobs, job)
}

// Wait implements [hostcall.Ops].
func (s *slot) Wait(ctx context.Context, list []hostcall.Pending) int { return pending.Wait(ctx, list) }

// Send implements [hostcall.HTTP].
func (s *slot) Send(_ *hostcall.Attempt, r *hostcall.HTTPRequest) (hostcall.Exchange, error) {
	return pending.Send(s.version.HTTP, r)
}

// Defer implements [hostcall.HTTP].
func (s *slot) Defer(at *hostcall.Attempt, r *hostcall.HTTPRequest, entry string, args []byte) (string, error) {
	if s.version.HTTP == nil {
		return "", pending.ErrNoHTTP
	}
	spec, err := deferred.Spec(at, r, entry, args)
	if err != nil {
		return "", err
	}
	return s.effects(at).SubmitOwn(spec)
}
