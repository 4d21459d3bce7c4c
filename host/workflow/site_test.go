package workflow_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

func chaos() bool { return os.Getenv("JOBHOST_CHAOS") != "" }

// site is an engine on a queue, with workers written in Go.
type site struct {
	t testing.TB
	opened
	q     *queue.Queue
	e     *workflow.Engine
	slots sync.WaitGroup

	mu    sync.Mutex                                        // protects ends, ended and more
	ends  map[string]int                                    // of workflows, as reported
	ended chan struct{}                                     // closed when one more has
	more  func(jobhost.Event)                               // called for every event too; nil = no call
	work  func(*site, *queue.Lease) (jobhost.Outcome, bool) // what a worker makes of a task; with effects if true
}

// plant is what a site is made of.
type plant struct {
	workers []string
	slots   int // of each worker
	config  workflow.Config
	defs    []jobhost.Workflow
	// retention of jobs; the zero value keeps them forever.
	retention jobhost.Retention
	work      func(*site, *queue.Lease) (jobhost.Outcome, bool)
	more      func(jobhost.Event)
}

var quick = jobhost.RetryPolicy{MaxAttempts: 3, Backoff: jobhost.BackoffConstant, Initial: time.Millisecond, Max: time.Millisecond}

// newSite opens a queue and an engine on a store, whose workers begin at once.
func newSite(t testing.TB, on opened, p plant) (*site, error) {
	t.Helper()
	s := &site{t: t, opened: on, ends: map[string]int{}, ended: make(chan struct{}), work: p.work, more: p.more}
	p.config.Publish = s.publish
	s.e = workflow.New(on.store, p.config)
	known := map[string]plan.Worker{}
	var workers []queue.Worker
	for _, name := range append(p.workers, jobhost.WorkflowWorker) {
		workers = append(workers, queue.Worker{Name: name, Capacity: 1 << 30, Retry: quick, Timeout: time.Minute, Retention: p.retention})
		known[name] = plan.Worker{}
	}
	delete(known, jobhost.WorkflowWorker)
	defs, err := workflow.Compile(p.defs, known, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.e.Define(defs)
	s.q, err = queue.New(t.Context(), on.store, queue.Config{Workers: workers, Workflows: s.e, Publish: s.publish})
	if err != nil {
		return nil, err
	}
	if err := s.e.Open(t.Context(), s.q); err != nil {
		s.q.Stop()
		return nil, err
	}
	for _, w := range workers {
		for range max(p.slots, 1) {
			s.slots.Go(func() { s.run(w.Name) })
		}
	}
	return s, nil
}

// newStoreSite is newSite on an empty store, until the test ends.
func newStoreSite(t testing.TB, open opener, p plant) *site {
	t.Helper()
	s, err := newSite(t, open(t), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// close ends the workers and the queue.
func (s *site) close() {
	s.q.Stop()
	s.slots.Wait()
	if err := s.q.Close(context.Background()); err != nil {
		s.t.Error(err)
	}
}

func (s *site) run(worker string) {
	slot := s.q.Slot(worker)
	for {
		lease, err := slot.Take(context.Background())
		if err != nil {
			return
		}
		if worker == jobhost.WorkflowWorker {
			s.q.Settle(lease, queue.Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeSucceeded}})
			continue
		}
		out, effects := s.work(s, lease)
		report := queue.Report{Outcome: out}
		if effects {
			report.Effects = &queue.Asked{KV: []record.KVChange{
				{Key: taskOf(lease) + "#", Kind: record.KVAdd, Delta: 1}, {Key: taskOf(lease) + "=", Value: lease.Input()},
			}}
		}
		s.q.Settle(lease, report)
	}
}

// taskOf names a task, independently of the life it runs in.
func taskOf(l *queue.Lease) string { return fmt.Sprintf("%s/%d", l.Job.ID, l.Index) }

func succeed(output string) (jobhost.Outcome, bool) {
	return jobhost.Outcome{Kind: jobhost.OutcomeSucceeded, Output: []byte(output)}, true
}

func fail(retryable bool) (jobhost.Outcome, bool) {
	return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: &jobhost.Failure{
		Code: "boom", Category: jobhost.CategoryBusiness, Severity: jobhost.SeverityError, Message: "it failed", Retryable: retryable,
	}}, false
}

// digest is an output that depends on all that a task has got.
func digest(l *queue.Lease) string {
	return fmt.Sprintf(`{"step":%q,"task":%d,"of":"%x"}`, l.Job.Origin.Step, l.Index, sha256.Sum256(l.Input()))
}

func (s *site) publish(e jobhost.Event) {
	if s.more != nil {
		s.more(e)
	}
	if e.Kind != jobhost.EventWorkflowEnded {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[e.Workflow]++
	close(s.ended)
	s.ended = make(chan struct{})
}

var errStore = errors.New("the store has failed")

// await returns a workflow when it has ended. The error is that of the store.
func (s *site) await(id string) (jobhost.WorkflowRun, error) {
	s.t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		s.mu.Lock()
		ended := s.ended
		s.mu.Unlock()
		run, err := s.e.Workflow(s.t.Context(), id)
		if err != nil || run.Status.Ended() {
			return run, err
		}
		select {
		case <-ended:
		case <-s.Failed():
			return run, errStore
		case <-late.C:
			s.t.Fatalf("workflow %s doesn't end: %s", id, statuses(&run))
		}
	}
}

// told waits until the end of a workflow was reported, and returns how often it
// was.
func (s *site) told(id string) int {
	for {
		s.mu.Lock()
		n, ended := s.ends[id], s.ended
		s.mu.Unlock()
		if n > 0 {
			return n
		}
		<-ended
	}
}

// start starts a workflow and returns its id.
func (s *site) start(start jobhost.WorkflowStart) string {
	s.t.Helper()
	r, err := s.e.StartWorkflow(s.t.Context(), start)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.ID
}

func statuses(run *jobhost.WorkflowRun) string {
	text := string(run.Status)
	for i := range run.Steps {
		text += " " + run.Steps[i].Name + "=" + string(run.Steps[i].Status)
	}
	return text
}

// commit commits one operation, as the queue does.
func (s *site) commit(op record.Op) record.OpResult {
	s.t.Helper()
	done := make(chan record.OpResult, 1)
	s.store.Commit([]record.Op{op}, func(results []record.OpResult, err error) {
		if err != nil {
			results = []record.OpResult{{Err: err}}
		}
		done <- results[0]
	})
	return <-done
}

// tidyAll removes everything that has expired at a time.
func (s *site) tidyAll(at record.Millis) {
	s.t.Helper()
	tidy := &record.Tidy{At: at, Limit: 100}
	for res := s.commit(tidy); res.Next != 0 && res.Next <= at || res.Err != nil; res = s.commit(tidy) {
		if res.Err != nil {
			s.t.Fatal(res.Err)
		}
	}
}
