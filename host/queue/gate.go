package queue

import (
	"math"
	"slices"
	"sync"
)

// SetMaxMemory changes what all running tasks may take; 0 = no bound. Tasks
// that take more already go on.
func (q *Queue) SetMaxMemory(bytes int64) { q.gate.resize(bytes) }

// gate bounds how many tasks run at once on a machine over all workers, and how much
// memory their sandboxes may take together. Lanes that found it shut are served in
// the order in which they came, so none starves: while one waits that needs
// much memory, no other one is let in before it.
type gate struct {
	mu     sync.Mutex // protects places, memory and queue
	places int
	memory int64 // bytes that are left; less than 0 when the bound was lowered
	bound  int64 // of memory
	queue  []*lane
}

// place is what a task that runs has of its machine.
type place struct {
	gate   *gate // nil = there is no place
	memory int64
}

// leave gives the place back. The caller must not hold a lane's lock.
func (p place) leave() { p.gate.leave(p.memory) }

// newGate returns a gate for so many tasks and bytes; 0 = no bound.
func newGate(places int, memory int64) *gate {
	g := &gate{places: places, memory: bounded(memory), bound: bounded(memory)}
	if places <= 0 {
		g.places = math.MaxInt
	}
	return g
}

// bounded turns no bound into one that is never reached.
func bounded(memory int64) int64 {
	if memory <= 0 {
		return math.MaxInt64 / 2
	}
	return memory
}

// resize changes the bound of memory and lets those in for whom there is room now.
func (g *gate) resize(memory int64) {
	g.mu.Lock()
	g.memory += bounded(memory) - g.bound
	g.bound = bounded(memory)
	g.mu.Unlock()
	g.admit()
}

// enter takes a place, with the memory that a task of the lane may use. Without them
// it remembers the lane, which is served when other tasks leave. A lane that was granted a place enters with that one.
func (g *gate) enter(l *lane) (p place, ok bool) {
	if l.granted.gate != nil {
		if l.granted.gate != g {
			return place{}, false
		}
		p, l.granted = l.granted, place{}
		return p, true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	memory := l.worker.Load().Memory
	if len(g.queue) == 0 && g.takeLocked(memory) {
		return place{g, memory}, true
	}
	if !slices.Contains(g.queue, l) {
		g.queue = append(g.queue, l)
	}
	return place{}, false
}

func (g *gate) takeLocked(memory int64) bool {
	if g.places == 0 || g.memory < memory {
		return false
	}
	g.places--
	g.memory -= memory
	return true
}

// leave gives back what a task had: to the lanes that have waited longest and
// have a use for it, so that none that came later can take it. The caller must
// not hold a lane's lock.
func (g *gate) leave(memory int64) {
	g.give(memory)
	g.admit()
}

// admit lets waiting lanes in, as long as there is room for the first of them.
func (g *gate) admit() {
	for {
		l, memory := g.next()
		if l == nil {
			return
		}
		// Lanes take their lock before the gate's, so the gate has let go of its own.
		if !l.offer(place{g, memory}) {
			g.give(memory)
		}
	}
}

func (g *gate) give(memory int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.places++
	g.memory += memory
}

// next takes what the first lane in the queue waits for, if that is there.
func (g *gate) next() (*lane, int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		return nil, 0
	}
	l := g.queue[0]
	memory := l.worker.Load().Memory
	if !g.takeLocked(memory) {
		return nil, 0
	}
	g.queue = slices.Delete(g.queue, 0, 1)
	return l, memory
}

// offer lets the lane in, and reports whether it had a use for that.
func (l *lane) offer(p place) (used bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted = p
	l.pumpLocked()
	used = l.granted.gate == nil
	l.granted = place{}
	return used
}

// chooseLocked chooses a slot for a task and takes a place on its machine: of the slots that wait,
// the one that waits the shortest where there is room. It returns its index; false = there is no room
// for any of them.
func (l *lane) chooseLocked() (slot int, p place, ok bool) {
	// Nearly always there is room for the first: each task would pay for remembering the others.
	slot = len(l.idle) - 1
	if p, ok = l.idle[slot].gate.enter(l); ok {
		return slot, p, true
	}
	return l.chooseOtherLocked()
}

// chooseOtherLocked is chooseLocked when there is no room for the last slot.
func (l *lane) chooseOtherLocked() (slot int, p place, ok bool) {
	var some [4]*gate
	shut := append(some[:0], l.idle[len(l.idle)-1].gate)
	for i := len(l.idle) - 2; i >= 0; i-- {
		g := l.idle[i].gate
		if slices.Contains(shut, g) {
			continue
		}
		if p, ok := g.enter(l); ok {
			return i, p, true
		}
		shut = append(shut, g)
	}
	return 0, place{}, false
}

// lacks says what keeps tasks of a worker out that a slot waits for: no
// place, or too little memory of what there is in all.
func (g *gate) lacks(memory int64) (places, bytes bool, bound int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.places == 0, g.memory < memory, g.bound
}
