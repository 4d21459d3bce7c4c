package api

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

// workflowSlack is the room that a body needs beside what it carries.
const workflowSlack = 64 << 10

var (
	aRun         = answers[jobhost.WorkflowRun](200, "The workflow, with its steps.")
	aDefinition  = answers[jobhost.Workflow](200, "The definition.")
	runWaitParam = param{"wait", `Wait this long for the workflow to end, such as "30s".`}
)

// workflowRoutes are those of workflows and their definitions.
func (a *API) workflowRoutes() []route {
	routes := []route{
		{"POST", "/v1/workflows", "startWorkflow", "Start a workflow", writes, wire.JSON, []param{runWaitParam}, []answer{
			answers[jobhost.WorkflowReceipt](201, "The workflow is durable. With wait: the workflow, ended.").started(),
			answers[jobhost.WorkflowReceipt](200, "The same workflow existed already. With wait: the workflow, ended.").started(),
			answers[wire.WorkflowStarted](202, "The time to wait is over: the workflow as it is now."),
		}, a.startWorkflow},
		{"GET", "/v1/workflows", "listWorkflows", "List workflows", reads, "", []param{
			{"name", "Only workflows of this definition."},
			{"status", "Only workflows in this status: running, completed, failed or cancelled."},
			{"parent", "Only workflows that are steps of the one of this id."},
			{"after", "Only workflows started at this time or later, as RFC 3339."},
			{"before", "Only workflows started before this time, as RFC 3339."},
			{"cursor", "Where to go on: the next of the previous page."},
			{"limit", "The size of a page, 1 to 1000; default 50."},
		}, []answer{answers[jobhost.WorkflowPage](200, "A page of workflows, the latest start first, without their outputs and steps.")}, a.listWorkflows},
		{"GET", "/v1/workflows/{id}", "getWorkflow", "Show a workflow with its steps", reads, "", []param{runWaitParam}, []answer{
			aRun, answers[jobhost.WorkflowRun](202, "The time to wait is over: the workflow as it is now."),
		}, a.getWorkflow},
		{"GET", "/v1/workflows/{id}/trace", "traceWorkflow", "List what happened in a workflow", reads, "", nil, []answer{
			answers[[]jobhost.TraceEntry](200, "What happened, in the order of time."),
		}, a.traceWorkflow},
		{"GET", "/v1/workflows/{id}/output", "getWorkflowOutput", "Fetch the output of a workflow", reads, "", nil, []answer{
			{200, "The bytes.", wire.Bytes, nil},
		}, a.getWorkflowOutput},
		{"GET", "/v1/workflows/{id}/definition", "getDefinitionOf", "Show the definition that a workflow runs", reads, "", nil, []answer{aDefinition}, a.getDefinitionOf},
		{"POST", "/v1/workflows/{id}/cancel", "cancelWorkflow", "End a workflow and all that it runs", writes, maybeJSON, nil, []answer{aRun}, a.cancelWorkflow},
		{"POST", "/v1/workflows/{id}/retry", "retryWorkflow", "Run a failed step again", writes, maybeJSON, nil, []answer{aRun}, a.retryWorkflow},
		{"POST", "/v1/workflows/{id}/signals/{name}", "signalWorkflow", "Send a workflow a signal", writes, maybeJSON, nil, []answer{
			{204, "A step has it, or it is kept until one waits for it.", "", nil},
		}, a.signalWorkflow},
		{"DELETE", "/v1/workflows/{id}", "deleteWorkflow", "Remove a workflow that has ended, with its jobs", writes, "", nil, []answer{gone}, a.deleteWorkflow},
		{"POST", "/v1/workflows:check", "checkWorkflow", "Check a definition without running it", writes, wire.JSON, nil, []answer{
			answers[wire.WorkflowCheck](200, "It has no errors."),
		}, a.checkWorkflow},
		{"GET", "/v1/definitions", "listDefinitions", "List the definitions of workflows", reads, "", nil, []answer{
			answers[[]jobhost.Workflow](200, "All definitions of the host, by name."),
		}, a.listDefinitions},
		{"GET", "/v1/definitions/{name}", "getDefinition", "Show a definition", reads, "", nil, []answer{aDefinition}, a.getDefinition},
	}
	for i := range routes {
		if strings.HasPrefix(routes[i].path, "/v1/workflows/{id}") {
			routes[i].serve = ofWorkflow(routes[i].serve)
		}
	}
	return routes
}

// ofWorkflow refuses ids in the path that no workflow has.
func ofWorkflow(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := jobhost.CheckAnyWorkflowID(r.PathValue("id")); err != nil {
			return err
		}
		return serve(w, r)
	}
}

// startWorkflow serves POST /v1/workflows.
func (a *API) startWorkflow(w http.ResponseWriter, r *http.Request) error {
	wait, err := a.waitOf(r)
	if err != nil {
		return err
	}
	start, err := a.readStart(w, r)
	if err != nil {
		return err
	}
	receipt, err := a.server.StartWorkflow(r.Context(), start)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/workflows/"+receipt.ID)
	status := http.StatusCreated
	if receipt.Deduplicated {
		status = http.StatusOK
	}
	if wait == 0 {
		return answerJSON(w, status, receipt)
	}
	run, err := a.awaitRun(w, r, receipt.ID, wait)
	if err != nil {
		return err
	}
	if !run.Status.Ended() {
		status = http.StatusAccepted
	}
	return answerJSON(w, status, wire.WorkflowStarted{WorkflowRun: run, Deduplicated: receipt.Deduplicated})
}

// readStart reads what is to be started.
func (a *API) readStart(w http.ResponseWriter, r *http.Request) (start jobhost.WorkflowStart, err error) {
	m := a.borrow()
	defer a.giveBack(m)
	var definition []byte
	err = a.readBody(w, r, m, jobhost.MaxWorkflowBytes+a.maxBody, errStartTooLarge, func() (err error) {
		start, definition, err = m.decoder.DecodeWorkflow(m.in)
		return err
	})
	if err != nil || definition == nil {
		return start, err
	}
	workflow, err := plan.Decode(definition)
	start.Definition = &workflow
	return start, err
}

var (
	errStartTooLarge = &jobhost.Error{
		Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the body is larger than a definition of %d bytes and an input may be", jobhost.MaxWorkflowBytes),
		Hint: "make parts of the definition workflows of their own, and send where the input is instead",
	}
	errDefinitionTooLarge = &jobhost.Error{
		Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the definition is larger than %d bytes", jobhost.MaxWorkflowBytes),
		Hint: "make parts of it workflows of their own",
	}
	errSignalTooLarge = &jobhost.Error{
		Code: jobhost.CodeTooLarge, Field: "payload", Message: fmt.Sprintf("the body is larger than a payload of %d bytes needs", jobhost.MaxStepData),
		Hint: "send where it is instead",
	}
	errTextTooLarge = &jobhost.Error{Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the body is larger than %d bytes", workflowSlack)}
)

// checkWorkflow serves POST /v1/workflows:check.
func (a *API) checkWorkflow(w http.ResponseWriter, r *http.Request) error {
	m := a.borrow()
	defer a.giveBack(m)
	var definition jobhost.Workflow
	err := a.readBody(w, r, m, jobhost.MaxWorkflowBytes, errDefinitionTooLarge, func() (err error) {
		definition, err = plan.Decode(m.in)
		return err
	})
	if err != nil {
		return err
	}
	if err := a.server.CheckWorkflow(r.Context(), definition); err != nil {
		return err
	}
	hash, err := plan.Hash(&definition)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, wire.WorkflowCheck{OK: true, Hash: hash})
}

// readMaybe reads a body that may be left out, and has it decoded if it is there.
func (a *API) readMaybe(w http.ResponseWriter, r *http.Request, most int, tooLarge error, decode func(*wire.Decoder, []byte) error) error {
	if r.ContentLength == 0 {
		return nil
	}
	m := a.borrow()
	defer a.giveBack(m)
	return a.readBody(w, r, m, most, tooLarge, func() error { return decode(m.decoder, m.in) })
}

func (a *API) cancelWorkflow(w http.ResponseWriter, r *http.Request) error {
	reason := ""
	err := a.readMaybe(w, r, workflowSlack, errTextTooLarge, func(d *wire.Decoder, body []byte) (err error) {
		reason, err = d.DecodeCancel(body)
		return err
	})
	if err != nil {
		return err
	}
	return a.answerRun(w, r, func(id string) (jobhost.WorkflowRun, error) { return a.server.CancelWorkflow(r.Context(), id, reason) })
}

func (a *API) retryWorkflow(w http.ResponseWriter, r *http.Request) error {
	step := ""
	err := a.readMaybe(w, r, workflowSlack, errTextTooLarge, func(d *wire.Decoder, body []byte) (err error) {
		step, err = d.DecodeRetry(body)
		return err
	})
	if err == nil && step != "" {
		err = jobhost.CheckStep(step)
	}
	if err != nil {
		return err
	}
	return a.answerRun(w, r, func(id string) (jobhost.WorkflowRun, error) { return a.server.RetryWorkflow(r.Context(), id, step) })
}

func (a *API) signalWorkflow(w http.ResponseWriter, r *http.Request) error {
	var signal jobhost.WorkflowSignal
	most := (jobhost.MaxStepData+2)/3*4 + workflowSlack
	err := a.readMaybe(w, r, most, errSignalTooLarge, func(d *wire.Decoder, body []byte) (err error) {
		signal, err = d.DecodeSignal(body)
		return err
	})
	if err != nil {
		return err
	}
	signal.Name = r.PathValue("name")
	if err := signal.Check(); err != nil {
		return err
	}
	if err := a.server.SignalWorkflow(r.Context(), r.PathValue("id"), signal); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) deleteWorkflow(w http.ResponseWriter, r *http.Request) error {
	if err := a.server.DeleteWorkflow(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// started adds what a start answers that waits.
func (a answer) started() answer {
	a.models = append(slices.Clone(a.models), reflect.TypeFor[wire.WorkflowStarted]())
	return a
}

// awaitRun waits for a workflow to end, for at most d, and returns it as it is then.
func (a *API) awaitRun(w http.ResponseWriter, r *http.Request, id string, d time.Duration) (jobhost.WorkflowRun, error) {
	return awaitFor(a, w, r, d, a.server.WaitWorkflow, a.server.Workflow, id)
}
