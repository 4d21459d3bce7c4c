package process

import (
	"context"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// A plugin is disabled after so many failures in so long.
const (
	maxFailures = 5
	failureTime = time.Minute
)

// notStarted notes that a process did not start.
func (c *crew) notStarted(err error) {
	c.engine.logger.Error("process does not start", logkey.Worker, c.worker, logkey.Error, err)
	c.mu.Lock()
	c.lost++
	c.mu.Unlock()
	c.failed("its process does not start: " + err.Error())
}

// pause waits as long as there were failures lately: not at all after the first, and until somebody enables the
// plugin if there were too many, when patient; others get errDisabled.
func (c *crew) pause(ctx context.Context, patient bool) error {
	for {
		c.mu.Lock()
		wait, changed, disabled := c.backoffLocked(), c.changed, c.disabled != ""
		c.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case disabled && !patient:
			return errDisabled
		case !disabled && wait <= 0:
			return nil
		}
		var after <-chan time.Time
		if !disabled {
			after = time.After(wait)
		}
		select {
		case <-after:
			return nil
		case <-changed:
		case <-ctx.Done():
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
	var reason string
	switch {
	case c.disabled != "":
	case len(c.failures) >= maxFailures:
		reason = "5 failures within a minute, the last: " + why
	case c.lost >= maxFailures: // each may take longer than the minute has room for
		reason = "5 failures one after the other, the last: " + why
	}
	if reason == "" {
		c.mu.Unlock()
		return
	}
	c.disabled = reason
	c.turnLocked()
	c.mu.Unlock()
	c.engine.logger.Error("worker is disabled", logkey.Worker, c.worker, logkey.Reason, reason)
	c.tell()
}

// tell tells whether the plugin is disabled, if that is news. What is told is how it is at that time: several who
// want to tell something don't overtake each other.
func (c *crew) tell() {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.mu.Lock()
	told, reason := c.told, c.disabled
	c.mu.Unlock()
	if told != nil && reason != c.said {
		c.said = reason
		told(reason)
	}
}

// onDisabled sets who is told; nil = nobody any more, not even of what was about to be told.
func (c *crew) onDisabled(told func(reason string)) {
	c.telling.Lock()
	c.mu.Lock()
	c.told, c.said = told, ""
	c.mu.Unlock()
	c.telling.Unlock()
	c.tell()
}

// enable makes a plugin that was disabled begin anew.
func (c *crew) enable() {
	c.mu.Lock()
	c.disabled, c.failures, c.lost = "", nil, 0
	c.turnLocked()
	c.mu.Unlock()
	c.tell()
}
