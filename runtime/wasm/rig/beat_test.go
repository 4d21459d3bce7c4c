package rig_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// beat is a one-millisecond ticker that records how late it is, with a
// concurrent garbage collector, for which all running code must be preemptible.
type beat struct {
	late   atomic.Int64 // the most so far, in nanoseconds
	idle   atomic.Bool  // only the runtime's own collections take place
	done   chan struct{}
	ending sync.WaitGroup
}

func startBeat() *beat {
	b := &beat{done: make(chan struct{})}
	b.ending.Go(func() {
		last := time.Now()
		b.every(time.Millisecond, func() {
			late := time.Since(last) - time.Millisecond
			for old := b.late.Load(); int64(late) > old && !b.late.CompareAndSwap(old, int64(late)); old = b.late.Load() {
			}
			last = time.Now()
		})
	})
	b.ending.Go(func() {
		b.every(20*time.Millisecond, func() {
			if !b.idle.Load() {
				runtime.GC()
			}
		})
	})
	return b
}

func (b *beat) every(d time.Duration, do func()) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-ticker.C:
			do()
		}
	}
}

// take returns the delay since the last call.
func (b *beat) take() time.Duration { return time.Duration(b.late.Swap(0)) }

func (b *beat) stop() {
	close(b.done)
	b.ending.Wait()
}
