package rewrite

// bounds are what the call graph says of a function.
type bounds struct {
	// free: it needs no tick of its own, since a call of it runs at most cost
	// bytes of code, callees included, that no tick pays for.
	free bool
	// untold is how much of a call of it no tick of its own pays for: all of a
	// free function, and of others what is on the way to their first tick.
	untold uint64
	// entry: it ticks when it is entered.
	entry bool

	visit visit
	// component is the same for functions that may call each other in turn.
	component int
}

type visit uint8

const (
	unseen visit = iota
	open         // on the path of the search
	done
)

// judge decides which functions are free and which tick at their entry.
//
// Only what is outside of loops counts, as loops tick by themselves. A function
// is free when it is small together with all that it calls: then nothing of it
// is recursive, and it calls nothing by reference.
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

// conclude decides about a function whose callees are decided, but for those
// that are still open: these call it in turn.
func (s *survey) conclude(f *function) {
	own, calls := f.bytes, false
	for i := range f.events {
		switch e := &f.events[i]; {
		case e.inLoop:
		case s.costsLittle(e):
			own += s.cost(e)
		default:
			calls = true
		}
	}
	f.untold = min(own, grain) // for a function that calls itself
	total := own
	for i := range f.events {
		if e := &f.events[i]; !e.inLoop && !s.costsLittle(e) {
			total += s.cost(e)
		}
	}
	f.visit = done
	f.entry = total > grain
	f.free = !f.entry && !calls
	if f.entry {
		f.untold = 0
	}
}

// costsLittle reports whether an event is no call, or of a free function or
// the host.
func (s *survey) costsLittle(e *event) bool {
	switch e.kind {
	case directCall:
		callee, ok := s.defined(e.arg)
		return !ok || callee.free
	case indirectCall:
		return false
	default:
		return true
	}
}

// cost is what an event costs beside its bytes, in bytes of code.
func (s *survey) cost(e *event) uint64 {
	switch e.kind {
	case directCall:
		callee, ok := s.defined(e.arg)
		switch {
		case !ok:
			return hostCost
		case callee.visit == unseen:
			return grain
		default:
			return callee.untold
		}
	case indirectCall:
		return grain
	case bulk:
		return bulkCost
	case smallBulk:
		return uint64(e.arg)
	default:
		return 0
	}
}
