package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// testWaitWorkflow wants a wait to end with its context, and to tell how far the workflow is.
func testWaitWorkflow(s *setup) {
	id := s.startWorkflow(jobhost.WorkflowStart{Workflow: "approval"})
	late := errors.New("waited long enough")
	// On a busy machine a context can end before the store has answered anything.
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		ctx, cancel := context.WithTimeoutCause(s.ctx, wait, late)
		run, err := s.server.WaitWorkflow(ctx, id)
		cancel()
		if !errors.Is(err, late) {
			s.Fatalf("got %+v, %v", run, err)
		}
		if run.ID == id && run.Status == jobhost.WorkflowRunning {
			break
		}
	}
	var group sync.WaitGroup
	group.Go(func() {
		if run, err := s.server.WaitWorkflow(s.ctx, id); err != nil || run.Status != jobhost.WorkflowCompleted {
			s.Errorf("a wait ended with %+v, %v", run, err)
		}
	})
	s.check(s.server.SignalWorkflow(s.ctx, id, approved("", "1")))
	group.Wait()
}

func testListWorkflows(s *setup) {
	var ids []string
	for i := range 5 {
		name := []string{"approval", "chain"}[i%2]
		ids = append(ids, s.startWorkflow(jobhost.WorkflowStart{ID: fmt.Sprint("wf-", i), Workflow: name}))
	}
	s.waitWorkflow(ids[1])
	s.waitWorkflow(ids[3])
	_, err := s.server.CancelWorkflow(s.ctx, ids[2], "")
	s.check(err)
	for _, test := range []struct {
		filter jobhost.WorkflowFilter
		want   string
	}{
		{jobhost.WorkflowFilter{}, "[wf-4 wf-3 wf-2 wf-1 wf-0]"},
		{jobhost.WorkflowFilter{Name: "chain"}, "[wf-3 wf-1]"},
		{jobhost.WorkflowFilter{Status: jobhost.WorkflowRunning}, "[wf-4 wf-0]"},
		{jobhost.WorkflowFilter{Name: "approval", Status: jobhost.WorkflowCancelled}, "[wf-2]"},
		{jobhost.WorkflowFilter{Name: "other"}, "[]"},
		{jobhost.WorkflowFilter{After: time.Now().Add(time.Hour)}, "[]"},
		{jobhost.WorkflowFilter{Before: time.Now().Add(-time.Hour)}, "[]"},
		{jobhost.WorkflowFilter{After: time.Now().Add(-time.Hour), Before: time.Now().Add(time.Hour), Name: "chain"}, "[wf-3 wf-1]"},
	} {
		for _, limit := range []int{0, 1, 2, 5} {
			filter, got := test.filter, []string{}
			filter.Limit = limit
			for {
				page, err := s.server.Workflows(s.ctx, filter)
				s.check(err)
				for i := range page.Workflows {
					run := &page.Workflows[i]
					got = append(got, run.ID)
					if run.Steps != nil || run.Output != nil || run.Name == "" || run.Status == "" || run.StartedAt.IsZero() {
						s.Errorf("in a list there is %+v", run)
					}
				}
				if filter.Cursor = page.Next; page.Next == "" {
					break
				}
			}
			if fmt.Sprint(got) != test.want {
				s.Errorf("%+v, %d at a time: got %v, want %s", test.filter, limit, got, test.want)
			}
		}
	}
	for _, filter := range []jobhost.WorkflowFilter{{Status: "odd"}, {Name: "A"}, {Limit: -1}, {Cursor: "?"}} {
		_, err := s.server.Workflows(s.ctx, filter)
		s.wantCode(firstOf(err), jobhost.CodeInvalid)
	}
}

// testTrace wants what happened to be told in order.
func testTrace(s *setup) {
	bad := step("bad", "fail_retry", "good")
	bad.Retry = &jobhost.StepRetry{MaxAttempts: 2, Initial: jobhost.Duration(time.Millisecond)}
	run := s.finishWorkflow(define(step("good", "echo"), bad), "no luck")
	trace, err := s.server.TraceWorkflow(s.ctx, run.ID)
	s.check(err)
	var told []string
	for i := range trace {
		e := &trace[i]
		if i > 0 && e.Time.Before(trace[i-1].Time) {
			s.Errorf("%+v comes after %+v", e, trace[i-1])
		}
		if e.What == "attempt" && (e.Attempt == 0 || e.Job == "" || e.Failure == nil || e.Failure.Message != "no luck") {
			s.Errorf("an attempt is told as %+v", e)
		}
		told = append(told, e.Step+" "+e.What)
	}
	want := []string{" started", "good started", "good completed", "bad started", "bad attempt", "bad attempt", "bad failed", " failed"}
	if !slices.Equal(told, want) {
		s.Errorf("got %q, want %q", told, want)
	}
}

// testWorkflowEvents wants the events of a workflow and of its jobs, and no others.
func testWorkflowEvents(s *setup) {
	first := s.record(func() { s.finish(spec("echo", "other")) }, func(jobhost.Event) bool { return true })
	id := s.startWorkflow(jobhost.WorkflowStart{ID: "wf-seen", Workflow: "chain"})
	s.waitWorkflow(id)
	s.finish(spec("echo", "another"))
	query := jobhost.EventQuery{Workflow: id, After: first.events[0].Seq}
	w := s.watch(s.ctx, query, nil, func(e jobhost.Event) bool { return e.Kind == jobhost.EventWorkflowEnded })
	s.check(w.err)
	var told []string
	for i := range w.events {
		switch e := &w.events[i]; {
		case e.Workflow != id:
			s.Errorf("there is an event of another: %+v", e)
		case e.Kind == jobhost.EventStep:
			told = append(told, e.Step+" "+string(e.StepStatus))
		case e.Kind == jobhost.EventEnded:
			told = append(told, "job of "+e.Step)
		case e.Kind == jobhost.EventWorkflowStarted, e.Kind == jobhost.EventWorkflowEnded:
			told = append(told, string(e.Kind)+" "+string(e.WorkflowStatus))
		}
	}
	for _, want := range []string{
		"workflow_started running", "first running", "job of first", "first completed", "second running", "job of second", "second completed", "workflow_ended completed",
	} {
		if !slices.Contains(told, want) {
			s.Errorf("there is no %q in %q", want, told)
		}
	}
}
