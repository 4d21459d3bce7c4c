package netproxy

import (
	"sync"
	"time"
)

// watchdog ends an exchange that takes too long. It is reused for one exchange
// after the other: creating a timer costs three times as much as resetting it.
type watchdog struct {
	mu    sync.Mutex // protects the following
	timer *time.Timer
	x     *exchange // nil = none
}

// watch returns a watchdog for an exchange that begins.
func (c *Client) watch(x *exchange) *watchdog {
	w, ok := c.watchdogs.Get().(*watchdog)
	if !ok {
		w = &watchdog{}
	}
	first := min(x.timeout, c.cfg.IdleTimeout)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.x = x
	if ok {
		w.timer.Reset(first)
	} else {
		w.timer = time.AfterFunc(first, w.bark)
	}
	return w
}

// unwatch takes back the watchdog of an exchange that has ended. If it is just about
// to bark, it does so for the next exchange, for which an early look is harmless.
func (c *Client) unwatch(w *watchdog) {
	w.mu.Lock()
	w.timer.Stop()
	w.x = nil
	w.mu.Unlock()
	c.watchdogs.Put(w)
}

// bark ends the exchange if something took too long, and otherwise looks again
// later. Resetting the timer for each read would cost more than the read.
func (w *watchdog) bark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.x == nil {
		return
	}
	next, over := w.x.overdue()
	if over != nil {
		w.x.life.end(over)
		return
	}
	w.timer.Reset(next)
}

// overdue returns why the exchange has to end, or when to look again.
func (x *exchange) overdue() (time.Duration, *fault) {
	now, idle := time.Since(x.began), x.client.cfg.IdleTimeout
	next := min(x.timeout, now+idle)
	if since := time.Duration(x.waiting.Load()); since > 0 {
		if next = min(x.timeout, since+idle); next <= now && next < x.timeout {
			return 0, errStalled
		}
	}
	if next <= now {
		return 0, errDeadline
	}
	return next - now, nil
}
