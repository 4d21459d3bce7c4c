package test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// Clients that know but one host are answered by it until it has handed over: no request finds it gone before another
// host leads.
func TestClusterAnswersWhileAHostEnds(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ctx, cancel := context.WithTimeout(t.Context(), roundTime)
	defer cancel()
	c.awaitLeader(nil)
	for round := range 3 {
		leader, _ := c.awaitLeader(nil)
		until(ctx, c, "two standbys", func() bool {
			hosts, err := leader.api.Hosts(ctx)
			return err == nil && len(hosts) == 3
		})
		var clients sync.WaitGroup
		failed := make([]time.Time, 4)
		led := make(chan struct{})
		for i := range failed {
			clients.Go(func() {
				for n := 0; ; n++ {
					_, err := leader.api.Submit(ctx, jobhost.Spec{ID: fmt.Sprintf("%d-%d-%d", round, i, n), Worker: "echo"})
					if err != nil {
						failed[i] = time.Now()
						return
					}
					select {
					case <-led:
						return
					default:
					}
				}
			})
		}
		_ = leader.process.cmd.Process.Signal(syscall.SIGTERM)
		c.awaitLeader(leader)
		leads := time.Now()
		close(led)
		clients.Wait()
		for _, at := range failed {
			if !at.IsZero() && at.Before(leads) {
				t.Errorf("round %d: the host was gone %v before another one led", round, leads.Sub(at))
			}
		}
		if code := leader.process.wait(); code != 0 {
			t.Errorf("it ended with %d", code)
		}
		leader.process = leader.start()
	}
	c.stop()
}

// A host whose clients read what never ends, and wait for what does not, ends soon all the same.
func TestClusterHostEndsWithReaders(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ctx, cancel := context.WithTimeout(t.Context(), roundTime)
	defer cancel()
	leader, _ := c.awaitLeader(nil)
	h := c.standby(leader, 0)
	c.door.hold()
	c.submit(ctx, jobhost.Spec{ID: "held", Worker: "door", Payload: []byte("GET " + c.door.URL + "/")})
	var readers sync.WaitGroup
	reads := make(chan struct{})
	readers.Go(func() {
		first := sync.OnceFunc(func() { close(reads) })
		for range h.api.Events(ctx, jobhost.EventQuery{}) {
			first()
		}
	})
	readers.Go(func() { _, _ = h.api.Wait(ctx, "held") })
	until(ctx, c, "a reader", func() bool {
		c.submit(ctx, jobhost.Spec{Worker: "echo"})
		select {
		case <-reads:
			return true
		default:
			return false
		}
	})
	if code := h.process.stop(); code != 0 { // as after the 10 s in which requests may end
		t.Errorf("it ended with %d:\n%s", code, c.logs())
	}
	cancel()
	readers.Wait()
	c.door.release()
}
