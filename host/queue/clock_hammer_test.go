package queue

import (
	"sync"
	"testing"
	"time"
)

// The clock is read by many while it is made faster and slower, and none sees it going back by more than the
// time in which the speed changes is worth.
func TestClockHammer(t *testing.T) {
	t.Parallel()
	c := newClock(time.Now)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for before := c.now(); ; {
				select {
				case <-stop:
					return
				default:
				}
				now := c.now()
				if now.Before(before.Add(-100 * time.Millisecond)) {
					t.Errorf("the clock went back by %v", before.Sub(now))
				}
				before = now
			}
		})
	}
	for i := range 2000 {
		c.follow(time.Duration(i%3-1) * time.Second)
	}
	close(stop)
	readers.Wait()
	if apart := c.ahead(); apart.Abs() > time.Second {
		t.Errorf("the clock is off by %v", apart)
	}
}
