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
	disabled string        // why nothing is started any more; empty = something is
	told     func(reason string)
	suspects suspects
	alone    sync.Mutex // held by the run of a suspect
}

// member is a place for a process.
type member struct {
	child *child // nil = there is none at the moment
	slots int    // instances that use it
}

// A plugin is disabled after so many failures in so long.
const (
	maxFailures = 5
	failureTime = time.Minute
)

func newCrew(e *engine, worker string, strict bool, start func(context.Context) (*child, error)) *crew {
	c := &crew{engine: e, worker: worker, strict: strict, start: start, changed: make(chan struct{})}
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
	c.end()
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

// watch waits until a process has ended, or is to. One that doesn't answer is ended.
func (c *crew) watch(ch *child) {
	ticker := time.NewTicker(healthTime)
	defer ticker.Stop()
	for {
		select {
		case <-ch.life.Done():
			return
		case <-c.life.Done():
			ch.leave()
			return
		case <-ticker.C:
			if !ch.healthy() {
				ch.hang()
			}
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
	c.engine.logger.Warn("process has ended", logkey.Worker, c.worker, "pid", gone.process.ID(), logkey.Reason, string(why), "end", gone.process.end())
	if c.strict {
		c.failed("its process ended (" + string(why) + "): " + gone.process.end())
	}
}

// replace starts a process for a place, when it is time, and reports whether there is one.
func (c *crew) replace(m *member) bool {
	if !c.pause() {
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
		c.engine.logger.Error("process does not start", logkey.Worker, c.worker, logkey.Error, err)
		c.failed("its process does not start: " + err.Error())
		return false
	}
	c.engine.observe.Started(c.worker, child.process.cmd.Process.Pid)
	c.mu.Lock()
	m.child = child
	c.turnLocked()
	c.mu.Unlock()
	return true
}

// pause waits as long as there were failures lately: not at all after the first, and until somebody enables the
// plugin if there were too many. It reports whether to go on.
func (c *crew) pause() bool {
	for {
		c.mu.Lock()
		wait, changed, disabled := c.backoffLocked(), c.changed, c.disabled != ""
		c.mu.Unlock()
		if !disabled && wait <= 0 {
			return c.life.Err() == nil
		}
		var after <-chan time.Time
		if !disabled {
			after = time.After(wait)
		}
		select {
		case <-after:
			return true
		case <-changed:
		case <-c.life.Done():
			return false
		}
	}
}

// backoffLocked is how long to wait since the last failure.
func (c *crew) backoffLocked() time.Duration {
	c.forgetLocked()
	n := len(c.failures)
	if n < 2 {
		return 0
	}
	return time.Until(c.failures[n-1].Add(100 * time.Millisecond << (2 * (n - 2))))
}

func (c *crew) forgetLocked() {
	for len(c.failures) > 0 && time.Since(c.failures[0]) > failureTime {
		c.failures = c.failures[1:]
	}
}

// failed counts a failure, and disables the plugin when there were too many.
func (c *crew) failed(why string) {
	c.mu.Lock()
	c.failures = append(c.failures, time.Now())
	c.forgetLocked()
	if len(c.failures) < maxFailures || c.disabled != "" {
		c.mu.Unlock()
		return
	}
	c.disabled = "5 failures within a minute, the last: " + why
	reason, told := c.disabled, c.told
	c.turnLocked()
	c.mu.Unlock()
	c.engine.logger.Error("worker is disabled", logkey.Worker, c.worker, logkey.Reason, reason)
	if told != nil {
		told(reason)
	}
}

// onDisabled sets who is told; nil = nobody any more.
func (c *crew) onDisabled(told func(reason string)) {
	c.mu.Lock()
	c.told = told
	reason := c.disabled
	c.mu.Unlock()
	if told != nil && reason != "" {
		told(reason)
	}
}

// enable makes a plugin that was disabled begin anew.
func (c *crew) enable() {
	c.mu.Lock()
	was, told := c.disabled, c.told
	c.disabled, c.failures = "", nil
	c.turnLocked()
	c.mu.Unlock()
	if was != "" && told != nil {
		told("")
	}
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
	c.slot++
	return &instance{crew: c, place: place, slot: c.slot}
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
