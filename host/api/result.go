package api

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// getResult serves GET /v1/jobs/{id}/result.
func (a *API) getResult(w http.ResponseWriter, r *http.Request) error {
	id, task := r.PathValue("id"), 0
	if text := r.URL.Query().Get("task"); text != "" {
		n, err := parseTask(text)
		if err != nil {
			return err
		}
		task = n
	} else {
		job, err := a.server.Job(r.Context(), id)
		if err != nil {
			return err
		}
		if job.TaskCount > 1 {
			return a.allResults(w, r, &job)
		}
	}
	content, err := a.server.OpenResult(r.Context(), id, task)
	if err != nil {
		return err
	}
	defer content.Close()
	return a.stream(w, content, fmt.Sprintf("%s.%d", id, task))
}

// allResults answers with the results of all tasks of a job.
func (a *API) allResults(w http.ResponseWriter, r *http.Request, job *jobhost.Job) error {
	first, err := a.taskResult(r, job, 0)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.json"`, job.ID))
	setJSON(w, http.StatusOK)
	return writeParts(w, nil, a.resultList(r, job, first), "\n")
}

// maxListed is the largest result that stands in a list of them, in bytes.
const maxListed = 8 << 20

// taskResult returns a task with its result, if that is not too large for a list.
func (a *API) taskResult(r *http.Request, job *jobhost.Job, i int) (wire.TaskResult, error) {
	if i >= len(job.Tasks) {
		return wire.TaskResult{}, fmt.Errorf("list results: job %s has %d tasks, not %d", job.ID, len(job.Tasks), job.TaskCount)
	}
	t := wire.TaskResult{Task: job.Tasks[i].Index, State: job.Tasks[i].State}
	if t.State != jobhost.Succeeded {
		return t, nil
	}
	if size := job.Tasks[i].ResultSize; size > maxListed {
		t.Size = size // to be fetched by itself
		return t, nil
	}
	result, err := a.server.Result(r.Context(), job.ID, t.Task)
	t.Set(result.Data)
	return t, err
}

// resultList yields the pieces of a JSON list of all tasks with their results,
// of which only one is in memory at a time.
func (a *API) resultList(r *http.Request, job *jobhost.Job, first wire.TaskResult) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		next := first
		for i, before := 0, byte('['); i < job.TaskCount; i, before = i+1, ',' {
			var err error
			if i > 0 {
				next, err = a.taskResult(r, job, i)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			piece, err := json.Marshal(next)
			if !yield(append([]byte{before}, piece...), err) || err != nil {
				return
			}
		}
		yield([]byte{']'}, nil)
	}
}

// writeParts writes what comes before a list, the list, and what comes after.
func writeParts(w io.Writer, before []byte, list iter.Seq2[[]byte, error], after string) error {
	if _, err := w.Write(before); err != nil {
		return nil // the client is gone
	}
	for piece, err := range list {
		if err != nil {
			return err
		}
		if _, err := w.Write(piece); err != nil {
			return nil
		}
	}
	_, _ = io.WriteString(w, after)
	return nil
}
