package process

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// supervisor keeps the processes of a plugin running: it restarts each one that ends.
type supervisor struct {
	engine *engine
	worker string
	start  func(context.Context) (*child, error) // starts one and opens its stream
	// strict counts every end of a process as a failure of the plugin, not only failed starts.
	strict bool

	life context.Context // ends when the supervisor is stopped
	end  context.CancelFunc
	wait sync.WaitGroup // of the places' goroutines

	mu       sync.Mutex // protects the rest
	places   []*place
	slot     uint32              // the last one assigned
	changed  chan struct{}       // closed when a place gets a process or the supervisor is disabled or enabled
	failures []time.Time         // of the last minute
	lost     int                 // consecutive failed starts
	disabled string              // why no more processes are started; empty = they are
	notify   func(reason string) // called when disabled changes; nil = none
	suspects suspects

	notifying sync.Mutex    // held during notify; taken before mu
	notified  string        // the reason last passed to notify; protected by notifying
	alone     chan struct{} // has a value while a suspect runs
}

// place holds one process at a time, and the instances that use it.
type place struct {
	child *child // nil = none at the moment
	slots int    // instances that use it
}

func newSupervisor(e *engine, worker string, strict bool, start func(context.Context) (*child, error)) *supervisor {
	c := &supervisor{engine: e, worker: worker, strict: strict, start: start, changed: make(chan struct{}), alone: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// launchAll keeps n processes running. The caller has started the first one.
func (s *supervisor) launchAll(first *child, n int) {
	for i := range n {
		m := &place{}
		if i == 0 {
			m.child = first
			s.engine.observe.Started(s.worker, first.process.cmd.Process.Pid)
		}
		s.places = append(s.places, m)
	}
	for _, m := range s.places {
		s.wait.Go(func() { s.supervise(m) })
	}
}

// stop ends the processes and waits until they have ended.
func (s *supervisor) stop() {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.wait.Wait()
}

// supervise keeps a process running in a place until the supervisor is stopped.
func (s *supervisor) supervise(m *place) {
	for s.life.Err() == nil {
		if m.child == nil && !s.replace(m) {
			continue
		}
		s.watch(m.child)
		s.remove(m)
	}
	if m.child != nil {
		m.child.leave()
		s.remove(m)
	}
}

// watch returns when a process has ended, or must end. It kills one that doesn't answer, and one that doesn't read
// while an attempt in it is past its deadline.
func (s *supervisor) watch(ch *child) {
	ticker := time.NewTicker(lookTime)
	defer ticker.Stop()
	asked := time.Now()
	for {
		select {
		case <-ch.life.Done():
			return
		case <-s.life.Done():
			ch.leave()
			return
		case <-ticker.C:
		}
		if r := ch.overdue(); r != nil {
			ch.killFor(r)
		}
		if ch.stuck() {
			ch.hang()
		}
		if time.Since(asked) < healthTime {
			continue
		}
		if asked = time.Now(); !ch.healthy() {
			ch.hang()
		}
	}
}

// remove takes a process that has ended, or must, out of its place.
func (s *supervisor) remove(m *place) {
	gone := m.child
	s.mu.Lock()
	m.child = nil
	s.mu.Unlock()
	gone.close()
	why := gone.cause(s.life.Err() != nil)
	s.engine.observe.Ended(s.worker, string(why))
	if why == EndedClosed {
		return
	}
	s.engine.logger.Warn("process has ended", logkey.Worker, s.worker, "pid", gone.process.ID(), logkey.Reason, string(why), "end", gone.endText())
	if s.strict {
		s.failed("its process ended (" + string(why) + "): " + gone.endText())
	}
}

// replace starts a process for a place once the backoff is over, and reports whether it did.
func (s *supervisor) replace(m *place) bool {
	if s.pause(s.life, true) != nil {
		return false
	}
	child, err := s.start(s.life)
	if s.life.Err() != nil {
		if err == nil {
			child.close()
		}
		return false
	}
	if err != nil {
		s.notStarted(err)
		return false
	}
	s.engine.observe.Started(s.worker, child.process.cmd.Process.Pid)
	s.mu.Lock()
	m.child, s.lost = child, 0
	s.fitLocked(m)
	s.broadcastLocked()
	s.mu.Unlock()
	return true
}

// broadcastLocked wakes everything that waits for a process.
func (s *supervisor) broadcastLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// join assigns an instance to a place: the one with the fewest others.
func (s *supervisor) join() *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := s.places[0]
	for _, m := range s.places {
		if m.slots < place.slots {
			place = m
		}
	}
	place.slots++
	s.fitLocked(place)
	s.slot++
	return &instance{supervisor: s, place: place, slot: s.slot, timer: stoppedTimer()}
}

// leave removes an instance from its place.
func (s *supervisor) leave(i *instance) {
	s.mu.Lock()
	i.place.slots--
	child := i.place.child
	s.mu.Unlock()
	if child != nil {
		child.release(i.slot)
	}
}

// Why a run could not begin.
var (
	errClosed   = errors.New("the plugin is closed")
	errDisabled = errors.New("the plugin is disabled")
)

// enterNow begins a run in the process of a place if there is one.
func (s *supervisor) enterNow(m *place, r *run) bool {
	s.mu.Lock()
	child := m.child
	s.mu.Unlock()
	return s.life.Err() == nil && child != nil && child.begin(r)
}

// enter waits for the process of a place and begins a run in it.
func (s *supervisor) enter(ctx context.Context, m *place, r *run) error {
	for {
		s.mu.Lock()
		child, changed, disabled := m.child, s.changed, s.disabled
		s.mu.Unlock()
		switch {
		case s.life.Err() != nil:
			return errClosed
		case child != nil && child.begin(r):
			return nil
		case disabled != "":
			return errDisabled
		}
		var gone <-chan struct{} // a process that is dead, but still in its place
		if child != nil {
			gone = child.life.Done()
		}
		select {
		case <-changed:
			continue
		case <-s.life.Done():
			return errClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-gone:
		}
		// It will be removed from its place, and replaced.
		select {
		case <-changed:
		case <-s.life.Done():
			return errClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
