package process

import "errors"

// Bounds of the frames of a process that have not been handled yet, for all of its runs.
const (
	lightFrame = 64 << 10  // smaller frames aren't counted: each run has few
	maxHeld    = 64 << 20  // bytes of frames at which the stream blocks
	maxPartial = 256 << 20 // bytes of incomplete frames above which the process violates the protocol
)

var errPartial = errors.New("frames in pieces that are not whole have more than 256 MiB together")

// hold waits until there is room for a frame. It reports false if the run has ended.
func (c *child) hold(r *run, size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.held > maxHeld && c.runs[r.id] == r {
		c.room.Wait()
	}
	if c.runs[r.id] != r {
		return false
	}
	c.held += size
	r.held += size
	return true
}

// letGo makes room again. A frame that was light on arrival, and so isn't held, may turn out to be larger.
func (c *child) letGo(r *run, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size = min(size, r.held)
	c.held -= size
	r.held -= size
	c.room.Broadcast()
}

// gather records that a run has n bytes of an incomplete frame.
func (c *child) gather(r *run, size int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs[r.id] != r {
		return nil // it has ended
	}
	c.partial += size - r.partial
	r.partial = size
	if c.partial > maxPartial {
		return errPartial
	}
	return nil
}

// forgetLocked drops what is held for a run that has ended.
func (c *child) forgetLocked(r *run) {
	c.held -= r.held
	c.partial -= r.partial
	r.held, r.partial = 0, 0
	c.room.Broadcast()
}
