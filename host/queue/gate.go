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
	if l.granted {
		l.granted = false
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

// leave gives a place back: to the lane that has waited longest and has a use
// for it, so that none that came later can take it. The caller must not hold a
// lane's lock.
func (g *gate) leave() {
	for !g.open {
		g.mu.Lock()
		if len(g.queue) == 0 {
			g.free++
			g.mu.Unlock()
			return
		}
		l := g.queue[0]
		g.queue = append(g.queue[:0], g.queue[1:]...)
		// Lanes take their lock before the gate's, so the gate lets go of its own first.
		g.mu.Unlock()
		l.mu.Lock()
		l.granted = true
		l.pumpLocked()
		used := !l.granted
		l.granted = false
		l.mu.Unlock()
		if used {
			return
		}
	}
}
