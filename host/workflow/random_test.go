package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
)

// TestRandomGraphs lets random workflows run on the real engine, and compares where all of
// their steps stand at the end with what a reference works out from the definition.
func TestRandomGraphs(t *testing.T) { eachStore(t, testRandomGraphs) }

func testRandomGraphs(t *testing.T, open opener) {
	groups := 1 // of 100 workflows each
	if chaos() {
		groups = 10
	}
	for i := range groups {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := newStoreSite(t, open, plant{workers: []string{"w", "x"}, slots: 3, defs: drawnChildren(), work: drawn})
			rapid.Check(t, func(rt *rapid.T) { checkGraph(rt, s) })
			nothingLeft(t, s)
		})
	}
}

func drawnChildren() []jobhost.Workflow {
	return []jobhost.Workflow{
		{Name: "ok", Steps: []jobhost.Step{{Name: "x", Worker: "w", Entry: "ok"}, {Name: "y", Worker: "w", Needs: []string{"x"}}}},
		{Name: "dead", Steps: []jobhost.Step{{Name: "x", Worker: "w", Entry: "dead"}, {Name: "y", Worker: "w", Needs: []string{"x"}}}},
	}
}

// drawn is a worker whose entries say what becomes of a task. A fallback worker has no entry of its own.
func drawn(_ *site, l *queue.Lease) (jobhost.Outcome, bool) {
	switch {
	case l.Job.Entry == "dead", l.Job.Entry == "last" && l.Index == l.Job.Tasks-1:
		return fail(false)
	case l.Job.Entry == "worn":
		return fail(true)
	case l.Job.Entry == "flaky" && l.Attempt < 2:
		return fail(true)
	}
	return succeed("[1,2,3]")
}

func chance(rt *rapid.T, percent int) bool { return rapid.IntRange(0, 99).Draw(rt, "chance") < percent }

// drawStep draws what a step does, and what that comes to.
func drawStep(rt *rapid.T, s *jobhost.Step) {
	switch rapid.IntRange(0, 9).Draw(rt, "kind") {
	case 0:
		s.Sleep = jobhost.Duration(time.Millisecond)
	case 1:
		s.Signal = s.Name
	case 2, 3:
		s.Workflow = rapid.SampledFrom([]string{"ok", "ok", "dead"}).Draw(rt, "workflow")
	default:
		s.Worker = "w"
		s.Entry = rapid.SampledFrom([]string{"ok", "ok", "ok", "flaky", "dead", "worn", "last"}).Draw(rt, "entry")
		s.Retry = &jobhost.StepRetry{MaxAttempts: 3}
		switch {
		case chance(rt, 20):
			s.FanOut, s.MaxParallel = rapid.SampledFrom([]string{"[1, 2]", "[]", "input.none"}).Draw(rt, "fan-out"), rapid.IntRange(0, 1).Draw(rt, "parallel")
		case chance(rt, 15):
			s.Tasks = 2
		}
	}
	s.When = rapid.SampledFrom([]string{"", "", "", "", "1 > 0", "1 > 2", "input.none == 1"}).Draw(rt, "when")
	s.WhenSkipped = rapid.SampledFrom([]jobhost.WhenSkipped{"", jobhost.SkipToo, jobhost.RunAnyway, jobhost.RunWhatever}).Draw(rt, "skipped")
	if chance(rt, 80) {
		s.OnError = jobhost.ContinueWorkflow
	}
	if chance(rt, 15) {
		s.Deadline = jobhost.Duration(time.Hour)
	}
	if chance(rt, 6) {
		s.Terminate = "true"
	}
}

func drawGraph(rt *rapid.T) *jobhost.Workflow {
	w := &jobhost.Workflow{Name: "drawn"}
	n := rapid.IntRange(1, 12).Draw(rt, "steps")
	for i := range n {
		s := jobhost.Step{Name: fmt.Sprint("s", i)}
		for j := range i {
			if chance(rt, 30) {
				s.Needs = append(s.Needs, fmt.Sprint("s", j))
			}
		}
		drawStep(rt, &s)
		switch rapid.IntRange(0, 5).Draw(rt, "fallback") {
		case 0:
			s.Fallback = "x"
		case 1:
			f := jobhost.Step{Name: fmt.Sprint("f", i)}
			drawStep(rt, &f)
			f.FanOut, f.When, f.OnError, f.Terminate, f.MaxParallel = "", "", "", "", 0
			s.Fallback = f.Name
			w.Steps = append(w.Steps, f)
		}
		w.Steps = append(w.Steps, s)
	}
	for i := range w.Steps {
		s := &w.Steps[i]
		if len(s.Needs) == 0 {
			s.WhenSkipped = ""
		}
		if s.Signal != "" {
			s.Timeout, s.Deadline = s.Deadline, 0
		}
		if s.Sleep != 0 { // which can't fail, or be late
			if s.Fallback != "" && s.Fallback != "x" {
				s.Sleep, s.Worker, s.Entry = 0, "w", "dead"
				continue
			}
			s.Fallback, s.OnError, s.Terminate, s.Deadline = "", "", "", 0
		}
	}
	if chance(rt, 30) {
		w.MaxParallel = rapid.IntRange(1, 3).Draw(rt, "max")
	}
	if chance(rt, 20) {
		w.Timeout = jobhost.Duration(time.Hour)
	}
	return w
}

func checkGraph(rt *rapid.T, s *site) {
	w := drawGraph(rt)
	r, err := s.e.StartWorkflow(s.t.Context(), jobhost.WorkflowStart{Definition: w, Input: []byte("{}")})
	if jobhost.CodeOf(err) == jobhost.CodeInvalid { // few are
		rt.Skip(err)
	}
	if err != nil {
		rt.Fatalf("%v", err)
	}
	for i := range w.Steps { // of which some come before their step waits
		if name := w.Steps[i].Signal; name != "" {
			err := s.e.SignalWorkflow(s.t.Context(), r.ID, jobhost.WorkflowSignal{Name: name, Payload: []byte("[1]")})
			if err != nil && jobhost.CodeOf(err) != jobhost.CodeConflict {
				rt.Fatalf("%v", err)
			}
		}
	}
	run, err := s.await(r.ID)
	if err != nil {
		rt.Fatalf("%v", err)
	}
	newReference(w).compare(rt, &run)
	if ends := s.told(r.ID); ends != 1 {
		rt.Fatalf("it has ended %d times", ends)
	}
	page, err := s.q.Jobs(s.t.Context(), jobhost.Filter{Limit: 200})
	if err != nil {
		rt.Fatalf("%v", err)
	}
	for i := range page.Jobs {
		if job := &page.Jobs[i]; strings.HasPrefix(job.ID, r.ID+".") && !job.State.Ended() {
			rt.Fatalf("job %s is open after the end: %s", job.ID, statuses(&run))
		}
	}
	if err := s.e.DeleteWorkflow(s.t.Context(), r.ID); err != nil {
		rt.Fatalf("%v", err)
	}
}

// nothingLeft looks whether what was deleted has left something behind.
func nothingLeft(t *testing.T, s *site) {
	t.Helper()
	if err := queuetest.Recount(t.Context(), s.store); err != nil {
		t.Error(err)
	}
	s.tidyAll(record.MillisOf(s.q.Now()) + 3_600_000)
	rows := s.rows(t)
	for _, table := range []string{"schema", "worker", "counter", "sequence", "death", "kv", "kv_worker", "sqlite_stat1", "batch", "term", "lease"} { // which are not of jobs
		delete(rows, table)
	}
	if rows["span"] == 1 { // of the block of the next key
		delete(rows, "span")
	}
	if rows["note"] == 1 { // of what runs, until the host stops
		delete(rows, "note")
	}
	if len(rows) > 0 {
		t.Errorf("rows are left: %v", rows)
	}
	open, err := s.store.OpenWorkflows(t.Context())
	if err != nil || len(open) != 0 {
		t.Errorf("open are %v, %v", open, err)
	}
	page, err := s.e.Workflows(t.Context(), jobhost.WorkflowFilter{})
	if err != nil || len(page.Workflows) != 0 {
		t.Errorf("%d workflows are left, %v", len(page.Workflows), err)
	}
	counts, err := s.store.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for worker, c := range counts {
		if c != (record.StatusCounts{}) {
			t.Errorf("worker %s has %v tasks", worker, c)
		}
	}
}
