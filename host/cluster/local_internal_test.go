package cluster

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// deadlines is an answer that notes until when the client may take its time.
type deadlines struct {
	httptest.ResponseRecorder
	read time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error { d.read = at; return nil }
func (d *deadlines) SetWriteDeadline(time.Time) error   { return nil }
func (d *deadlines) EnableFullDuplex() error            { return nil }

// TestUnwantedBody: a client that sends nothing of a body which the leader didn't want keeps its connection for a bounded time.
func TestUnwantedBody(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/jobs", http.NoBody)
	r.ContentLength = maxHeld + 1
	w := &deadlines{}
	c := newCall(w, r)
	if err := c.hold(); err != nil || !w.read.IsZero() {
		t.Fatalf("it has until %v, %v", w.read, err)
	}
	if c.end(); w.read.IsZero() || time.Until(w.read) > partTimeout {
		t.Errorf("the server waits for the rest until %v", w.read)
	}
}
