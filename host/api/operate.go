package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/jobhost/jobhost"
)

func (a *API) pauseWorker(w http.ResponseWriter, r *http.Request) error {
	return a.operate(w, r, a.server.PauseWorker)
}

func (a *API) drainWorker(w http.ResponseWriter, r *http.Request) error {
	return a.operate(w, r, a.server.DrainWorker)
}

func (a *API) resumeWorker(w http.ResponseWriter, r *http.Request) error {
	return a.operate(w, r, a.server.ResumeWorker)
}

func (a *API) resetBreaker(w http.ResponseWriter, r *http.Request) error {
	return a.operate(w, r, a.server.ResetBreaker)
}

func (a *API) scaleWorker(w http.ResponseWriter, r *http.Request) error {
	slots, err := strconv.Atoi(r.URL.Query().Get("slots"))
	if err != nil {
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "slots", Message: "slots is not a whole number", Hint: "add ?slots=4, say",
		}
	}
	return a.operate(w, r, func(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
		return a.server.ScaleWorker(ctx, worker, slots)
	})
}

// operate answers with the worker of the path after do has changed it.
func (a *API) operate(w http.ResponseWriter, r *http.Request, do func(context.Context, string) (jobhost.WorkerStatus, error)) error {
	name := r.PathValue("name")
	if err := jobhost.CheckWorker(name); err != nil {
		return err
	}
	status, err := do(r.Context(), name)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, status)
}
