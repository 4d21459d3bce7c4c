package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// TestWorkflowWaitInterrupted: an interrupt ends the wait, and says how to go on.
func TestWorkflowWaitInterrupted(t *testing.T) {
	t.Parallel()
	server, followed := newServer(t), make(chan struct{})
	server.onFollow = sync.OnceFunc(func() { close(followed) })
	ctx, interrupt := context.WithCancel(t.Context())
	c := newConsole(t, server)
	var group sync.WaitGroup
	group.Go(func() {
		code := c.env.run(ctx, []string{"workflow", "run", "approval", "--id", "wf-a", "--wait"})
		want := "jobhost: waiting for workflow wf-a was interrupted; the workflow goes on\n  hint: go on watching: jobhost workflow watch wf-a\n"
		if code != exitFailed || !strings.HasSuffix(c.errOut.String(), want) {
			t.Errorf("exit code %d, stderr %q", code, c.errOut.String())
		}
	})
	<-followed
	interrupt()
	group.Wait()
}

// TestWorkflowWatchEvents: with -o json a watch prints the events, and ends with the workflow.
func TestWorkflowWatchEvents(t *testing.T) {
	t.Parallel()
	server, followed := newServer(t), make(chan struct{})
	server.onFollow = sync.OnceFunc(func() { close(followed) })
	c := newConsole(t, server)
	if code := c.run(t, "workflow", "run", "approval", "--id", "wf-a"); code != exitOK {
		t.Fatal(c.errOut.String())
	}
	c.out.Reset()
	var group sync.WaitGroup
	group.Go(func() {
		if code := c.run(t, "workflow", "watch", "wf-a", "-o", "json"); code != exitOK {
			t.Errorf("exit code %d: %s", code, c.errOut.String())
		}
	})
	<-followed
	if err := server.SignalWorkflow(t.Context(), "wf-a", jobhost.WorkflowSignal{Name: "approved"}); err != nil {
		t.Error(err)
	}
	group.Wait()
	got := c.out.String()
	if !strings.Contains(got, `"step":"ask","step_status":"completed"`) || !strings.Contains(got, `"kind":"workflow_ended"`) {
		t.Errorf("got %s", got)
	}
}

// TestFollowing: lines are told once, and on a terminal redrawn in place, as many as can be.
func TestFollowing(t *testing.T) {
	t.Parallel()
	began, now := testTime, testTime.Add(90*time.Second)
	run := jobhost.WorkflowRun{ID: "wf-a", Status: jobhost.WorkflowRunning, StartedAt: began, Steps: []jobhost.StepRun{
		{Name: "a", Status: jobhost.StepRunning, StartedAt: &began},
		{Name: "b", Status: jobhost.StepFailed, StartedAt: &began, EndedAt: &now, Failure: &jobhost.Failure{Code: "bad", Message: hostile}},
		{Name: "c", Status: jobhost.StepPending},
	}}
	var out strings.Builder
	f := &following{out: &out, columns: func() int { return 60 }, now: func() time.Time { return now }, told: map[string]jobhost.StepStatus{}}
	f.show(&run)
	f.show(&run)
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "▶ a                    running\n✗ b ") || strings.Contains(got, "\x1b") {
		t.Errorf("got %q", got)
	}
	out.Reset()
	f.live = true
	f.show(&run)
	want := "\r\x1b[J▶ a                    running  1m30s\n"
	if got := out.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "· c                    pending\nwf-a running: 1 of 3 steps, 1m30s\n") {
		t.Errorf("got %q", got)
	}
	out.Reset()
	f.show(&run)
	if got := out.String(); !strings.HasPrefix(got, "\x1b[4A\r\x1b[J") {
		t.Errorf("got %q", got)
	}
	for line := range strings.Lines(out.String()) {
		if len([]rune(strings.TrimPrefix(line, "\x1b[4A\r\x1b[J"))) > 60 {
			t.Errorf("the line %q is too long", line)
		}
	}
	// Of many steps those are shown with which something happens.
	for i := range 1000 {
		run.Steps = append(run.Steps, jobhost.StepRun{Name: fmt.Sprint("s", i), Status: jobhost.StepCompleted})
	}
	run.Steps = append(run.Steps, jobhost.StepRun{Name: "last", Status: jobhost.StepRetrying})
	if seen := worthSeeing(run.Steps); len(seen) > mostLines || seen[len(seen)-1].Name != "last" {
		t.Errorf("of many steps %d are shown", len(seen))
	}
	f.out = io.Discard
	f.show(&run)
}

// A retry keeps the definition, so it is no remedy for an expression that is wrong.
func TestHintOfAFailedWorkflow(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		jobhost.FailExpression: "start the workflow again: a retry keeps the old definition",
		jobhost.FailTimeout:    "when the cause is gone: jobhost workflow retry wf-1",
	} {
		err := workflowEnd(&jobhost.WorkflowRun{
			ID: "wf-1", Status: jobhost.WorkflowFailed, Step: "approve", Failure: &jobhost.Failure{Code: code, Message: code + ": no such key: wrods"},
		})
		if !strings.HasSuffix(jobhost.HintOf(err), want) {
			t.Errorf("%s: hint %q", code, jobhost.HintOf(err))
		}
		if want := "workflow wf-1 has failed at step approve: " + code + ": no such key: wrods"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
