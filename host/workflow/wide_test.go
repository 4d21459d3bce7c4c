package workflow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

// BenchmarkWide starts, cancels and removes workflows all steps of which begin at once, as many as there may be.
// Each of these is one transaction, but for the removal.
func BenchmarkWide(b *testing.B) {
	w := &jobhost.Workflow{Name: "wide"}
	for i := range jobhost.MaxSteps {
		w.Steps = append(w.Steps, jobhost.Step{Name: fmt.Sprint("s", i), Worker: "none"})
	}
	s := newStoreSite(b, openSQLite, plant{workers: []string{"none"}, slots: 0, work: func(*site, *queue.Lease) (jobhost.Outcome, bool) {
		return succeed("1")
	}})
	if err := s.q.SetMode(context.Background(), "none", jobhost.WorkerPaused); err != nil {
		b.Fatal(err)
	}
	var start, cancel, remove time.Duration
	for b.Loop() {
		began := time.Now()
		id := s.start(jobhost.WorkflowStart{Definition: w})
		start += time.Since(began)
		began = time.Now()
		if _, err := s.e.CancelWorkflow(b.Context(), id, ""); err != nil {
			b.Fatal(err)
		}
		cancel += time.Since(began)
		began = time.Now()
		if err := s.e.DeleteWorkflow(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		remove += time.Since(began)
	}
	for what, took := range map[string]time.Duration{"start": start, "cancel": cancel, "remove": remove} {
		b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/"+what)
	}
}
