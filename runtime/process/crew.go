package process

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// crew are the processes of a plugin. Each is started again when it has ended.
type crew struct {
	engine *engine
	worker string
	start  func(context.Context) (*child, error) // starts one and opens its stream
	// strict says that whatever ends a process is a failure of the plugin, and not only that it doesn't start.
	strict bool

	life context.Context // ends when the crew is dismissed
	end  context.CancelFunc
	wait sync.WaitGroup // of the members' goroutines

	mu       sync.Mutex // protects the rest
	members  []*member
	slot     uint32        // the last that was given
	changed  chan struct{} // closed when a place gets a process or the crew is disabled or enabled
	failures []time.Time   // of the last minute
	lost     int           // starts that have failed one after the other
	disabled string        // why nothing is started any more; empty = something is
	told     func(reason string)
	suspects suspects

	telling sync.Mutex    // held while somebody is told; before mu
	said    string        // what was told last; of telling
	alone   chan struct{} // has one while a suspect runs
}

// member is a place for a process.
type member struct {
	child *child // nil = there is none at the moment
	slots int    // instances that use it
}

func newCrew(e *engine, worker string, strict bool, start func(context.Context) (*child, error)) *crew {
	c := &crew{engine: e, worker: worker, strict: strict, start: start, changed: make(chan struct{}), alone: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// hire keeps n processes running, of which the first is there already.
func (c *crew) hire(first *child, n int) {
	for i := range n {
		m := &member{}
		if i == 0 {
			m.child = first
			c.engine.observe.Started(c.worker, first.process.cmd.Process.Pid)
		}
		c.members = append(c.members, m)
	}
	for _, m := range c.members {
		c.wait.Go(func() { c.keep(m) })
	}
}

// dismiss ends the processes and waits for that.
func (c *crew) dismiss() {
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.wait.Wait()
}

// keep keeps a process running, until the crew is dismissed.
func (c *crew) keep(m *member) {
	for c.life.Err() == nil {
		if m.child == nil && !c.replace(m) {
			continue
		}
		c.watch(m.child)
		c.bury(m)
	}
	if m.child != nil {
		m.child.leave()
		c.bury(m)
	}
}

// watch waits until a process has ended, or is to. One that doesn't answer is ended, and one that doesn't read when the
// time of an attempt in it is over.
func (c *crew) watch(ch *child) {
	ticker := time.NewTicker(lookTime)
	defer ticker.Stop()
	asked := time.Now()
	for {
		select {
		case <-ch.life.Done():
			return
		case <-c.life.Done():
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

// bury takes a process out of its place that has ended, or is to.
func (c *crew) bury(m *member) {
	gone := m.child
	c.mu.Lock()
	m.child = nil
	c.mu.Unlock()
	gone.close()
	why := gone.cause(c.life.Err() != nil)
	c.engine.observe.Ended(c.worker, string(why))
	if why == EndedClosed {
		return
	}
	c.engine.logger.Warn("process has ended", logkey.Worker, c.worker, "pid", gone.process.ID(), logkey.Reason, string(why), "end", gone.endText())
	if c.strict {
		c.failed("its process ended (" + string(why) + "): " + gone.endText())
	}
}

// replace starts a process for a place, when it is time, and reports whether there is one.
func (c *crew) replace(m *member) bool {
	if c.pause(c.life, true) != nil {
		return false
	}
	child, err := c.start(c.life)
	if c.life.Err() != nil {
		if err == nil {
			child.close()
		}
		return false
	}
	if err != nil {
		c.notStarted(err)
		return false
	}
	c.engine.observe.Started(c.worker, child.process.cmd.Process.Pid)
	c.mu.Lock()
	m.child, c.lost = child, 0
	c.fitLocked(m)
	c.turnLocked()
	c.mu.Unlock()
	return true
}

func (c *crew) turnLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// join gives an instance its place: the one with the fewest others.
func (c *crew) join() *instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	place := c.members[0]
	for _, m := range c.members {
		if m.slots < place.slots {
			place = m
		}
	}
	place.slots++
	c.fitLocked(place)
	c.slot++
	return &instance{crew: c, place: place, slot: c.slot, timer: stoppedTimer()}
}

// leave gives the place of an instance up.
func (c *crew) leave(i *instance) {
	c.mu.Lock()
	i.place.slots--
	child := i.place.child
	c.mu.Unlock()
	if child != nil {
		child.release(i.slot)
	}
}

// Why a run could not begin.
var (
	errDismissed = errors.New("the plugin is closed")
	errDisabled  = errors.New("the plugin is disabled")
)

// enterNow begins a run in the process of a place if there is one.
func (c *crew) enterNow(m *member, r *run) bool {
	c.mu.Lock()
	child := m.child
	c.mu.Unlock()
	return c.life.Err() == nil && child != nil && child.begin(r)
}

// enter waits for the process of a place and begins a run in it.
func (c *crew) enter(ctx context.Context, m *member, r *run) error {
	for {
		c.mu.Lock()
		child, changed, disabled := m.child, c.changed, c.disabled
		c.mu.Unlock()
		switch {
		case c.life.Err() != nil:
			return errDismissed
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
		case <-c.life.Done():
			return errDismissed
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-gone:
		}
		// It will be taken out of its place, and another put there.
		select {
		case <-changed:
		case <-c.life.Done():
			return errDismissed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
