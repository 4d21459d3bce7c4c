package api

import (
	"context"
	"net/http"

	"github.com/jobhost/jobhost"
)

func (a *API) listSchedules(w http.ResponseWriter, r *http.Request) error {
	list, err := a.server.Schedules(r.Context())
	if err != nil {
		return err
	}
	if list == nil {
		list = []jobhost.Schedule{} // a list, not null
	}
	return answerJSON(w, http.StatusOK, list)
}

func (a *API) getSchedule(w http.ResponseWriter, r *http.Request) error {
	return a.answerSchedule(w, r, a.server.Schedule)
}

func (a *API) pauseSchedule(w http.ResponseWriter, r *http.Request) error {
	return a.answerSchedule(w, r, a.server.PauseSchedule)
}

func (a *API) resumeSchedule(w http.ResponseWriter, r *http.Request) error {
	return a.answerSchedule(w, r, a.server.ResumeSchedule)
}

func (a *API) answerSchedule(w http.ResponseWriter, r *http.Request, ask func(context.Context, string) (jobhost.Schedule, error)) error {
	name := r.PathValue("name")
	if err := jobhost.CheckSchedule(name); err != nil {
		return err
	}
	s, err := ask(r.Context(), name)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, s)
}

func (a *API) runSchedule(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := jobhost.CheckSchedule(name); err != nil {
		return err
	}
	receipt, err := a.server.RunSchedule(r.Context(), name)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusCreated, receipt)
}
