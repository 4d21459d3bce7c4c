package main

import (
	"context"
	"iter"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// realParts are the fibers, workflows and keys of a real host, which has [hosttest.Definitions]
// and the workers "test" and "wordcount". The jobs of workflows are jobs of that host.
type realParts struct {
	datedKeys
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

func openParts(t testing.TB) realParts {
	t.Helper()
	h := hosttest.Open(t, func(c *host.Config) { c.Workers = append(c.Workers, hosttest.Worker("wordcount", guests.Noop)) })
	return realParts{datedKeys{h}, h, h, h, h, h, h, h, nil}
}

// workflowEvents are the events of a workflow from its beginning on, so that none is missed.
func (r realParts) workflowEvents(ctx context.Context, q jobhost.EventQuery) iter.Seq2[jobhost.Event, error] {
	q.After = max(q.After, 1)
	if r.onFollow != nil {
		r.onFollow()
	}
	return r.host.Events(ctx, q)
}
