package queue

import "sync"

// inflight counts commits under way, so that Close can wait for the last one
// with a context, which a WaitGroup can't do without a goroutine.
type inflight struct {
	mu    sync.Mutex // protects n and empty
	n     int
	empty chan struct{} // closed at n = 0, while somebody waits
}

func (f *inflight) add() {
	f.mu.Lock()
	f.n++
	f.mu.Unlock()
}

func (f *inflight) done() {
	f.mu.Lock()
	f.n--
	if f.n == 0 && f.empty != nil {
		close(f.empty)
		f.empty = nil
	}
	f.mu.Unlock()
}

// idle returns a channel that is closed when nothing is under way.
func (f *inflight) idle() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if f.empty == nil {
		f.empty = make(chan struct{})
	}
	return f.empty
}
