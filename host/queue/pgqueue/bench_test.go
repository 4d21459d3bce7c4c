package pgqueue_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/cputime"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// BenchmarkLifecycle submits a job, waits until it is durable, settles it and waits again, in as many goroutines as the
// name says, on a server that syncs. The CPU of both sides counts.
func BenchmarkLifecycle(b *testing.B) {
	server := postgres.Start(b, "fsync=on", "synchronous_commit=on")
	for _, producers := range []int{1, 16, 256, 2048} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			s := openOn(b, server, server.Schema(b))
			b.ReportAllocs()
			b.ResetTimer()
			own, theirs := cputime.Used(), server.CPU(b)
			var next atomic.Int64
			var wg sync.WaitGroup
			for range producers {
				wg.Go(func() {
					c := newCaller(s)
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						if err := c.lifecycle(n); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64((cputime.Used()-own).Microseconds())/float64(b.N), "own-cpu-µs/job")
			b.ReportMetric(float64((server.CPU(b)-theirs).Microseconds())/float64(b.N), "server-cpu-µs/job")
		})
	}
}

// caller waits for its own commits.
type caller struct {
	store record.Store
	done  chan error
	res   record.OpResult
}

func newCaller(s record.Store) *caller { return &caller{store: s, done: make(chan error, 1)} }

func (c *caller) do(op record.Op) error {
	c.store.Commit([]record.Op{op}, func(res []record.OpResult, err error) {
		if err == nil {
			c.res, err = res[0], res[0].Err
		}
		c.done <- err
	})
	return <-c.done
}

func (c *caller) lifecycle(n int64) error {
	now := record.MillisOf(time.Now())
	err := c.do(&record.Submit{Job: &record.JobSpec{
		ID: fmt.Sprintf("0190a3c4-7b1e-7000-8000-%012d", n), Worker: "echo", Payload: make([]byte, 64), Tasks: 1, Priority: 3, MaxAttempts: 3,
		Timeout: 30 * time.Second, CreatedAt: now, ReadyAt: now,
	}})
	if err != nil {
		return err
	}
	return c.do(&record.Settle{
		Key: c.res.Key, Status: record.Succeeded, Attempt: 1, StartedAt: now, EndedAt: now, ExpiresAt: now + 86_400_000, Result: []byte("ok"),
	})
}
