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

// maxDestinations is of how many origins a client remembers how they do. Whoever
// asks more of them begins anew with the one that was asked longest ago.
const maxDestinations = 1000

// destinations keep to the breaker and the rate of each origin. nil = there are
// no such bounds.
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

// enter lets a request through to its origin, when its turn has come. It may wait
// for that until the deadline.
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

// reserve returns when the turn of a request comes.
func (d *destinations) reserve(origin string, deadline time.Time) (*destination, time.Time, *fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	one := d.ofLocked(origin, now)
	if one.breaker != nil {
		if s := one.breaker.Status(now); s.State == jobhost.BreakerOpen {
			return nil, now, errBreakerOpen // takes no turn from those that come later
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

// passage is the right, and duty, to say how an attempt went.
type passage struct{ breaker.Passage }

// end judges the destination by what an attempt got. What whoever sent the
// request is to blame for, or gave up, says nothing of it.
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
