package wasm

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// watchdog stops guests at their deadlines and when the contexts of their runs
// end. There is one for all guests of an engine: it checks the current runs
// every few milliseconds, so that a run needs no timer, no goroutine and no
// registration with a context. When nothing runs for a while it sleeps.
type watchdog struct {
	running atomic.Int64 // current runs
	asleep  atomic.Bool

	mu       sync.Mutex // protects the rest
	stoppers []*stopper
	idle     int // beats without a run
	closed   bool
	timer    *time.Timer
}

const (
	// beat is how often running guests are checked, and so how late they may be
	// stopped; a guest notices within about another millisecond.
	beat = 5 * time.Millisecond
	// maxIdle is the number of idle beats after which the watchdog sleeps: waking
	// it costs a run about a microsecond.
	maxIdle = 200
)

func newWatchdog() *watchdog {
	w := &watchdog{}
	w.asleep.Store(true)
	w.timer = time.AfterFunc(time.Hour, w.look)
	w.timer.Stop()
	return w
}

// watch adds a stopper.
func (w *watchdog) watch(s *stopper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stoppers = append(w.stoppers, s)
}

// forget removes a stopper.
func (w *watchdog) forget(s *stopper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.stoppers, s); i >= 0 {
		last := len(w.stoppers) - 1
		w.stoppers[i] = w.stoppers[last]
		w.stoppers[last] = nil
		w.stoppers = w.stoppers[:last]
	}
}

// begin records a run.
func (w *watchdog) begin() {
	w.running.Add(1)
	if w.asleep.Load() {
		w.wake()
	}
}

// end records the end of a run.
func (w *watchdog) end() { w.running.Add(-1) }

func (w *watchdog) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asleep.CompareAndSwap(true, false) && !w.closed {
		w.idle = 0
		w.timer.Reset(beat)
	}
}

// look is a beat.
func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if w.running.Load() > 0 {
		w.idle = 0
		now := time.Now()
		for _, s := range w.stoppers {
			s.look(now)
		}
	} else if w.idle++; w.idle >= maxIdle {
		// A run that begins now notices that the watchdog sleeps, or is noticed here.
		w.asleep.Store(true)
		if w.running.Load() == 0 || !w.asleep.CompareAndSwap(true, false) {
			return
		}
		w.idle = 0
	}
	w.timer.Reset(beat)
}

// close ends the watch. No run may be in progress.
func (w *watchdog) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.timer.Stop()
}
