package workflow_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/testing/cputime"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// BenchmarkChains measures chains of five steps from start to durable end on a PostgreSQL that syncs, with some in flight.
// The workers are written in Go, so it is about the store and the engine alone; package bench has the
// whole on SQLite. The CPU of both sides counts.
func BenchmarkChains(b *testing.B) {
	const steps = 5
	server := postgres.Start(b, "fsync=on", "synchronous_commit=on")
	w := &jobhost.Workflow{Name: "chain"}
	for i := range steps {
		s := jobhost.Step{Name: fmt.Sprint("s", i), Worker: "noop"}
		if i > 0 {
			s.Needs = []string{fmt.Sprint("s", i-1)}
		}
		w.Steps = append(w.Steps, s)
	}
	for _, flight := range []int{1, 256} {
		b.Run(fmt.Sprintf("inflight=%d", flight), func(b *testing.B) {
			next := make(chan struct{}, flight)
			s := newStoreSite(b, func(t testing.TB) opened { return openServer(t, server) }, plant{
				workers: []string{"noop"}, slots: 2,
				work: func(*site, *queue.Lease) (jobhost.Outcome, bool) {
					return jobhost.Outcome{Kind: jobhost.OutcomeSucceeded, Output: []byte("{}")}, false
				},
				more: func(e jobhost.Event) {
					if e.Kind == jobhost.EventWorkflowEnded {
						next <- struct{}{}
					}
				},
			})
			var left atomic.Int64
			var flying sync.WaitGroup
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			own, theirs := cputime.Used(), server.CPU(b)
			for range flight {
				flying.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := s.e.StartWorkflow(b.Context(), jobhost.WorkflowStart{Definition: w}); err != nil {
							b.Error(err)
							return
						}
						<-next
					}
				})
			}
			flying.Wait()
			b.ReportMetric(float64(steps*b.N)/b.Elapsed().Seconds(), "steps/s")
			b.ReportMetric(float64((cputime.Used()-own).Microseconds())/float64(steps*b.N), "own-cpu-µs/step")
			b.ReportMetric(float64((server.CPU(b)-theirs).Microseconds())/float64(steps*b.N), "server-cpu-µs/step")
		})
	}
}
