package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

const (
	// defaultPatience is how long a request waits for a leader.
	defaultPatience = 10 * time.Second
	// grace is how long requests to a former leader may go on when another one leads: one that has given up its term
	// has answered them, and one that hangs never will.
	grace = time.Second
	// namePatience is how long a request waits for a host that does not have its name yet: others can't know that host.
	namePatience = time.Second
	// longTime is how long a request has to be under way for its time to count anew when its leader falls silent.
	longTime = time.Second
	// retryGap is how soon a request is sent again to a leader that could not be reached.
	retryGap = 100 * time.Millisecond
)

// route is where requests go while one host leads.
type route struct {
	local *local // this host leads; nil = another one does
	peer  *peer  // the one that does

	ctx context.Context //nolint:containedctx // it ends when requests must not go on
	end context.CancelFunc
}

func newRoute(own *local, to *peer) *route {
	r := &route{local: own, peer: to}
	r.ctx, r.end = context.WithCancel(context.Background())
	return r
}

// How long requests that are passed on may go on when this host answers no more: what only reads may be a stream that
// never ends, and can be asked of another host.
const (
	readsEnd  = time.Second
	writesEnd = 5 * time.Second
)

// limit is a context that ends when requests of a kind must not go on.
type limit struct {
	ctx context.Context //nolint:containedctx // it ends with the host
	end context.CancelFunc
}

func newLimit() (l limit) {
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// front is the API of this host: it answers itself or passes on to the leader what clients ask.
type front struct {
	member *Member
	proxy  http.Handler
	reads  limit // of requests that only read
	writes limit // of the others

	mu      sync.Mutex    // protects the rest
	current *route        // nil = there is no leader
	last    *route        // the current one, or that before it
	changed chan struct{} // closed when the route changes
	over    bool          // there will be no route any more
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

// Stop lets requests end that are passed on, since this host answers no more.
func (m *Member) Stop() {
	time.AfterFunc(readsEnd, m.front.reads.end)
	time.AfterFunc(writesEnd, m.front.writes.end)
}

// limitOf is what ends a request.
func (f *front) limitOf(r *http.Request) context.Context {
	if isSafe(r.Method) {
		return f.reads.ctx
	}
	return f.writes.ctx
}

// set changes the route; nil = there is no leader. Requests that are under way may go on until another host leads.
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

// end answers what waits for a leader, and comes from now on: there will be none that this host knows.
func (f *front) end() {
	f.set(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		close(f.changed) // and so it stays
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
		return errNameless
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

// await waits for a route; nil = ctx has ended. After a failure it waits for another one at first, and then takes the
// same: it may have been the network.
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

// awaitLocal waits until this host answers; nil = it does not lead any more, or ctx has ended.
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
	r.Header.Del(clientHeader) // which only hosts may say
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
	until := time.Now().Add(f.patience())
	for {
		to := f.find(r.Context(), failed, until)
		switch {
		case r.Context().Err() != nil:
			return
		case to == nil && !f.member.joined.Load():
			fail(w, http.StatusServiceUnavailable, errNameless)
			return
		case to == nil:
			fail(w, http.StatusServiceUnavailable, f.unanswered())
			return
		case to.local != nil && to.local.serve(c.serve):
			return
		case to.local != nil:
			failed = to // this host has just given up its term
			continue
		}
		begun := time.Now()
		c.forward(f.limitOf(r), f.proxy, to, until)
		switch {
		case c.err == nil:
			return
		case !c.mayRepeat(f.member.cfg.Repeatable) && c.undone():
			fail(w, http.StatusServiceUnavailable, errMoved)
			return
		case !c.mayRepeat(f.member.cfg.Repeatable):
			fail(w, http.StatusBadGateway, errLost)
			return
		case f.limitOf(r).Err() != nil:
			fail(w, http.StatusServiceUnavailable, errEnds)
			return
		}
		failed = to
		// A request that was under way for long waits for another leader as one that comes when this one falls silent.
		// One that fails at once doesn't: it would be tried for as long as the leader lives.
		if again := to.peer.lastHeard().Add(f.member.cfg.Patience); c.sent.Load() && time.Since(begun) > longTime && again.After(until) {
			until = again
		}
	}
}

// patience is how long a request waits for a leader.
func (f *front) patience() time.Duration {
	if !f.member.joined.Load() {
		return min(namePatience, f.member.cfg.Patience)
	}
	return f.member.cfg.Patience
}

// unanswered is why a request was not answered in time.
func (f *front) unanswered() *jobhost.Error {
	if r, _ := f.now(); r != nil && r.peer != nil {
		return errUnreachedAt(r.peer)
	}
	return errNoLeader
}

// find waits for a route.
func (f *front) find(ctx context.Context, failed *route, until time.Time) *route {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return f.await(ctx, failed)
}

var (
	errNoLeader = &jobhost.Error{
		Code: jobhost.CodeUnavailable, Field: jobhost.FieldStart, RetryAfter: 2 * time.Second,
		Message: "no host of the cluster leads", Hint: "it can take a few seconds until another host leads; jobhost host ls says which hosts there are",
	}
	errNameless = &jobhost.Error{
		Code: jobhost.CodeUnavailable, Field: jobhost.FieldStart, RetryAfter: time.Second,
		Message: "this host has not joined its cluster yet", Hint: "the host that had its name before was killed, or lives; the log says so if it does",
	}
	errEnds = &jobhost.Error{
		Code: jobhost.CodeUnavailable, RetryAfter: time.Second, Message: "this host ends", Hint: "other hosts of the cluster answer",
	}
	errMoved = &jobhost.Error{
		Code: jobhost.CodeUnavailable, RetryAfter: time.Second,
		Message: "another host leads since the request began to come; it was not carried out", Hint: "send it again",
	}
	errUnreached = &jobhost.Error{
		Code: jobhost.CodeUnavailable, RetryAfter: 2 * time.Second, Message: "the host that leads can't be reached from this one",
		Hint: "ask another host; jobhost host ls says which hosts there are, and the log of this one why",
	}
	errLost = &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: "the host that leads was lost before it answered: the request may have been carried out or not",
		Hint:    "look, or repeat it if that does no harm: a submit with an id of yours can be repeated",
	}
)

// errUnreachedAt is errUnreached for those who may know which hosts there are.
func errUnreachedAt(leader *peer) *jobhost.Error {
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, RetryAfter: 2 * time.Second,
		Message: fmt.Sprintf("the host that leads, %s at %s, can't be reached from this one", leader.name, leader.address),
		Hint: fmt.Sprintf("ask another host; is the network between the two whole, and is %s the address by which other hosts reach %s? "+
			"See advertise in [cluster]", leader.address, leader.name),
	}
}

// fail answers as the API does.
func fail(w http.ResponseWriter, status int, err *jobhost.Error) {
	p := wire.NewProblem(err)
	p.Status = status
	h := w.Header()
	h.Set("Content-Type", wire.Trouble)
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(time.Duration(p.RetryAfter)/time.Second)))
	}
	body, _ := json.Marshal(p) //nolint:errchkjson // there is nothing in it that JSON can't say
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
