package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
)

// TestHammer lets many people do all that can be done to a few workflows, again and again, while their
// steps run. Each must have ended as often as it began, and nothing may stay behind.
func TestHammer(t *testing.T) { eachStore(t, testHammer) }

func testHammer(t *testing.T, open opener) {
	people, each := 8, 60
	if chaos() {
		each = 3000
	}
	h := &hammer{t: t, began: map[string]int{}}
	h.site = newStoreSite(t, open, plant{
		workers: []string{"w", "other"}, slots: 3, defs: append(children(), hammered()), more: h.hear,
		retention: jobhost.Retention{MaxEntries: 3},
		work: func(s *site, l *queue.Lease) (jobhost.Outcome, bool) {
			switch {
			case l.Job.Entry == "fail" && rand.IntN(2) == 0:
				return fail(rand.IntN(2) == 0)
			case l.Job.Entry == "list":
				return succeed("[1,2,3]")
			}
			return succeed(digest(l))
		},
	})
	var all sync.WaitGroup
	for range people {
		all.Go(func() {
			for range each {
				h.act()
			}
		})
	}
	all.Wait()
	h.quiet()
	h.check()
}

func hammered() jobhost.Workflow {
	return jobhost.Workflow{Name: "hammered", MaxParallel: 3, Timeout: jobhost.Duration(time.Hour), Steps: []jobhost.Step{
		{Name: "list", Worker: "w", Entry: "list"},
		{Name: "fan", Worker: "w", Entry: "fail", FanOut: "steps.list.output", Needs: []string{"list"}, OnError: jobhost.ContinueWorkflow},
		{Name: "a", Worker: "w", Entry: "fail", Fallback: "other"},
		{Name: "b", Worker: "w", Entry: "fail", Fallback: "f"},
		{Name: "f", Worker: "w", Entry: "fail"},
		{Name: "vain", Workflow: "vain", OnError: jobhost.ContinueWorkflow},
		{Name: "sub", Workflow: "outer"},
		{Name: "nap", Sleep: jobhost.Duration(time.Millisecond)},
		{Name: "ask", Signal: "go", Needs: []string{"a"}},
		{Name: "end", Worker: "w", Needs: []string{"ask", "b", "sub", "vain", "fan", "nap"}},
	}}
}

type hammer struct {
	*site
	t *testing.T

	lock  sync.Mutex     // protects began
	began map[string]int // how often a workflow began, less how often it ended
}

func (h *hammer) hear(e jobhost.Event) {
	h.lock.Lock()
	defer h.lock.Unlock()
	switch e.Kind {
	case jobhost.EventWorkflowStarted, jobhost.EventWorkflowResumed:
		h.began[e.Workflow]++
	case jobhost.EventWorkflowEnded:
		h.began[e.Workflow]--
	}
	if n := h.began[e.Workflow]; n < 0 || n > 1 {
		h.t.Errorf("workflow %s has begun %d times more than it has ended", e.Workflow, n)
	}
}

// act does something to one of a few workflows, or a part of it.
func (h *hammer) act() {
	id := fmt.Sprint("wf-h", rand.IntN(4))
	pick := func(list ...string) string { return list[rand.IntN(len(list))] }
	job := id + "." + pick("list.1", "fan.1", "a.1", "a.2", "a.f1", "b.1", "f.1", "end.1", "sub.1.x.1", "vain.1.x.1", "nap.1.wake", "1.limit")
	ctx, err := h.t.Context(), error(nil)
	switch rand.IntN(12) {
	case 0, 1, 2, 3:
		_, err = h.e.StartWorkflow(ctx, jobhost.WorkflowStart{ID: id, Workflow: "hammered", Input: []byte("1")})
	case 4, 5:
		err = h.e.SignalWorkflow(ctx, id, jobhost.WorkflowSignal{Name: "go"})
	case 6:
		_, err = h.e.CancelWorkflow(ctx, id+pick("", ".sub.1", ".vain.1"), "")
	case 7:
		_, err = h.e.RetryWorkflow(ctx, id+pick("", "", ".sub.1", ".vain.1"), pick("", "a", "b", "f", "fan", "vain", "x"))
	case 8:
		_, err = h.q.Retry(ctx, job)
	case 9:
		_, err = h.q.Cancel(ctx, job)
	case 10:
		err = h.e.DeleteWorkflow(ctx, id)
	case 11:
		_, err = h.e.Workflow(ctx, id)
	}
	switch code := jobhost.CodeOf(err); {
	case err == nil, code == jobhost.CodeNotFound, code == jobhost.CodeConflict, code == jobhost.CodeExhausted:
	default:
		h.t.Error(err)
	}
}

// quiet ends what is open, and waits until nothing is.
func (h *hammer) quiet() {
	h.t.Helper()
	ctx := h.t.Context()
	for range 1000 {
		page, err := h.e.Workflows(ctx, jobhost.WorkflowFilter{Status: jobhost.WorkflowRunning})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(page.Workflows) == 0 {
			return
		}
		for i := range page.Workflows {
			if _, err := h.e.CancelWorkflow(ctx, page.Workflows[i].ID, ""); err != nil && jobhost.CodeOf(err) != jobhost.CodeConflict {
				h.t.Error(err)
			}
		}
	}
	h.t.Fatal("workflows run for ever")
}

func (h *hammer) check() {
	h.t.Helper()
	ctx := h.t.Context()
	// Everything reported before this commit has been received.
	if res := h.commit(&record.Note{Name: "x", Text: ""}); res.Err != nil {
		h.t.Fatal(res.Err)
	}
	if n := h.e.OpenCount(); n != 0 {
		h.t.Errorf("the engine thinks that %d workflows are open", n)
	}
	h.lock.Lock()
	for id, n := range h.began {
		if n != 0 {
			h.t.Errorf("workflow %s has begun %d times more than it has ended", id, n)
		}
	}
	h.lock.Unlock()
	for {
		page, err := h.e.Workflows(ctx, jobhost.WorkflowFilter{})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(page.Workflows) == 0 {
			break
		}
		for i := range page.Workflows {
			if w := &page.Workflows[i]; w.Parent == "" {
				if err := h.e.DeleteWorkflow(ctx, w.ID); err != nil {
					h.t.Fatal(err)
				}
			}
		}
	}
	if err := queuetest.Recount(ctx, h.store); err != nil {
		h.t.Error(err)
	}
	for _, worker := range []string{"w", "other", jobhost.WorkflowWorker} {
		stats := h.q.Stats(worker)
		if stats.Idle, stats.OldestReady = 0, 0; stats != (queue.Stats{}) {
			h.t.Errorf("the lane of %s holds %+v", worker, stats)
		}
	}
	nothingLeft(h.t, h.site)
}
