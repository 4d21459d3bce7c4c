package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// aboutWorkflow returns a request about a workflow that was started. The id is checked
// here, since not every text can be part of a path.
func aboutWorkflow(method, id, rest string) request {
	return request{method: method, path: "/v1/workflows/" + id + rest, err: jobhost.CheckAnyWorkflowID(id)}
}

// withBody gives a request a body of JSON.
func (r request) withBody(body []byte) request {
	r.contentType, r.body = wire.JSON, jsonBody(body)
	return r
}

// StartWorkflow implements [jobhost.WorkflowRunner]. A start without ID gets one
// here, so that one whose answer was lost can be repeated.
func (c *Client) StartWorkflow(ctx context.Context, start jobhost.WorkflowStart) (jobhost.WorkflowReceipt, error) {
	fresh := nameWorkflow(&start)
	var receipt jobhost.WorkflowReceipt
	err := c.ask(ctx, startRequest(&start, ""), &receipt)
	if fresh && receipt.ID == start.ID {
		receipt.Deduplicated = false // it was this very call
	}
	return receipt, err
}

// StartWorkflowWait starts a workflow and waits for it to end, in one call for as long
// as the host lets calls wait. The error is the context's cause when that ends
// first; the workflow is then as far as is known.
func (c *Client) StartWorkflowWait(ctx context.Context, start jobhost.WorkflowStart) (jobhost.WorkflowRun, error) {
	nameWorkflow(&start)
	var answer wire.WorkflowStarted
	status, body, err := c.fetch(ctx, startRequest(&start, "?wait="+waitFor(ctx)))
	if err == nil {
		err = c.decode(body, &answer)
	}
	if err != nil {
		return c.runAsItIs(ctx, jobhost.WorkflowRun{ID: start.ID}, err)
	}
	if status != http.StatusAccepted {
		return answer.WorkflowRun, nil
	}
	return c.waitOnRun(ctx, answer.WorkflowRun)
}

// nameWorkflow gives a start an id if it has none, and reports whether it did.
func nameWorkflow(start *jobhost.WorkflowStart) bool {
	if start.ID != "" {
		return false
	}
	start.ID = jobhost.WorkflowIDPrefix + jobhost.NewID()
	return true
}

func startRequest(start *jobhost.WorkflowStart, query string) request {
	var definition []byte
	err := start.Check()
	if err == nil && start.Definition != nil {
		definition, err = definitionJSON(start.Definition)
	}
	rq := request{method: "POST", path: "/v1/workflows" + query, header: repeatable, err: err}
	return rq.withBody(wire.AppendWorkflow(nil, start, definition))
}

func definitionJSON(w *jobhost.Workflow) ([]byte, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "definition", Message: "the definition can't be written as JSON", Cause: err}
	}
	return text, nil
}

// Workflow implements [jobhost.WorkflowRunner].
func (c *Client) Workflow(ctx context.Context, id string) (jobhost.WorkflowRun, error) {
	return c.askRun(ctx, aboutWorkflow("GET", id, ""))
}

func (c *Client) askRun(ctx context.Context, rq request) (run jobhost.WorkflowRun, err error) {
	err = c.ask(ctx, rq, &run)
	return run, err
}

// Workflows implements [jobhost.WorkflowRunner].
func (c *Client) Workflows(ctx context.Context, filter jobhost.WorkflowFilter) (page jobhost.WorkflowPage, err error) {
	q := url.Values{}
	setText(q, "name", filter.Name)
	setText(q, "status", string(filter.Status))
	setText(q, "parent", filter.Parent)
	setText(q, "cursor", filter.Cursor)
	if !filter.After.IsZero() {
		q.Set("after", filter.After.Format(time.RFC3339Nano))
	}
	if !filter.Before.IsZero() {
		q.Set("before", filter.Before.Format(time.RFC3339Nano))
	}
	if filter.Limit != 0 {
		q.Set("limit", strconv.Itoa(filter.Limit))
	}
	err = c.ask(ctx, request{method: "GET", path: "/v1/workflows?" + q.Encode()}, &page)
	return page, err
}

// WaitWorkflow implements [jobhost.WorkflowRunner].
func (c *Client) WaitWorkflow(ctx context.Context, id string) (jobhost.WorkflowRun, error) {
	run, err := c.Workflow(ctx, id)
	if err != nil {
		return c.runAsItIs(ctx, jobhost.WorkflowRun{ID: id}, err)
	}
	if run.Status.Ended() {
		return run, nil
	}
	return c.waitOnRun(ctx, run)
}

// waitOnRun waits for a workflow that had not ended when it was asked for.
func (c *Client) waitOnRun(ctx context.Context, run jobhost.WorkflowRun) (jobhost.WorkflowRun, error) {
	for {
		var next jobhost.WorkflowRun
		status, body, err := c.fetch(ctx, aboutWorkflow("GET", run.ID, "?wait="+waitFor(ctx)))
		if err == nil {
			err = c.decode(body, &next)
		}
		if err != nil {
			return c.runAsItIs(ctx, run, err)
		}
		if run = next; status == http.StatusOK {
			return run, nil
		}
		if err := pause(ctx, waitPause); err != nil {
			return c.runAsItIs(ctx, run, err)
		}
	}
}

// runAsItIs returns the workflow as it is now, if it can be had, with the error that
// ended a wait for it. run is what was known of it last.
func (c *Client) runAsItIs(ctx context.Context, run jobhost.WorkflowRun, err error) (jobhost.WorkflowRun, error) {
	if ctx.Err() == nil {
		return run, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	if now, lookErr := c.Workflow(ctx, run.ID); lookErr == nil {
		run = now
	}
	return run, err
}

// TraceWorkflow implements [jobhost.WorkflowRunner].
func (c *Client) TraceWorkflow(ctx context.Context, id string) (trace []jobhost.TraceEntry, err error) {
	err = c.ask(ctx, aboutWorkflow("GET", id, "/trace"), &trace)
	return trace, err
}

// SignalWorkflow implements [jobhost.WorkflowController]. A signal without ID
// whose answer was lost may or may not have arrived.
func (c *Client) SignalWorkflow(ctx context.Context, id string, signal jobhost.WorkflowSignal) error {
	rq := aboutWorkflow("POST", id, "/signals/"+signal.Name)
	if err := signal.Check(); err != nil {
		rq.err = err
	}
	if signal.ID != "" {
		rq.header = repeatable
	}
	return c.ask(ctx, rq.withBody(wire.AppendSignal(nil, &signal)), nil)
}

// CancelWorkflow implements [jobhost.WorkflowController].
func (c *Client) CancelWorkflow(ctx context.Context, id, reason string) (jobhost.WorkflowRun, error) {
	return c.askRun(ctx, aboutWorkflow("POST", id, "/cancel").withBody(wire.AppendCancel(nil, reason)))
}

// RetryWorkflow implements [jobhost.WorkflowController].
func (c *Client) RetryWorkflow(ctx context.Context, id, step string) (jobhost.WorkflowRun, error) {
	return c.askRun(ctx, aboutWorkflow("POST", id, "/retry").withBody(wire.AppendRetry(nil, step)))
}

// DeleteWorkflow implements [jobhost.WorkflowController].
func (c *Client) DeleteWorkflow(ctx context.Context, id string) error {
	return c.ask(ctx, aboutWorkflow("DELETE", id, ""), nil)
}

// Definitions implements [jobhost.WorkflowDefiner].
func (c *Client) Definitions(ctx context.Context) (definitions []jobhost.Workflow, err error) {
	err = c.ask(ctx, request{method: "GET", path: "/v1/definitions"}, &definitions)
	return definitions, err
}

// Definition implements [jobhost.WorkflowDefiner].
func (c *Client) Definition(ctx context.Context, name string) (definition jobhost.Workflow, err error) {
	err = c.ask(ctx, request{method: "GET", path: "/v1/definitions/" + name, err: jobhost.CheckWorkflow(name)}, &definition)
	return definition, err
}

// OpenWorkflowOutput implements [jobhost.WorkflowRunner].
func (c *Client) OpenWorkflowOutput(ctx context.Context, id string) (jobhost.Content, error) {
	return c.open(ctx, aboutWorkflow("GET", id, "/output"))
}

// DefinitionOf implements [jobhost.WorkflowDefiner].
func (c *Client) DefinitionOf(ctx context.Context, id string) (definition jobhost.Workflow, err error) {
	err = c.ask(ctx, aboutWorkflow("GET", id, "/definition"), &definition)
	return definition, err
}

// CheckWorkflow implements [jobhost.WorkflowDefiner].
func (c *Client) CheckWorkflow(ctx context.Context, w jobhost.Workflow) error {
	text, err := definitionJSON(&w)
	rq := request{method: "POST", path: "/v1/workflows:check", err: err}
	return c.ask(ctx, rq.withBody(text), nil)
}
