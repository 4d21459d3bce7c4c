package netproxy

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// watched begins an exchange without sending anything.
func watched(c *Client, timeout time.Duration) *exchange {
	x := &exchange{client: c, began: time.Now(), timeout: timeout}
	x.life.begin(context.Background(), context.Background())
	x.watchdog = c.watch(x)
	return x
}

// TestWatchdogBarksLate: a bark that comes after its exchange has ended doesn't affect
// the next one, whose own deadline applies.
func TestWatchdogBarksLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Client{cfg: Config{IdleTimeout: time.Minute}}
		first := watched(c, time.Second)
		w := first.watchdog
		c.unwatch(w)
		w.bark() // without an exchange
		next := &exchange{client: c, began: time.Now(), timeout: 2 * time.Second}
		next.life.begin(context.Background(), context.Background())
		w.mu.Lock()
		w.x = next
		w.mu.Unlock()
		w.bark()
		if err := next.life.why(); err != nil {
			t.Fatalf("the next exchange has ended: %v", err)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if err := next.life.why(); !errors.Is(err, errDeadline) {
			t.Errorf("after its timeout: %v", err)
		}
		if err := first.life.why(); err != nil {
			t.Errorf("the first exchange was ended: %v", err)
		}
	})
}

// TestWatchdogHammer: exchanges begin, end and time out concurrently.
func TestWatchdogHammer(t *testing.T) {
	t.Parallel()
	c := &Client{cfg: Config{IdleTimeout: time.Minute}}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 500 {
				x := watched(c, time.Hour)
				x.expect()
				if (n+i)%3 == 0 {
					x.watchdog.bark()
				}
				w := x.watchdog
				c.unwatch(w)
				w.bark() // late
				if err := x.life.why(); err != nil {
					t.Errorf("ended: %v", err)
				}
			}
		})
	}
	all.Wait()
}
