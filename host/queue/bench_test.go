package queue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// BenchmarkLifecycle measures jobs from submit to durable settlement, on disk
// and in strict durability, with slots that do nothing.
func BenchmarkLifecycle(b *testing.B) {
	for _, producers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			var done sync.WaitGroup
			q, err := queue.New(b.Context(), store, queue.Config{
				Workers: []queue.Worker{{Name: "w", Capacity: 1 << 30, Retry: jobhost.DefaultRetry()}},
				Settled: func(queue.Settlement) { done.Done() },
			})
			if err != nil {
				b.Fatal(err)
			}
			defer q.Close(context.Background())
			for range 2 {
				go func() {
					slot := q.Slot("w")
					for {
						lease, err := slot.Take(b.Context())
						if err != nil {
							return
						}
						q.Settle(lease, queue.Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeSucceeded}})
					}
				}()
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			done.Add(b.N)
			b.ResetTimer()
			var submitting sync.WaitGroup
			for range producers {
				submitting.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := q.Submit(b.Context(), jobhost.Spec{Worker: "w", Payload: []byte("payload")}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			submitting.Wait()
			done.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
