package queue

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
)

// BenchmarkDispatch measures what a lane costs a task without its store: from
// ready to a slot's, and off the lane again.
func BenchmarkDispatch(b *testing.B) {
	q := &Queue{clock: newClock(time.Now), cfg: Config{Aging: time.Minute}, gate: newGate(0, 0), closing: make(chan struct{})}
	l := newLane(q, "w")
	l.q.cfg.ResidentBytes = 0
	l.worker.Store(&Worker{})
	l.parked.Store(false)
	slot := &Slot{lane: l, gate: q.gate, handed: make(chan *Lease, 1)}
	for i := 0; b.Loop(); i++ {
		l.mu.Lock()
		l.order.Push(order.Entry{Key: record.Key(i + 1), ReadyAt: l.order.Now(), Level: 2}, order.Traits{})
		l.mu.Unlock()
		lease, err := slot.wait(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		l.finish(lease)
	}
}
