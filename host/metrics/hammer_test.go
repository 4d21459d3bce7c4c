package metrics_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestHammer(t *testing.T) {
	t.Parallel()
	const goroutines, rounds = 8, 500
	m := metrics.New()
	m.SetSource(queues{{Worker: "w0", Slots: 1}})
	var wg sync.WaitGroup
	for n := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				w := m.Worker(fmt.Sprint("w", i%2))
				w.JobDone(jobhost.OutcomeSucceeded, jobhost.Succeeded, time.Millisecond, time.Millisecond)
				w.Ran(&runtime.Result{Replace: runtime.ReplacedTrap})
				id, errno := w.Guest().Metric(hostcall.Counter, fmt.Sprintf(`n{i="%d"}`, i%50))
				if errno != hostcall.OK {
					t.Errorf("errno %d", errno)
				}
				w.Guest().Observe(id, 1)
				m.StoreCommit(i, time.Millisecond)
				if n == 0 && i%50 == 0 {
					scrape(t, m)
				}
			}
		})
	}
	wg.Wait()
	text := scrape(t, m)
	total := goroutines * rounds
	wantLines(
		t, text,
		fmt.Sprintf(`jobhost_jobs_total{outcome="succeeded",worker="w0"} %d`, total/2),
		fmt.Sprintf(`jobhost_guest_n{i="0",worker="w0"} %d`, total/50),
		fmt.Sprintf(`jobhost_store_commit_seconds_count %d`, total),
	)
}

func TestHotPathAllocatesNothing(t *testing.T) {
	w := metrics.New().Worker("w")
	id, _ := w.Guest().Metric(hostcall.Histogram, "h")
	if n := testing.AllocsPerRun(1000, func() {
		w.JobDone(jobhost.OutcomeSucceeded, jobhost.Succeeded, time.Millisecond, time.Millisecond)
		w.Ran(&runtime.Result{Replace: runtime.ReplacedGrown})
		w.Guest().Observe(id, 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkJobDone(b *testing.B) {
	w := metrics.New().Worker("w")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.JobDone(jobhost.OutcomeSucceeded, jobhost.Succeeded, time.Millisecond, time.Millisecond)
		}
	})
}
