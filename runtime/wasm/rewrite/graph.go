package rewrite

// bounds are what the call graph determines for a function.
type bounds struct {
	// free: it needs no tick of its own, since a call of it runs little code,
	// including callees, that no tick pays for.
	free bool
	// unpaid is how much of a call of it no tick of its own pays for: all of a
	// free function, and for others the code up to their first tick. It is at
	// most what little allows.
	unpaid work
	// entry: it ticks on entry.
	entry bool

	visit visit
	// component is the same for functions that may call each other mutually.
	component int
}

type visit uint8

const (
	unseen visit = iota
	open         // on the path of the search
	done
)

// judge decides which functions are free and which tick on entry.
//
// Only code outside loops counts, as loops have their own ticks. A function is
// free when it is small together with everything that it calls: then nothing of
// it is recursive, and it makes no indirect calls.
func (s *survey) judge() {
	type frame struct {
		f    *function
		next int
	}
	var path []frame
	for i := range s.functions {
		if s.functions[i].visit != unseen {
			continue
		}
		s.functions[i].visit = open
		path = append(path[:0], frame{f: &s.functions[i]})
		for len(path) > 0 {
			top := &path[len(path)-1]
			if top.next == len(top.f.events) {
				s.conclude(top.f)
				path = path[:len(path)-1]
				continue
			}
			e := &top.f.events[top.next]
			top.next++
			if e.kind != directCall || e.inLoop {
				continue
			}
			if callee, ok := s.defined(e.arg); ok && callee.visit == unseen {
				callee.visit = open
				path = append(path, frame{f: callee})
			}
		}
	}
}

// little is the most that a call may do without a tick that pays for it.
var little = work{bytes: grain, accesses: 8}

func (w work) isLittle() bool { return w.bytes <= little.bytes && w.accesses <= little.accesses }

// conclude decides about a function whose callees are decided, except those
// that are still open: these call it in turn.
func (s *survey) conclude(f *function) {
	own, calls := f.outside, false
	for i := range f.events {
		switch e := &f.events[i]; {
		case e.inLoop:
		case s.costsLittle(e):
			own = own.plus(s.cost(e))
		default:
			calls = true
		}
	}
	f.unpaid = work{min(own.bytes, little.bytes), min(own.accesses, little.accesses)} // for a function that calls itself
	total := own
	for i := range f.events {
		if e := &f.events[i]; !e.inLoop && !s.costsLittle(e) {
			total = total.plus(s.cost(e))
		}
	}
	f.visit = done
	f.entry = !total.isLittle()
	f.free = !f.entry && !calls
	if f.entry {
		f.unpaid = work{}
	}
}

// costsLittle reports whether an event is not a call, or one of a free function
// or the host.
func (s *survey) costsLittle(e *event) bool {
	switch e.kind {
	case directCall:
		callee, ok := s.defined(e.arg)
		return !ok && !s.isForeign(e.arg) || ok && callee.free
	case indirectCall:
		return false
	default:
		return true
	}
}

// cost is the cost of an event besides its bytes and its memory accesses.
func (s *survey) cost(e *event) work {
	switch e.kind {
	case directCall:
		callee, ok := s.defined(e.arg)
		switch {
		case s.isForeign(e.arg):
			return little
		case !ok:
			return work{bytes: hostCost, accesses: hostAccesses}
		case callee.visit == unseen:
			return little
		default:
			return callee.unpaid
		}
	case indirectCall:
		return little
	case bulk:
		return work{bytes: bulkCost}
	case smallBulk:
		return work{bytes: uint64(e.arg)}
	default:
		return work{}
	}
}
