package main

import (
	"context"
	"iter"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hosttest"
)

// realParts are the fibers and workflows of a real host, which has [hosttest.Definitions] and
// the worker "test"; their jobs are jobs of that one.
type realParts struct {
	jobhost.FiberRunner
	jobhost.FiberTalker
	jobhost.FiberController
	jobhost.WorkflowRunner
	jobhost.WorkflowController
	jobhost.WorkflowDefiner
	host *hosttest.Host
	// onFollow is called when a command follows events; nil = nothing is.
	onFollow func()
}

func partsOf(h *hosttest.Host) realParts { return realParts{h, h, h, h, h, h, h, nil} }

// workflowEvents are the events of a workflow from its beginning on, so that none is missed.
func (r realParts) workflowEvents(ctx context.Context, q jobhost.EventQuery) iter.Seq2[jobhost.Event, error] {
	q.After = max(q.After, 1)
	if r.onFollow != nil {
		r.onFollow()
	}
	return r.host.Events(ctx, q)
}
