package rewrite

import (
	"cmp"
	"slices"

	"github.com/jobhost/jobhost/runtime/module"
)

// A function pays for all its code with its first tick, but the code after its
// calls runs on the way back from them, when the callers on the stack run their
// rests one after the other and none of them ticks again. Where many
// activations can be on the stack, ticks follow the calls: in a recursion after
// each call that more than next to nothing follows, and elsewhere once the
// rests of the callers add up to too much.

// mostReturning is how much may run on the way back through a chain of calls
// without recursion.
var mostReturning = work{bytes: 1 << 20, accesses: 2048}

// markReturns marks the calls that a tick must follow.
func (p *placer) markReturns(g *callGraph, component []int) {
	order := make([]int, g.size())
	for i := range order {
		order[i] = i
	}
	// Components are numbered from the callees up; here callers come first.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(component[b], component[a]) })
	above := make([]work, len(order)+1) // what callers still have to do, by component
	for _, n := range order {
		c := component[n]
		if n >= len(p.functions) { // a type of functions
			for _, f := range g.taken[n-len(p.functions)] {
				above[component[f]] = above[component[f]].or(above[c])
			}
			continue
		}
		p.returnsOf(n, above[c], func(e *event, returning work) {
			if to := p.component(e, component); to != c {
				above[to] = above[to].or(returning)
			}
		})
	}
}

// or returns the larger of each.
func (w work) or(o work) work { return work{max(w.bytes, o.bytes), max(w.accesses, o.accesses)} }

// component returns the component that a call may reach.
func (p *placer) component(e *event, component []int) int {
	if e.kind == directCall {
		return component[int(e.arg)-p.m.Imported[module.KindFunction]]
	}
	return p.targets[p.types[e.arg]]
}

// callsOn reports whether a call is of a function that itself makes calls: a
// free one can make any in its loops.
func (p *placer) callsOn(e *event) bool {
	callee, ok := p.defined(e.arg)
	return ok && callee.calls
}

// returnsOf marks the calls of one function. callers is what its callers still
// have to do; called gets the sum of that and the function's own rest.
func (p *placer) returnsOf(i int, callers work, called func(e *event, returning work)) {
	f := &p.functions[i]
	if len(f.events) == 0 {
		return
	}
	rest, loop := p.rest(i, p.charge(i)), 0
	for j := range f.events {
		e := &f.events[j]
		rest.pass(e)
		switch e.kind {
		case loopStart:
			rest.add(p.sums[loop])
			loop++
		case directCall, indirectCall:
			if p.recursive(f, e) { // by a loop of a free function, too
				e.after = rest.left.bytes > tail || rest.left.accesses > 0
				continue
			}
			if p.costsLittle(e) && !p.callsOn(e) {
				continue
			}
			returning := callers.plus(rest.left)
			if returning.bytes > mostReturning.bytes || returning.accesses > mostReturning.accesses {
				e.after, returning = true, callers
			}
			called(e, returning)
		default:
		}
	}
}
