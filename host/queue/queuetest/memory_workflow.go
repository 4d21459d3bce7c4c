package queuetest

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost/host/queue/record"
)

// errNoWorkflows is the answer of a [Memory] to questions for workflows: it keeps none.
var errNoWorkflows = errors.New("this store keeps no workflows")

// ViewWorkflows implements [queue.WorkflowReader].
func (*Memory) ViewWorkflows(context.Context, func(record.WorkflowView) error) error {
	return errNoWorkflows
}

// Workflows implements [queue.WorkflowReader].
func (*Memory) Workflows(context.Context, record.WorkflowQuery) ([]record.WorkflowRecord, error) {
	return nil, nil
}

// OpenWorkflows implements [queue.WorkflowReader].
func (*Memory) OpenWorkflows(context.Context) (map[string]int64, error) { return nil, nil }

// OpenDefinitions implements [queue.WorkflowReader].
func (*Memory) OpenDefinitions(context.Context) (map[string][]byte, error) { return nil, nil }
