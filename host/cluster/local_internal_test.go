package cluster

import (
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLocalHammer: requests come while the term ends. Each is answered before drain returns, or not at all.
func TestLocalHammer(t *testing.T) {
	t.Parallel()
	for range 200 {
		stop := make(chan struct{})
		var stops, drained atomic.Int32
		l := newLocal(http.NotFoundHandler(), func() {
			stops.Add(1)
			close(stop)
		})
		var clients sync.WaitGroup
		var begun, ended, refused atomic.Int32
		for i := range 8 {
			clients.Go(func() {
				for l.serve(func(http.Handler) {
					begun.Add(1)
					if i == 0 {
						<-stop // a wait
					}
					if drained.Load() != 0 {
						t.Error("a request goes on after the drain")
					}
					ended.Add(1)
				}) {
				}
				refused.Add(1)
			})
		}
		for begun.Load() < 20 {
			runtime.Gosched()
		}
		l.drain()
		drained.Store(1)
		clients.Wait()
		if begun.Load() != ended.Load() || refused.Load() != 8 || stops.Load() > 1 {
			t.Fatalf("%d begun, %d ended, %d refused, stopped %d times", begun.Load(), ended.Load(), refused.Load(), stops.Load())
		}
	}
}
