package main

import (
	"context"
	"iter"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hosttest"
)

// fakeWorkflows are those of a fake host, which has [hosttest.Definitions]; their jobs
// are jobs of the worker "test" of that one.
type fakeWorkflows struct {
	jobhost.WorkflowRunner
	jobhost.WorkflowController
	jobhost.WorkflowDefiner
	host *hosttest.Fake
}

func newFakeWorkflows() fakeWorkflows {
	fake := hosttest.NewFake(hosttest.FakeConfig{})
	return fakeWorkflows{fake, fake, fake, fake}
}

// workflowEvents are the events of a workflow.
func (w fakeWorkflows) workflowEvents(ctx context.Context, q jobhost.EventQuery) iter.Seq2[jobhost.Event, error] {
	return w.host.Events(ctx, q)
}
