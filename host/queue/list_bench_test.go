package queue

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
)

// BenchmarkListAMillion measures a page of a list, and for how long it holds
// the lock that dispatch needs: to take the views, and after that to change what
// they show.
func BenchmarkListAMillion(b *testing.B) {
	for _, state := range []jobhost.State{jobhost.Ready, jobhost.Scheduled} {
		b.Run(state.String(), func(b *testing.B) {
			l := newLane(&Queue{clock: newClock(time.Now)}, "w")
			l.worker.Store(&Worker{})
			l.parked.Store(false)
			l.advanceLocked()
			var first order.Entry
			for i := range 1_000_000 {
				e := order.Entry{Key: record.Key(i + 1), ReadyAt: l.order.Now()}
				if state == jobhost.Scheduled {
					e.ReadyAt += record.Millis(1_000_000_000 + i*7919%1_000_003)
				}
				if i == 0 {
					first = e
				}
				l.order.Push(e, order.Traits{})
			}
			var locked, worst time.Duration
			for b.Loop() {
				began := time.Now()
				l.views(state)
				l.order.Push(order.Entry{Key: 2_000_000, ReadyAt: first.ReadyAt}, order.Traits{})
				if state == jobhost.Ready {
					next, _ := l.order.Next()
					l.order.Take(next)
				}
				took := time.Since(began)
				locked, worst = locked+took, max(worst, took)
				newest := newestKeys{limit: 51}
				l.jobsIn(state, 0, &newest)
				if len(newest.sorted()) != 51 {
					b.Fatal("the page is not full")
				}
			}
			b.ReportMetric(float64(locked.Microseconds())/float64(b.N), "µs-locked/op")
			b.ReportMetric(float64(worst.Microseconds()), "µs-locked-worst")
		})
	}
}
