package cluster

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

const (
	// defaultRequestWait is how long a request waits for a leader.
	defaultRequestWait = 10 * time.Second
	// grace is how long requests to a former leader may take once another one leads. A leader that has handed over has
	// answered them by then, and one that hangs never will.
	grace = time.Second
	// joinWait is how long a request waits while this host has not joined: other hosts would refuse its connections.
	joinWait = time.Second
	// longTime is how long a request has to be under way for its time to count anew when its leader falls silent.
	longTime = time.Second
	// retryGap is the pause before a request is sent again to a leader that could not be reached.
	retryGap = 100 * time.Millisecond
)

// route is where requests go while a host leads.
type route struct {
	local *local // this host, if it leads
	peer  *peer  // the leader, if it is another host

	ctx context.Context //nolint:containedctx // it ends when requests must not go on
	end context.CancelFunc
}

func newRoute(own *local, to *peer) *route {
	r := &route{local: own, peer: to}
	r.ctx, r.end = context.WithCancel(context.Background())
	return r
}

// How long forwarded requests may take once this host is stopping. Reads get less time: they may be endless streams, and can
// be sent to another host.
const (
	readsEnd  = time.Second
	writesEnd = 5 * time.Second
)

// limit is a context that ends when requests of a kind have to end.
type limit struct {
	ctx context.Context //nolint:containedctx // it ends with the host
	end context.CancelFunc
}

func newLimit() (l limit) {
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// front is the API of this host. It answers requests itself while this host leads, and else forwards them to the leader.
type front struct {
	member *Member
	proxy  http.Handler
	reads  limit // of requests that only read
	writes limit // of the others

	mu      sync.Mutex    // protects the rest
	current *route        // nil = there is no leader
	last    *route        // the current one, or that before it
	changed chan struct{} // closed when the route changes
	over    bool          // this host has left the cluster: there will be no route
}

func newFront(m *Member) *front {
	f := &front{member: m, changed: make(chan struct{}), reads: newLimit(), writes: newLimit()}
	f.proxy = f.newProxy()
	return f
}

// Handler returns the API of this host. While it leads it answers with what was given to [Member.Serve], and otherwise it
// passes requests on to the leader. Requests that come while no host leads wait for the next one. It is for clients that
// may use the API: the caller has to refuse others, or they would take of both hosts what that costs.
func (m *Member) Handler() http.Handler { return m.front }

// Stop gives forwarded requests a few seconds to end, since this host is stopping.
func (m *Member) Stop() {
	time.AfterFunc(readsEnd, m.front.reads.end)
	time.AfterFunc(writesEnd, m.front.writes.end)
}

// limitOf returns the limit of a request.
func (f *front) limitOf(r *http.Request) context.Context {
	if isSafe(r.Method) {
		return f.reads.ctx
	}
	return f.writes.ctx
}

// set changes the route; nil = there is no leader. Requests under way continue until another host leads.
func (f *front) set(r *route) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == r || f.over {
		return
	}
	if r != nil && f.last != r {
		if former := f.last; former != nil {
			time.AfterFunc(grace, former.end)
		}
		f.last = r
	}
	f.current = r
	close(f.changed)
	f.changed = make(chan struct{})
}

// end makes requests that wait for a leader, and new ones, fail: this host has left the cluster.
func (f *front) end() {
	f.set(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		close(f.changed) // for good
	}
}

func (f *front) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// Ready returns nil while requests can be answered: this host leads, or reaches the one that does. The reason why not is for
// everyone, so it doesn't say where hosts are.
func (m *Member) Ready() error {
	switch r, _ := m.front.now(); {
	case r == nil && !m.joined.Load():
		return errNotJoined
	case r == nil:
		return errNoLeader
	case r.peer != nil && !r.peer.reached.Load():
		return errUnreached
	}
	return nil
}

func (f *front) now() (*route, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current, f.changed
}

// await waits for a route; nil = ctx has ended. After a failed attempt it waits for another route for a moment, and then
// returns the same one again, in case only the network failed.
func (f *front) await(ctx context.Context, failed *route) *route {
	var again <-chan time.Time
	if failed != nil {
		timer := time.NewTimer(retryGap)
		defer timer.Stop()
		again = timer.C
	}
	for ctx.Err() == nil && !f.ended() {
		r, changed := f.now()
		if r != nil && r != failed {
			return r
		}
		select {
		case <-changed:
		case <-again:
			again, failed = nil, nil
		case <-ctx.Done():
		}
	}
	return nil
}

// awaitLocal waits until this host answers in the term that it leads; nil = it no longer leads, or ctx has ended.
func (f *front) awaitLocal(ctx context.Context, ended <-chan struct{}) *route {
	for {
		r, changed := f.now()
		if r != nil && r.local != nil {
			return r
		}
		if f.ended() {
			return nil
		}
		select {
		case <-changed:
		case <-ended:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// ServeHTTP implements [http.Handler].
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Del(clientHeader) // only hosts may set it
	here := func(handler http.Handler) { handler.ServeHTTP(w, r) }
	if to, _ := f.now(); to != nil && to.local != nil && to.local.serve(here) {
		return
	}
	c := newCall(w, r)
	if err := c.hold(); err != nil {
		fail(w, http.StatusBadRequest, &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the body can't be read", Cause: err})
		return
	}
	defer c.end()
	var failed *route
	until := time.Now().Add(f.requestWait())
	for {
		to := f.find(r.Context(), failed, until)
		switch {
		case r.Context().Err() != nil:
			return
		case to == nil && !f.member.joined.Load():
			fail(w, http.StatusServiceUnavailable, errNotJoined)
			return
		case to == nil:
			fail(w, http.StatusServiceUnavailable, f.unanswered())
			return
		case to.local != nil && to.local.serve(c.serve):
			return
		case to.local != nil:
			failed = to // its term has just ended
			continue
		}
		begun := time.Now()
		c.forward(f.limitOf(r), f.proxy, to, until)
		switch {
		case c.err == nil:
			return
		case !c.mayRepeat(f.member.cfg.Repeatable) && c.notCarriedOut():
			fail(w, http.StatusServiceUnavailable, errLeaderChanged)
			return
		case !c.mayRepeat(f.member.cfg.Repeatable):
			fail(w, http.StatusBadGateway, errLeaderLost)
			return
		case f.limitOf(r).Err() != nil:
			fail(w, http.StatusServiceUnavailable, errStopping)
			return
		}
		failed = to
		// A request that has been under way for long gets the full wait, from when the leader fell silent.
		// One that fails at once doesn't: it would be tried for as long as the leader lives.
		if again := to.peer.lastHeard().Add(f.member.cfg.RequestWait); c.sent.Load() && time.Since(begun) > longTime && again.After(until) {
			until = again
		}
	}
}

// requestWait is how long a request waits for a leader.
func (f *front) requestWait() time.Duration {
	if !f.member.joined.Load() {
		return min(joinWait, f.member.cfg.RequestWait)
	}
	return f.member.cfg.RequestWait
}

// unanswered is why a request was not answered in time.
func (f *front) unanswered() *jobhost.Error {
	if r, _ := f.now(); r != nil && r.peer != nil {
		return errUnreachedAt(r.peer)
	}
	return errNoLeader
}

// find waits for a route until a time.
func (f *front) find(ctx context.Context, failed *route, until time.Time) *route {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return f.await(ctx, failed)
}
