package api

import (
	"net/netip"
	"sync"
	"time"
)

const (
	freeFailures = 10               // wrong tokens that cost nothing but the answer
	maxBlock     = time.Minute      // longest answer "not now"
	forgetAfter  = 10 * time.Minute // without a wrong token
	maxSources   = 1024             // remembered at once
)

// backoff counts wrong tokens by source. A source with many of them is
// answered "not now", for twice as long each time. The right token is let in
// meanwhile: guessing 128 bits is hopeless at any rate, and a lock that
// everybody on this machine can close, since all of them are one source,
// would be an attack by itself. When the memory is full the source that was
// quiet for longest is forgotten.
type backoff struct {
	mu      sync.Mutex // protects sources
	sources map[netip.Prefix]*offender
}

type offender struct {
	failures    int
	last, until time.Time
}

func newBackoff() *backoff { return &backoff{sources: map[netip.Prefix]*offender{}} }

// failed counts a wrong token. It returns how long the source must stay
// away, 0 = not, and whether the operator should hear of it: once when a
// source begins and once each time it is blocked.
func (b *backoff) failed(remote string) (blocked time.Duration, tell bool) {
	key, now := sourceOf(remote), time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.sources[key]
	if o == nil || now.Sub(o.last) > forgetAfter {
		b.makeRoomLocked(key)
		o = &offender{}
		b.sources[key] = o
	}
	o.last = now
	if left := o.until.Sub(now); left > 0 {
		return left, false
	}
	o.failures++
	over := o.failures - freeFailures
	if over <= 0 {
		return 0, o.failures == 1
	}
	blocked = min(maxBlock, time.Second<<min(over-1, 10))
	o.until = now.Add(blocked)
	return blocked, true
}

func (b *backoff) makeRoomLocked(key netip.Prefix) {
	if _, there := b.sources[key]; there || len(b.sources) < maxSources {
		return
	}
	var quietest netip.Prefix
	var since time.Time
	for k, o := range b.sources {
		if since.IsZero() || o.last.Before(since) {
			quietest, since = k, o.last
		}
	}
	delete(b.sources, quietest)
}

// sourceOf returns where a request comes from: an IPv4 address, or the /64
// network of an IPv6 address, of which anybody has as many as they like.
func sourceOf(remote string) netip.Prefix {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := peer.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(addr, bits).Masked()
}
