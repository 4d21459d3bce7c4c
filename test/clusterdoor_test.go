package test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// door is a server that the jobs with the concurrency key call, and so knows for certain which of them run: a process
// that ends, and an attempt that is cancelled, close their connections.
type door struct {
	*httptest.Server

	mu      sync.Mutex // protects the rest
	inside  map[*http.Request]struct{}
	open    chan struct{} // closed = callers may go; others stay in until they are cancelled
	overlap int           // how often one came while another was in

	knocks chan struct{} // gets one for each request for /knock, which is never answered
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{inside: map[*http.Request]struct{}{}, open: make(chan struct{}), knocks: make(chan struct{}, 100)}
	d.Server = httptest.NewServer(d)
	t.Cleanup(func() {
		d.release()
		d.CloseClientConnections()
		d.Close()
	})
	d.release()
	return d
}

// lag is how long the end of a connection may take to be seen. Those that overlap for less are let go.
const lag = 50 * time.Millisecond

// ServeHTTP implements [http.Handler].
func (d *door) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/knock" {
		d.knocks <- struct{}{}
		<-r.Context().Done()
		return
	}
	d.mu.Lock()
	if len(d.inside) > 0 {
		d.mu.Unlock()
		<-time.After(lag)
		d.mu.Lock()
	}
	if len(d.inside) > 0 && r.Context().Err() == nil {
		d.overlap++
	}
	d.inside[r] = struct{}{}
	open := d.open
	d.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-open:
		<-time.After(20 * time.Millisecond)
	}
	d.mu.Lock()
	delete(d.inside, r)
	d.mu.Unlock()
}

// hold keeps callers in.
func (d *door) hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = make(chan struct{})
}

func (d *door) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.open:
	default:
		close(d.open)
	}
}

// forget forgets those inside, of a process that has ended.
func (d *door) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.inside)
}

// overlaps returns how often two were in at one time, and begins to count anew.
func (d *door) overlaps() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, d.overlap = d.overlap, 0
	return n
}

func (d *door) callers() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.inside)
}
