package cluster

import (
	"net/http"
	"sync"
	"time"
)

// drainTime is how long requests may take to end when this host gives up its term. Waits and streams are ended, so only uploads
// need it.
const drainTime = 500 * time.Millisecond

// local is the API of this host during a term in which it leads.
type local struct {
	handler http.Handler
	stop    func() // ends waits and streams

	mu   sync.Mutex    // protects the rest
	busy int           // requests under way
	over bool          // no more requests are accepted
	idle chan struct{} // closed when it is over and no request is under way
}

func newLocal(handler http.Handler, stop func()) *local {
	return &local{handler: handler, stop: stop, idle: make(chan struct{})}
}

// serve calls a function to answer a request; false = the term is about to end, and it was not called.
func (l *local) serve(answer func(http.Handler)) bool {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return false
	}
	l.busy++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.busy--; l.over && l.busy == 0 {
			close(l.idle)
		}
	}()
	answer(l.handler)
	return true
}

// drain accepts no more requests, and waits for those under way, so that they don't fail because the host gives up its term.
func (l *local) drain() {
	l.mu.Lock()
	l.over = true
	busy := l.busy
	l.mu.Unlock()
	if busy == 0 {
		return
	}
	l.stop()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-l.idle:
	case <-timer.C:
	}
}
