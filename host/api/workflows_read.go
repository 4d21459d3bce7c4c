package api

import (
	"context"
	"net/http"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

func (a *API) listWorkflows(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	filter := jobhost.WorkflowFilter{
		Name: q.Get("name"), Status: jobhost.WorkflowStatus(q.Get("status")), Parent: q.Get("parent"), Cursor: q.Get("cursor"),
	}
	var err error
	if text := q.Get("after"); text != "" {
		filter.After, err = wire.ParseTime("after", text)
	}
	if text := q.Get("before"); text != "" && err == nil {
		filter.Before, err = wire.ParseTime("before", text)
	}
	if err == nil {
		filter.Limit, err = limitOf(q)
	}
	if err == nil {
		err = filter.Check()
	}
	if err != nil {
		return err
	}
	page, err := a.server.Workflows(r.Context(), filter)
	if err != nil {
		return err
	}
	if page.Workflows == nil {
		page.Workflows = []jobhost.WorkflowRun{} // a list, not null
	}
	return answerJSON(w, http.StatusOK, page)
}

func (a *API) getWorkflow(w http.ResponseWriter, r *http.Request) error {
	wait, err := a.waitOf(r)
	if err != nil {
		return err
	}
	if wait == 0 {
		return a.answerRun(w, r, func(id string) (jobhost.WorkflowRun, error) { return a.server.Workflow(r.Context(), id) })
	}
	run, err := a.awaitRun(w, r, r.PathValue("id"), wait)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !run.Status.Ended() {
		status = http.StatusAccepted
	}
	return answerJSON(w, status, run)
}

// answerRun answers with the workflow that do returns for the path's id.
func (a *API) answerRun(w http.ResponseWriter, r *http.Request, do func(id string) (jobhost.WorkflowRun, error)) error {
	run, err := do(r.PathValue("id"))
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, run)
}

func (a *API) traceWorkflow(w http.ResponseWriter, r *http.Request) error {
	trace, err := a.server.TraceWorkflow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if trace == nil {
		trace = []jobhost.TraceEntry{}
	}
	return answerJSON(w, http.StatusOK, trace)
}

func (a *API) getWorkflowOutput(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	content, err := a.server.OpenWorkflowOutput(r.Context(), id)
	if err != nil {
		return err
	}
	defer content.Close()
	return a.stream(w, content, id)
}

func (a *API) getDefinitionOf(w http.ResponseWriter, r *http.Request) error {
	return answerDefinition(w, r, r.PathValue("id"), a.server.DefinitionOf)
}

func (a *API) getDefinition(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := jobhost.CheckWorkflow(name); err != nil {
		return err
	}
	return answerDefinition(w, r, name, a.server.Definition)
}

func answerDefinition(w http.ResponseWriter, r *http.Request, of string, ask func(context.Context, string) (jobhost.Workflow, error)) error {
	definition, err := ask(r.Context(), of)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, definition)
}

func (a *API) listDefinitions(w http.ResponseWriter, r *http.Request) error {
	definitions, err := a.server.Definitions(r.Context())
	if err != nil {
		return err
	}
	if definitions == nil {
		definitions = []jobhost.Workflow{}
	}
	return answerJSON(w, http.StatusOK, definitions)
}
