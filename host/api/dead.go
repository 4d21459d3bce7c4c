package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

var (
	aDeadPage  = answers[jobhost.DeadPage](200, "A page of dead letters, the latest first.")
	deadDone   = answers[jobhost.DeadChanged](200, "What became of them. If there is a next, call again with it as the cursor.")
	deadParams = []param{
		{"worker", "Only letters of this worker."},
		{"category", "Only letters with this category."},
		{"code", "Only letters with this code."},
		{"after", "Only tasks that died at this time or later, as RFC 3339."},
		{"before", "Only tasks that died before this time, as RFC 3339."},
		{labelParam, "Only jobs with this label, as name=value; may be repeated."},
		{"text", "Only letters with this text in the job's id, the code or the message, in any case."},
		{"retried", "true: include letters that were retried."},
		{"cursor", "Where to go on: the next of the previous page or call."},
		{"limit", "How many at most, 1 to 1000; default 50 for a list, 1000 for a change."},
	}
	changeParams = append(slices.Clone(deadParams), []param{
		{"jobs", "Only letters of these jobs: ids, separated by commas; not together with a selection."},
		{"rate", "How many per second; default: as fast as possible."},
		{"dry_run", "true: change nothing, and report what would be changed."},
	}...)
)

// deadRoutes are those of dead letters.
func (a *API) deadRoutes() []route {
	return []route{
		{"GET", "/v1/dead", "listDead", "List dead letters", reads, "", deadParams, []answer{aDeadPage}, a.listDead},
		{"GET", "/v1/dead:summary", "summarizeDead", "Count deaths by code, category, worker and time", reads, "", []param{
			{"worker", "Only deaths of this worker."},
			{"after", "Only deaths at this time or later, as RFC 3339; whole hours. Default: 24 h before the end of the range."},
			{"before", "Only deaths before this time, as RFC 3339; whole hours. Default: now."},
		}, []answer{answers[jobhost.DeadSummary](200, "The numbers.")}, a.summarizeDead},
		{"POST", "/v1/dead:retry", "retryDeadLetters", "Run the tasks of many dead letters again", writes, "", changeParams, []answer{deadDone}, a.changeDead(jobhost.DeadRetry)},
		{"POST", "/v1/dead:delete", "deleteDeadLetters", "Remove the jobs of many dead letters", writes, "", changeParams, []answer{deadDone}, a.changeDead(jobhost.DeadDelete)},
		{"GET", "/v1/dead/{id}", "getDead", "Show a job with dead tasks", reads, "", nil, []answer{aJob}, a.getDead},
		{"POST", "/v1/dead/{id}/retry", "retryDead", "Run the dead tasks of a job again", writes, "", nil, []answer{aJob}, a.retryDead},
		{"DELETE", "/v1/dead/{id}", "deleteDead", "Remove a job with dead tasks", writes, "", nil, []answer{gone}, a.deleteDead},
	}
}

func (a *API) listDead(w http.ResponseWriter, r *http.Request) error {
	filter, err := deadFilterOf(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := a.server.Dead(r.Context(), filter)
	if err != nil {
		return err
	}
	if page.Letters == nil {
		page.Letters = []jobhost.DeadLetter{} // a list, not null
	}
	return answerJSON(w, http.StatusOK, page)
}

// deadFilterOf reads a filter of dead letters from the parameters of a query.
func deadFilterOf(q url.Values) (f jobhost.DeadFilter, err error) {
	f = jobhost.DeadFilter{
		Worker: q.Get("worker"), Category: jobhost.Category(q.Get("category")), Code: q.Get("code"),
		Text: q.Get("text"), Cursor: q.Get("cursor"),
	}
	f.Labels, err = labelsOf(q[labelParam])
	if text := q.Get("after"); text != "" && err == nil {
		f.After, err = wire.ParseTime("after", text)
	}
	if text := q.Get("before"); text != "" && err == nil {
		f.Before, err = wire.ParseTime("before", text)
	}
	if err == nil {
		f.Retried, err = flagOf(q, "retried")
	}
	if err == nil {
		f.Limit, err = limitOf(q)
	}
	if err == nil {
		err = f.Check()
	}
	return f, err
}

// flagOf reads a parameter that is true or false.
func flagOf(q url.Values, name string) (bool, error) {
	switch q.Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, &jobhost.Error{Code: jobhost.CodeInvalid, Field: name, Message: name + " is not true or false"}
}

func (a *API) summarizeDead(w http.ResponseWriter, r *http.Request) (err error) {
	q := r.URL.Query()
	query := jobhost.DeadQuery{Worker: q.Get("worker")}
	if text := q.Get("after"); text != "" {
		query.After, err = wire.ParseTime("after", text)
	}
	if text := q.Get("before"); text != "" && err == nil {
		query.Before, err = wire.ParseTime("before", text)
	}
	if err != nil {
		return err
	}
	summary, err := a.server.DeadSummary(r.Context(), query)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, summary)
}

// changeDead returns what changes many dead letters in one way.
func (a *API) changeDead(action jobhost.DeadAction) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		change, err := deadChangeOf(r.URL.Query())
		if err != nil {
			return err
		}
		call := callOf(w)
		if err := call.beginWait(); err != nil {
			return err
		}
		defer call.endWait()
		change.Action = action
		done, err := a.server.ChangeDead(r.Context(), change)
		if err != nil {
			return err
		}
		return answerJSON(w, http.StatusOK, done)
	}
}

func deadChangeOf(q url.Values) (c jobhost.DeadChange, err error) {
	if c.Filter, err = deadFilterOf(q); err != nil {
		return c, err
	}
	if c.DryRun, err = flagOf(q, "dry_run"); err != nil {
		return c, err
	}
	if text := q.Get("rate"); text != "" {
		if c.Rate, err = strconv.ParseFloat(text, 64); err != nil {
			return c, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "rate", Message: "rate is not a number", Hint: "how many per second, such as 50"}
		}
	}
	if jobs := q.Get("jobs"); jobs != "" {
		c.Jobs = strings.Split(jobs, ",")
		for _, p := range deadParams {
			if q.Get(p.name) != "" {
				return c, &jobhost.Error{Code: jobhost.CodeInvalid, Field: p.name, Message: "jobs and " + p.name + " are both set"}
			}
		}
	}
	return c, nil
}

func (a *API) getDead(w http.ResponseWriter, r *http.Request) error {
	return a.answerJob(w, r, a.deadJob)
}

func (a *API) retryDead(w http.ResponseWriter, r *http.Request) error {
	return a.answerJob(w, r, func(ctx context.Context, id string) (jobhost.Job, error) {
		job, err := a.deadJob(ctx, id)
		if err != nil {
			return job, err
		}
		// Not all that can be retried: cancelled tasks stay cancelled.
		done, err := a.server.ChangeDead(ctx, jobhost.DeadChange{Action: jobhost.DeadRetry, Jobs: []string{id}})
		if err == nil && len(done.Failed) > 0 {
			err = done.Failed[0].Error
		}
		if err != nil {
			return job, err
		}
		return a.server.Job(ctx, id)
	})
}

func (a *API) deleteDead(w http.ResponseWriter, r *http.Request) error {
	if _, err := a.deadJob(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return a.deleteJob(w, r)
}

// deadJob returns a job that has a dead task. Others are not found.
func (a *API) deadJob(ctx context.Context, id string) (jobhost.Job, error) {
	job, err := a.server.Job(ctx, id)
	if err != nil {
		return job, err
	}
	if !slices.ContainsFunc(job.Tasks, func(t jobhost.Task) bool { return t.State == jobhost.Dead }) {
		return job, &jobhost.Error{
			Code:    jobhost.CodeNotFound,
			Message: fmt.Sprintf("job %s has no dead task: it is %s", job.ID, job.State),
			Hint:    "see /v1/jobs/" + job.ID,
		}
	}
	return job, nil
}
