package api

import (
	"fmt"
	"net/http"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// status is the answer of the probes.
type status struct {
	Status   string   `json:"status"`
	Impaired []string `json:"impaired,omitempty"`
}

func (a *API) health(w http.ResponseWriter, _ *http.Request) error {
	return answerJSON(w, http.StatusOK, status{Status: "ok"})
}

// ready answers 503 with the reason while jobs are not taken. While only large ones are
// not, or have to wait, it is ready and says what is impaired.
func (a *API) ready(w http.ResponseWriter, _ *http.Request) error {
	if a.stopping.Err() != nil {
		return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the host is stopping"}
	}
	if a.cfg.Ready != nil {
		if err := a.cfg.Ready(); err != nil {
			return err
		}
	}
	answer := status{Status: "ready"}
	if a.cfg.Impaired != nil {
		answer.Impaired = a.cfg.Impaired()
	}
	return answerJSON(w, http.StatusOK, answer)
}

func (a *API) metrics(w http.ResponseWriter, r *http.Request) error {
	paced, err := a.pace(w)
	if err != nil {
		return err
	}
	a.cfg.Metrics.ServeHTTP(paced, r)
	return nil
}

func (a *API) describeAPI(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, a.openapi)
	return nil
}

func (a *API) listWorkers(w http.ResponseWriter, r *http.Request) error {
	workers, err := a.server.Workers(r.Context())
	if err != nil {
		return err
	}
	if workers == nil {
		workers = []jobhost.WorkerStatus{}
	}
	return answerJSON(w, http.StatusOK, workers)
}

func (a *API) getWorker(w http.ResponseWriter, r *http.Request) error {
	workers, err := a.server.Workers(r.Context())
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	var names []string
	for i := range workers {
		if workers[i].Name == name {
			return answerJSON(w, http.StatusOK, workers[i])
		}
		names = append(names, workers[i].Name)
	}
	notFound := &jobhost.Error{Code: jobhost.CodeNotFound, Field: "name", Message: "there is no worker of this name", Hint: "see /v1/workers"}
	if near := text.Nearest(name, names); near != "" {
		notFound.Hint = fmt.Sprintf("did you mean %s?", near)
	}
	return notFound
}
