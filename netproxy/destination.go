package netproxy

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/breaker"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/internal/rate"
)

// maxDestinations is the number of origins whose breaker and rate a client
// remembers. Beyond it, the least recently used origin starts over.
const maxDestinations = 1000

// destinations enforces the breaker and the rate of each origin. nil = no such
// limits.
type destinations struct {
	cfg DestinationConfig

	mu    sync.Mutex // protects the following, and the rates in it
	known *simplelru.LRU[string, *destination]
}

type destination struct {
	breaker *breaker.Breaker // nil = none
	rate    rate.Rate
}

func newDestinations(cfg DestinationConfig) *destinations {
	if cfg == (DestinationConfig{}) {
		return nil
	}
	known, _ := simplelru.NewLRU[string, *destination](maxDestinations, nil) // fails for sizes below 1
	return &destinations{cfg: cfg, known: known}
}

// ofLocked returns the destination of an origin.
func (d *destinations) ofLocked(origin string, now time.Time) *destination {
	if known, ok := d.known.Get(origin); ok {
		return known
	}
	one := &destination{}
	if policy := d.cfg.Breaker; policy != (jobhost.BreakerPolicy{}) {
		policy.Key, policy.WhenOpen = origin, jobhost.FailWhenOpen
		one.breaker = breaker.New(policy)
	}
	one.rate.Set(d.cfg.Rate, d.cfg.Burst, now)
	d.known.Add(origin, one)
	return one
}

// enter lets a request through to its origin when its turn comes, for which it
// may wait until the deadline.
func (d *destinations) enter(ctx context.Context, u httpurl.URL, deadline time.Time) (passage, error) {
	if d == nil {
		return passage{}, nil
	}
	one, at, f := d.reserve(u.Origin(), deadline)
	if f != nil {
		return passage{}, f
	}
	if wait := time.Until(at); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return passage{}, context.Cause(ctx)
		}
	}
	if one.breaker == nil {
		return passage{}, nil
	}
	pass, ok := one.breaker.Pass(time.Now())
	if !ok || pass.Refused {
		return passage{}, errBreakerOpen
	}
	return passage{pass}, nil
}

// reserve returns when it is a request's turn.
func (d *destinations) reserve(origin string, deadline time.Time) (*destination, time.Time, *fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	one := d.ofLocked(origin, now)
	if one.breaker != nil {
		if s := one.breaker.Status(now); s.State == jobhost.BreakerOpen {
			return nil, now, errBreakerOpen // so that it takes no turn from later requests
		}
	}
	at := one.rate.Next()
	if at.Before(now) {
		at = now
	}
	if !at.Before(deadline) {
		return nil, at, errRate
	}
	one.rate.Take(at)
	return one, at, nil
}

// passage is the permission to make an attempt, which obliges its holder to report the outcome.
type passage struct{ breaker.Passage }

// end judges the destination by the outcome of an attempt. Failures that the
// author of the request caused, and cancelled requests, say nothing about it.
func (p passage) end(resp *http.Response, err, over error) {
	p.End(verdict(resp, err, over), time.Now())
}

func verdict(resp *http.Response, err, over error) breaker.Verdict {
	if err == nil {
		if resp.StatusCode >= http.StatusInternalServerError {
			return breaker.WentWrong
		}
		return breaker.WentWell
	}
	switch faultOf(err, over).code {
	case CodeTimeout, CodeConnection, CodeTLS, CodeDNS, CodeTooLarge, CodeProtocol:
		return breaker.WentWrong
	}
	return breaker.None
}
