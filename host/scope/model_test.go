package scope_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// node is a random scope: what it is made of, and the model of what must become
// of it.
type node struct {
	name       string
	parent     *node
	kids       []*node
	goroutines int     // that wait for the test to tell them how to end
	finalisers []error // what each returns
	detached   []bool  // which of them are taken out again

	// The model.
	status  string
	primary string
	reason  string
	extra   []string
	waiting []string // goroutines that haven't ended
	closed  bool
	joined  bool
}

// event is something that happens to a scope.
type event struct {
	kind string // fail, end, cancel, close, join
	at   *node
	who  string // the goroutine, or the reason
}

// plan is a random tree and what happens to it, one thing after the other.
type plan struct {
	nodes  []*node // parents before children
	events []event
}

func drawPlan(rt *rapid.T) *plan {
	p := &plan{}
	for i := range rapid.IntRange(1, 8).Draw(rt, "scopes") {
		n := &node{name: fmt.Sprintf("s%d", i), status: "ok"}
		if i > 0 {
			n.parent = p.nodes[rapid.IntRange(0, i-1).Draw(rt, "parent")]
			n.parent.kids = append(n.parent.kids, n)
		}
		for g := range rapid.IntRange(0, 3).Draw(rt, "goroutines") {
			n.waiting = append(n.waiting, fmt.Sprintf("%s-g%d", n.name, g))
		}
		n.goroutines = len(n.waiting)
		for f := range rapid.IntRange(0, 3).Draw(rt, "finalisers") {
			var err error
			if rapid.IntRange(0, 3).Draw(rt, "fails") == 0 {
				err = fmt.Errorf("%s-f%d", n.name, f)
			}
			n.finalisers = append(n.finalisers, err)
			n.detached = append(n.detached, rapid.IntRange(0, 3).Draw(rt, "detached") == 0)
		}
		p.nodes = append(p.nodes, n)
	}
	for i := range rapid.IntRange(0, 10).Draw(rt, "events") {
		e := event{
			kind: rapid.SampledFrom([]string{"fail", "fail", "end", "cancel", "close", "join"}).Draw(rt, "event"),
			at:   p.nodes[rapid.IntRange(0, len(p.nodes)-1).Draw(rt, "at")],
			who:  fmt.Sprintf("r%d", i),
		}
		if e.kind == "fail" || e.kind == "end" {
			if e.at.goroutines == 0 {
				continue
			}
			e.who = fmt.Sprintf("%s-g%d", e.at.name, rapid.IntRange(0, e.at.goroutines-1).Draw(rt, "who"))
		}
		p.events = append(p.events, e)
	}
	return p
}

// The model. It says the same as the package comment, in other words.

func (n *node) cancel(reason string) {
	if n.reason != "" || n.joined {
		return
	}
	n.reason = reason
	if n.status == "ok" {
		n.status = "cancelled"
	}
	for _, kid := range n.kids {
		kid.cancel(reason)
	}
}

func (n *node) fail(err string) {
	if n.primary != "" {
		n.extra = append(n.extra, err)
		return
	}
	n.primary, n.status = err, "failed"
	n.cancel(err)
}

// happen is what an event does. Half of the goroutines, those with an even
// number, end when they are cancelled; the others go on.
func (e event) happen() {
	switch e.kind {
	case "fail", "end":
		i := slices.Index(e.at.waiting, e.who)
		if i < 0 || e.at.joined || e.at.reason != "" && obeys(e.who) {
			return
		}
		e.at.waiting = slices.Delete(e.at.waiting, i, i+1)
		if e.kind == "fail" {
			e.at.fail(e.who)
		}
	case "cancel":
		e.at.cancel(e.who)
	case "close":
		e.at.closed = true
	case "join":
		// Here, only a scope that can be joined without waiting is.
		if e.at.idle() {
			e.at.join(new([]string))
		}
	}
}

func obeys(goroutine string) bool { return (goroutine[len(goroutine)-1]-'0')%2 == 0 }

// idle reports whether nothing in n waits any more.
func (n *node) idle() bool {
	for _, kid := range n.kids {
		if !kid.idle() {
			return false
		}
	}
	return !slices.ContainsFunc(n.waiting, func(g string) bool { return n.reason == "" || !obeys(g) })
}

func (n *node) join(order *[]string) {
	if n.joined {
		return
	}
	for _, kid := range n.kids {
		kid.join(order)
	}
	for i, err := range slices.Backward(n.finalisers) {
		if n.detached[i] {
			continue
		}
		*order = append(*order, fmt.Sprintf("%s-f%d %s %s", n.name, i, n.status, n.primary))
		switch {
		case err == nil:
		case n.status == "ok":
			n.primary, n.status = err.Error(), "failed"
		default:
			n.extra = append(n.extra, err.Error())
		}
	}
	n.joined = true
}

// outcome is a report in words.
type outcome struct {
	Name, Status, Primary, Reason string
	Extra                         []string
	Children                      []outcome
}

func (n *node) outcome() outcome {
	o := outcome{Name: n.name, Status: n.status, Primary: n.primary, Reason: n.reason, Extra: n.extra}
	for _, kid := range n.kids {
		o.Children = append(o.Children, kid.outcome())
	}
	return o
}

func outcomeOf(r scope.Report) outcome {
	o := outcome{Name: r.Name, Status: r.Status.String()}
	if r.Primary != nil {
		o.Primary = r.Primary.Error()
	}
	if r.Cancelled != nil {
		o.Reason = r.Cancelled.Reason.Error()
	}
	for _, err := range r.Extra {
		o.Extra = append(o.Extra, err.Error())
	}
	for _, child := range r.Children {
		o.Children = append(o.Children, outcomeOf(child))
	}
	return o
}

// stage is the plan made real.
type stage struct {
	scopes map[*node]*scope.Scope
	tell   map[string]chan error // how a goroutine learns how to end
	order  []string
	// detached says that all that was to be taken out was.
	detached bool
	// told is what the ops performed from the beginning resulted in, by kind and scope.
	told     map[string]string
	mu       sync.Mutex // protects told
	ctx      context.Context
	watchers sync.WaitGroup
}

func (p *plan) stage(ctx context.Context) *stage {
	st := &stage{scopes: map[*node]*scope.Scope{}, tell: map[string]chan error{}, detached: true, told: map[string]string{}, ctx: ctx}
	for _, n := range p.nodes {
		var s *scope.Scope
		if n.parent == nil {
			s = scope.New(context.Background(), n.name)
		} else {
			s, _ = st.scopes[n.parent].Child(n.name)
		}
		st.scopes[n] = s
		for _, g := range n.waiting {
			tell := make(chan error, 10)
			st.tell[g] = tell
			_ = s.Go("", func(ctx context.Context) error {
				done := ctx.Done()
				if !obeys(g) {
					done = nil
				}
				select {
				case err := <-tell:
					return err
				case <-done:
					return ctx.Err()
				}
			})
		}
		var detach []func() bool
		for i, err := range n.finalisers {
			out, _ := s.Attach(func(_ bool, status scope.Status, primary error) error {
				text := ""
				if primary != nil {
					text = primary.Error()
				}
				st.order = append(st.order, fmt.Sprintf("%s-f%d %s %s", n.name, i, status, text))
				return err
			})
			detach = append(detach, out)
		}
		for i, out := range detach {
			st.detached = st.detached && (!n.detached[i] || out() && !out())
		}
		st.watch(s)
	}
	return st
}

// watch lets three wait for what becomes of s.
func (st *stage) watch(s *scope.Scope) {
	for kind, watch := range watches(s) {
		st.watchers.Go(func() {
			if text, err := op.Perform(st.ctx, watch); err == nil {
				st.mu.Lock()
				defer st.mu.Unlock()
				st.told[kind+" "+s.Name()] = text
			}
		})
	}
}

// watches are the ops that tell of a scope, with what they tell as text.
func watches(s *scope.Scope) map[string]op.Op[string] {
	text := func(err error) (string, error) { return err.Error(), nil }
	return map[string]op.Op[string]{
		"close":  op.Wrap(s.CloseOp(), func(error) (string, error) { return "", nil }),
		"fault":  op.Wrap(s.FaultOp(), text),
		"cancel": op.Wrap(s.CancelOp(), func(c *scope.Cancelled) (string, error) { return text(c.Reason) }),
	}
}

// watched adds the notifications expected for a scope so far.
func (n *node) watched(told map[string]string) {
	if n.closed || n.reason != "" || n.primary != "" || n.joined {
		told["close "+n.name] = ""
	}
	if n.primary != "" {
		told["fault "+n.name] = n.primary
	}
	if n.reason != "" && n.reason != n.primary {
		told["cancel "+n.name] = n.reason
	}
}

// differs compares notifications and current answers with the model.
func (st *stage) differs() string {
	synctest.Wait()
	want, now := map[string]string{}, map[string]string{}
	for n, s := range st.scopes {
		n.watched(want)
		for kind, watch := range watches(s) {
			if text, ok, _ := op.TryPerform(watch); ok {
				now[kind+" "+n.name] = text
			}
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return cmp.Or(gocmp.Diff(want, now), gocmp.Diff(want, st.told))
}

func (st *stage) happen(e event) {
	s := st.scopes[e.at]
	switch e.kind {
	case "fail":
		st.tell[e.who] <- errors.New(e.who)
	case "end":
		st.tell[e.who] <- nil
	case "cancel":
		s.Cancel(errors.New(e.who))
	case "close":
		s.Close(nil)
	case "join":
		if e.at.idle() {
			_, _ = s.Join(context.Background())
		}
	}
	synctest.Wait()
}

// run runs the plan for real and beside it the model, and returns what differs.
func (p *plan) run() (diff string) {
	ctx, cancel := context.WithCancel(context.Background())
	st := p.stage(ctx)
	defer st.watchers.Wait()
	defer cancel()
	synctest.Wait()
	for _, e := range p.events {
		st.happen(e)
		e.happen()
		if diff = cmp.Or(diff, st.differs()); diff != "" {
			diff = fmt.Sprintf("after %s of %s: %s", e.kind, e.at.name, diff)
		}
	}
	if !st.detached {
		diff = cmp.Or(diff, "a finaliser was not taken out")
	}
	var joined []*node // before the root's join
	for _, n := range p.nodes {
		for _, g := range n.waiting {
			st.tell[g] <- nil
		}
		if n.joined {
			joined = append(joined, n)
		}
	}
	st.order = nil
	r, _ := st.scopes[p.nodes[0]].Join(context.Background())
	var order []string
	p.nodes[0].join(&order)
	if len(joined) > 0 && slices.Contains(joined, p.nodes[0]) {
		st.order, order = nil, nil
	}
	return cmp.Or(diff, st.differs(), gocmp.Diff(order, st.order), gocmp.Diff(p.nodes[0].outcome(), outcomeOf(r)))
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var diff string
		synctest.Test(t, func(*testing.T) { diff = p.run() })
		if diff != "" {
			rt.Errorf("(-want +got)\n%s", diff)
		}
	})
}
