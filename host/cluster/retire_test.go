package cluster_test

import (
	"sync"
	"testing"
)

// TestRetire: a host that is to end answers all that it is asked until another one leads, and passes it on after that.
func TestRetire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.join(t, "a")
	first := a.leads(t)
	b := w.join(t, "b")
	b.standsBy(t, "a")
	if !awaitSuccessor(a) {
		t.Fatal("a doesn't know of b")
	}
	over := make(chan struct{})
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for {
				if got := a.get(t, "/"); got != "a" && got != "b" {
					t.Errorf("it is answered %q", got)
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	if !a.Retire(t.Context()) {
		t.Error("a finds no host that leads after it")
	}
	first.ends(t)
	a.standsBy(t, "b")
	close(over)
	asking.Wait()
	b.leads(t)
	b.stop()
	if err := <-b.ended; err != nil {
		t.Error(err)
	}
	if a.Retire(t.Context()) {
		t.Error("there is no other host")
	}
	select {
	case <-a.lives:
		t.Error("a leads again")
	default:
	}
}
