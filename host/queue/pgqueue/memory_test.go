package pgqueue_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestJobsAreForgotten: the image keeps which ids it has seen, but not the jobs and their payloads.
func TestJobsAreForgotten(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	gone := make(chan struct{})
	func() {
		job := newSpec("large", "w", func(job *record.JobSpec) { job.Payload = make([]byte, 1<<20) })
		runtime.AddCleanup(job, func(gone chan struct{}) { close(gone) }, gone)
		submit(t, s, job)
		submit(t, s, newSpec("next", "w")) // nothing of the commit before is kept for the next one
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); <-tick.C {
		runtime.GC()
		select {
		case <-gone:
			return
		default:
		}
	}
	t.Error("the job is still in memory")
}
