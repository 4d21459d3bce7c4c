package bench

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// BenchmarkCommit measures durable submits through the store alone: one
// operation is one submit, batches are what one caller passes at once.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			b.ReportAllocs()
			for left := b.N; left > 0; left -= size {
				commit(b, store, submits(min(size, left)))
			}
		})
	}
}

func submits(n int) []record.Op {
	ops := make([]record.Op, n)
	for i := range ops {
		ops[i] = &record.Submit{Job: &record.JobSpec{
			ID: jobhost.NewID(), Worker: "noop", Payload: make([]byte, 64), Priority: jobhost.Normal, Tasks: 1, MaxAttempts: 3,
		}}
	}
	return ops
}

func commit(b *testing.B, store record.Store, ops []record.Op) {
	b.Helper()
	var done sync.WaitGroup
	done.Add(1)
	store.Commit(ops, func(results []record.OpResult, err error) {
		defer done.Done()
		if err != nil {
			b.Error(err)
		}
	})
	done.Wait()
}

// BenchmarkDispatch measures taking and settling without a guest: a backlog in
// the store, one slot.
func BenchmarkDispatch(b *testing.B) {
	store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	for left := b.N; left > 0; left -= 1000 {
		commit(b, store, submits(min(1000, left)))
	}
	var settled sync.WaitGroup
	settled.Add(b.N)
	q, err := queue.New(b.Context(), store, queue.Config{
		Workers: []queue.Worker{{Name: "noop", Capacity: 1 << 30, Retry: jobhost.DefaultRetry()}},
		Settled: func(queue.Settlement) { settled.Done() },
	})
	if err != nil {
		b.Fatal(err)
	}
	slot := q.Slot("noop")
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		lease, err := slot.Take(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		q.Settle(lease, queue.Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeSucceeded}})
	}
	settled.Wait()
	b.StopTimer()
	if err := q.Close(b.Context()); err != nil {
		b.Error(err)
	}
}
