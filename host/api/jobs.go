package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

func (a *API) listJobs(w http.ResponseWriter, r *http.Request) error {
	filter, err := filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := a.server.Jobs(r.Context(), filter)
	if err != nil {
		return err
	}
	if page.Jobs == nil {
		page.Jobs = []jobhost.Job{} // a list, not null
	}
	return answerJSON(w, http.StatusOK, page)
}

// labelParam is the parameter for a label that jobs must have.
const labelParam = "label"

// labelsOf reads labels written as name=value.
func labelsOf(texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	labels := make(map[string]string, len(texts))
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if _, twice := labels[name]; !ok || name == "" || twice {
			return nil, &jobhost.Error{
				Code: jobhost.CodeInvalid, Field: labelParam,
				Message: "a label is not name=value, or its name is given twice",
			}
		}
		labels[name] = value
	}
	return labels, nil
}

// filterOf reads a filter from the parameters of a query.
func filterOf(q url.Values) (f jobhost.Filter, err error) {
	f.Cursor = q.Get("cursor")
	if f.Worker = q.Get("worker"); f.Worker != "" {
		err = jobhost.CheckWorker(f.Worker)
	}
	if f.Parent = q.Get("parent"); f.Parent != "" && err == nil {
		err = jobhost.CheckID(f.Parent)
	}
	if err == nil {
		f.Labels, err = labelsOf(q[labelParam])
	}
	if text := q.Get("state"); text != "" && err == nil {
		f.State, err = jobhost.ParseState(text)
	}
	if text := q.Get("after"); text != "" && err == nil {
		f.After, err = wire.ParseTime("after", text)
	}
	if text := q.Get("before"); text != "" && err == nil {
		f.Before, err = wire.ParseTime("before", text)
	}
	if err == nil {
		f.Limit, err = limitOf(q)
	}
	return f, err
}

// limitOf reads the size of a page; 0 = it isn't given.
func limitOf(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > jobhost.MaxPage {
		return 0, &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "limit",
			Message: fmt.Sprintf("limit is not a number between 1 and %d", jobhost.MaxPage),
		}
	}
	return limit, nil
}

func (a *API) getJob(w http.ResponseWriter, r *http.Request) error {
	wait, err := a.waitOf(r)
	if err != nil {
		return err
	}
	if wait == 0 {
		return a.answerJob(w, r, a.server.Job)
	}
	job, err := a.await(w, r, r.PathValue("id"), wait)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !job.State.Ended() {
		status = http.StatusAccepted
	}
	return answerJSON(w, status, job)
}

// answerJob answers with the job that do returns for the path's id.
func (a *API) answerJob(w http.ResponseWriter, r *http.Request, do func(context.Context, string) (jobhost.Job, error)) error {
	job, err := do(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, job)
}

func (a *API) cancelJob(w http.ResponseWriter, r *http.Request) error {
	return a.changeTasks(w, r, a.server.Cancel, a.server.CancelTask)
}

func (a *API) retryJob(w http.ResponseWriter, r *http.Request) error {
	return a.changeTasks(w, r, a.server.Retry, a.server.RetryTask)
}

// changeTasks changes all tasks of a job, or the one that the query names.
func (a *API) changeTasks(w http.ResponseWriter, r *http.Request,
	all func(context.Context, string) (jobhost.Job, error), one func(context.Context, string, int) (jobhost.Job, error),
) error {
	text := r.URL.Query().Get("task")
	if text == "" {
		return a.answerJob(w, r, all)
	}
	task, err := strconv.Atoi(text)
	if err != nil {
		return &jobhost.Error{Code: jobhost.CodeInvalid, Field: "task", Message: "task is not a number"}
	}
	return a.answerJob(w, r, func(ctx context.Context, id string) (jobhost.Job, error) { return one(ctx, id, task) })
}

func (a *API) deleteJob(w http.ResponseWriter, r *http.Request) error {
	if err := a.server.Delete(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) getLogs(w http.ResponseWriter, r *http.Request) error {
	logs, err := a.server.Logs(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if logs == nil {
		logs = []jobhost.AttemptLog{}
	}
	return answerJSON(w, http.StatusOK, logs)
}

func (a *API) getWhy(w http.ResponseWriter, r *http.Request) error {
	why, err := a.server.Why(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, why)
}
