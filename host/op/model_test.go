package op_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/op"
)

// tree is a random op, and the model of what performing it must do.
type tree struct {
	kind  string
	name  string
	kids  []*tree
	ready bool // of a leaf
}

var kinds = []string{"leaf", "leaf", "choice", "choice", "wrap", "guard", "nack", "abort", "bracket", "finally", "orelse"}

func drawTree(rt *rapid.T, depth int, n *int) *tree {
	*n++
	t := &tree{kind: "leaf", name: fmt.Sprintf("n%d", *n)}
	if depth > 0 {
		t.kind = rapid.SampledFrom(kinds).Draw(rt, "kind")
	}
	switch t.kind {
	case "leaf":
		t.ready = rapid.IntRange(0, 3).Draw(rt, "ready") == 0
	case "choice":
		for range rapid.IntRange(0, 4).Draw(rt, "kids") {
			t.kids = append(t.kids, drawTree(rt, depth-1, n))
		}
	default:
		t.kids = []*tree{drawTree(rt, depth-1, n)}
	}
	return t
}

// has reports whether the arm is in t.
func (t *tree) has(arm string) bool {
	if t.name == arm {
		return true
	}
	for _, kid := range t.kids {
		if kid.has(arm) {
			return true
		}
	}
	return false
}

// each calls f for t and all below it, top down.
func (t *tree) each(f func(*tree)) {
	f(t)
	for _, kid := range t.kids {
		kid.each(f)
	}
}

// built is what building must have noted: from outside in, in order.
func (t *tree) built() (notes []string) {
	t.each(func(t *tree) {
		switch t.kind {
		case "guard", "nack", "bracket":
			notes = append(notes, "build "+t.name)
		}
	})
	return notes
}

// lost is what the losing conditions must have noted if arm has won: from inside
// out, in order.
func (t *tree) lost(arm string) (notes []string) {
	for _, kid := range t.kids {
		notes = append(notes, kid.lost(arm)...)
	}
	if !t.has(arm) {
		switch t.kind {
		case "abort":
			notes = append(notes, "abort "+t.name)
		case "bracket", "finally":
			notes = append(notes, "release "+t.name+" true")
		}
	}
	return notes
}

// wrapped is what must have been noted on the way from arm to the root.
func (t *tree) wrapped(arm string) (notes []string) {
	if !t.has(arm) {
		return nil
	}
	for _, kid := range t.kids {
		notes = append(notes, kid.wrapped(arm)...)
	}
	switch t.kind {
	case "wrap":
		notes = append(notes, "wrap "+t.name)
	case "bracket", "finally":
		notes = append(notes, "release "+t.name+" false")
	case "orelse":
		if t.name == arm {
			notes = append(notes, "otherwise "+t.name)
		}
	}
	return notes
}

// run is one performing of a tree.
type run struct {
	notes     []string
	nacks     map[string]op.Op[struct{}]
	committed map[string]int
	blocked   chan struct{}

	mu        sync.Mutex // protects the fields below
	waiters   map[string]*op.Waiter[string]
	withdrawn map[string]int
}

func newRun() *run {
	return &run{
		nacks: map[string]op.Op[struct{}]{}, committed: map[string]int{}, blocked: make(chan struct{}, 1000),
		waiters: map[string]*op.Waiter[string]{}, withdrawn: map[string]int{},
	}
}

func (r *run) note(words ...any) { r.notes = append(r.notes, fmt.Sprint(words...)) }

func (r *run) leaf(t *tree) op.Op[string] {
	return op.New(
		func() (string, bool, error) {
			if t.ready {
				r.committed[t.name]++
			}
			return t.name, t.ready, nil
		},
		func(w *op.Waiter[string]) {
			w.OnAbort(func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.withdrawn[t.name]++
			})
			r.mu.Lock()
			r.waiters[t.name] = w
			r.mu.Unlock()
			r.blocked <- struct{}{}
		})
}

// op makes the op that t describes.
func (r *run) op(t *tree) op.Op[string] {
	var kids []op.Op[string]
	for _, kid := range t.kids {
		kids = append(kids, r.op(kid))
	}
	switch t.kind {
	case "choice":
		return op.Choice(kids...)
	case "wrap":
		return op.Wrap(kids[0], func(v string) (string, error) { r.note("wrap ", t.name); return v, nil })
	case "guard":
		return op.Guard(func() op.Op[string] { r.note("build ", t.name); return kids[0] })
	case "nack":
		return op.WithNack(func(nack op.Op[struct{}]) op.Op[string] {
			r.note("build ", t.name)
			r.nacks[t.name] = nack
			return kids[0]
		})
	case "abort":
		return op.OnAbort(kids[0], func() { r.note("abort ", t.name) })
	case "bracket":
		return op.Bracket(
			func() (string, error) { r.note("build ", t.name); return t.name, nil },
			func(name string, aborted bool) { r.note("release ", name, " ", aborted) },
			func(string) op.Op[string] { return kids[0] })
	case "finally":
		return op.Finally(kids[0], func(aborted bool) { r.note("release ", t.name, " ", aborted) })
	case "orelse":
		return op.OrElse(kids[0], func() (string, error) { r.note("otherwise ", t.name); return t.name, nil })
	}
	return r.leaf(t)
}

// check compares what happened with the model. arm is the winner, or "".
func (r *run) check(rt *rapid.T, t *tree, arm string) {
	want := append(append(t.built(), t.lost(arm)...), t.wrapped(arm)...)
	if diff := cmp.Diff(want, r.notes); diff != "" {
		rt.Errorf("winner %q (-want +got)\n%s", arm, diff)
	}
	t.each(func(t *tree) {
		if nack, made := r.nacks[t.name]; made {
			if _, fired, _ := op.TryPerform(nack); fired == t.has(arm) {
				rt.Errorf("winner %q: nack of %s fired: %t", arm, t.name, fired)
			}
		}
		if _, was := r.waiters[t.name]; was && r.withdrawn[t.name] != map[bool]int{true: 0, false: 1}[t.name == arm] {
			rt.Errorf("winner %q: %s withdrawn %d times", arm, t.name, r.withdrawn[t.name])
		}
		if n := r.committed[t.name]; n > 0 && (n > 1 || t.name != arm) {
			rt.Errorf("winner %q: %s committed %d times", arm, t.name, n)
		}
	})
}

// TestModelReady performs random trees of which arms are ready, or which have
// fallbacks, or neither: then TryPerform must find nothing.
func TestModelReady(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := 0
		root := drawTree(rt, 5, &n)
		ready, fallbacks := map[string]bool{}, map[string]bool{}
		root.each(func(t *tree) {
			if t.ready {
				ready[t.name] = true
			}
			if t.kind == "orelse" {
				fallbacks[t.name] = true
			}
		})
		r := newRun()
		arm, ok, err := op.TryPerform(r.op(root))
		if err != nil || ok != (len(ready)+len(fallbacks) > 0) {
			rt.Fatalf("got %q, %t, %v", arm, ok, err)
		}
		if ok && !ready[arm] && (len(ready) > 0 || !fallbacks[arm]) {
			rt.Errorf("winner %q, ready %v, fallbacks %v", arm, ready, fallbacks)
		}
		r.check(rt, root, arm)
	})
}

// TestModelWaiting performs random trees of which nothing is ready. Then several
// goroutines complete arms, or cancel the context, at once.
func TestModelWaiting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := 0
		root := drawTree(rt, 4, &n)
		leaves := 0
		root.each(func(t *tree) {
			t.ready = false
			if t.kind == "orelse" {
				t.kind = "wrap"
			}
			if t.kind == "leaf" {
				leaves++
			}
		})
		if leaves == 0 {
			rt.Skip("nothing to wait for")
		}
		cancels := rapid.Bool().Draw(rt, "cancels")
		completions := rapid.IntRange(0, 4).Draw(rt, "completions")
		if !cancels && completions == 0 {
			completions = 1
		}

		r := newRun()
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		type outcome struct {
			arm string
			err error
		}
		out := make(chan outcome, 1)
		go func() {
			arm, err := op.Perform(ctx, r.op(root))
			out <- outcome{arm, err}
		}()
		for range leaves {
			<-r.blocked
		}
		wins := r.complete(completions)
		if cancels {
			cancel(errTest)
		}
		got := <-out
		if won := <-wins; got.err == nil && (len(won) != 1 || won[0] != got.arm) || got.err != nil && len(won) > 0 {
			rt.Errorf("performed %q, %v; completions that won: %v", got.arm, got.err, won)
		}
		if got.err != nil && (!errors.Is(got.err, errTest) || !cancels) {
			rt.Errorf("got %v", got.err)
		}
		r.check(rt, root, got.arm)
	})
}

// complete completes up to n arms, all at once, and then sends which of them
// have won.
func (r *run) complete(n int) <-chan []string {
	var wg sync.WaitGroup
	var mu sync.Mutex // protects won
	var won []string
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, w := range r.waiters {
		if n--; n < 0 {
			break
		}
		wg.Go(func() {
			if w.Complete(name, nil) {
				mu.Lock()
				won = append(won, name)
				mu.Unlock()
			}
		})
	}
	all := make(chan []string, 1)
	go func() {
		wg.Wait()
		all <- won
	}()
	return all
}
