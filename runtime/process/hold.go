package process

import "errors"

// Bounds of what a process says that was not dealt with yet, for all of its runs.
const (
	lightFrame = 64 << 10  // those that are no larger aren't counted: of each run there are few
	maxHeld    = 64 << 20  // bytes of frames, after which the stream waits
	maxPartial = 256 << 20 // bytes of frames that are not whole yet, after which the process makes no sense
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

// letGo makes room again. A frame that was light as it came, and so isn't held, may have a size that isn't.
func (c *child) letGo(r *run, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size = min(size, r.held)
	c.held -= size
	r.held -= size
	c.room.Broadcast()
}

// gather notes that a run has so many bytes of a frame that is not whole.
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

// forgetLocked forgets what a run that has ended was told.
func (c *child) forgetLocked(r *run) {
	c.held -= r.held
	c.partial -= r.partial
	r.held, r.partial = 0, 0
	c.room.Broadcast()
}
