package queue

import "sync"

// gate bounds how many tasks run at once over all workers. Lanes that found it
// shut are served in the order in which they came, so none starves.
type gate struct {
	mu    sync.Mutex // protects free and queue
	free  int
	queue []*lane
	open  bool // no bound
}

func newGate(limit int) *gate { return &gate{free: limit, open: limit <= 0} }

// enter takes a place; without one it remembers the lane, whose turn comes
// when another task leaves.
func (g *gate) enter(l *lane) bool {
	if g.open {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		return true
	}
	for _, waiting := range g.queue {
		if waiting == l {
			return false
		}
	}
	g.queue = append(g.queue, l)
	return false
}

// leave gives a place back and lets the lanes that wait try again. The caller
// must not hold a lane's lock.
func (g *gate) leave() {
	if g.open {
		return
	}
	g.mu.Lock()
	g.free++
	for g.free > 0 && len(g.queue) > 0 {
		l := g.queue[0]
		g.queue = append(g.queue[:0], g.queue[1:]...)
		// Lanes take their lock before the gate's, so the gate lets go of its own first.
		g.mu.Unlock()
		l.mu.Lock()
		l.pumpLocked()
		l.mu.Unlock()
		g.mu.Lock()
	}
	g.mu.Unlock()
}
