package rig_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// beat is a ticker of a millisecond that notes how late it is, and a collector
// of garbage beside it, for which all that runs must let itself be preempted.
type beat struct {
	late   atomic.Int64 // the most so far, in nanoseconds
	idle   atomic.Bool  // nothing is collected but what the runtime collects by itself
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

// take returns how late it was since it was last asked.
func (b *beat) take() time.Duration { return time.Duration(b.late.Swap(0)) }

func (b *beat) stop() {
	close(b.done)
	b.ending.Wait()
}
