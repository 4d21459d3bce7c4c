package api

import (
	"context"
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
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.json"`, job.ID))
	return a.answerResults(w, r, http.StatusOK, job, nil, "\n")
}

// answerResults answers with a list of all tasks of a job and their results, and what
// comes before and after it. If there is an error with the first, that is the answer.
func (a *API) answerResults(w http.ResponseWriter, r *http.Request, status int, job *jobhost.Job, before []byte, after string) error {
	if err := a.reserveFor(w, r, job); err != nil {
		return err
	}
	next, stop := iter.Pull2(a.resultList(r.Context(), job))
	defer stop()
	first, err, _ := next()
	if err != nil {
		return err
	}
	paced, err := a.pace(w)
	if err != nil {
		return err
	}
	setJSON(w, status)
	return writeParts(paced, append(before, first...), func(yield func([]byte, error) bool) {
		for piece, err, more := next(); more; piece, err, more = next() {
			if !yield(piece, err) {
				return
			}
		}
	}, after)
}

// reserveFor takes the room that the list of the results of a job needs. The job is in
// memory meanwhile, so only a small one waits for it.
func (a *API) reserveFor(w http.ResponseWriter, r *http.Request, job *jobhost.Job) error {
	const small = 256 // tasks
	lease, room := &callOf(w).lease, roomOf(job)
	switch {
	case room <= lease.n:
		return lease.settle(room)
	case lease.tryTake(room):
		return nil
	case len(job.Tasks) > small:
		return errNoRoom
	}
	return a.reserve(w, r, room)
}

// atATime is how much of their results a server holds at a time while it lists them, unless one has more.
const atATime = 1 << 20

// roomOf is the room that the list of the results of a job takes while it is written.
func roomOf(job *jobhost.Job) int64 {
	all, largest := 0, 0
	for i := range job.Tasks {
		if size := job.Tasks[i].ResultSize; size <= maxListed {
			all, largest = all+size, max(largest, size)
		}
	}
	const task = 512 // what is known of one, about
	return streamRoom + int64(len(job.Tasks))*task + int64(min(all, atATime+largest))
}

// maxListed is the largest result that stands in a list of them, in bytes.
const maxListed = 8 << 20

// resultList yields the pieces of a JSON list of all tasks with their results,
// of which few are in memory at a time.
func (a *API) resultList(ctx context.Context, job *jobhost.Job) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		next, stop := iter.Pull2(a.results(ctx, job))
		defer stop()
		for i, before := 0, byte('['); i < job.TaskCount; i, before = i+1, ',' {
			for piece, err := range taskResult(job, i, next) {
				if before != 0 { // together, since an error with the first result is the answer
					piece, before = append([]byte{before}, piece...), 0
				}
				if !yield(piece, err) || err != nil {
					return
				}
			}
		}
		yield([]byte{']'}, nil)
	}
}

// taskResult yields the JSON of a task with its result, if that is not too large for a list.
// next returns the next of them: those of tasks that have ended since the job was read
// are passed over.
func taskResult(job *jobhost.Job, i int, next func() (jobhost.Result, error, bool)) iter.Seq2[[]byte, error] {
	if i >= len(job.Tasks) {
		return failing(fmt.Errorf("list results: job %s has %d tasks, not %d", job.ID, len(job.Tasks), job.TaskCount))
	}
	t := wire.TaskResult{Task: job.Tasks[i].Index, State: job.Tasks[i].State}
	size := job.Tasks[i].ResultSize
	if t.State != jobhost.Succeeded || size > maxListed {
		if t.State == jobhost.Succeeded {
			t.Size = size // to be fetched by itself
		}
		data, err := json.Marshal(t)
		return func(yield func([]byte, error) bool) { yield(data, err) }
	}
	for {
		result, err, more := next()
		switch {
		case err != nil:
			return failing(err)
		case !more || result.Task > t.Task:
			return failing(fmt.Errorf("list results: that of task %d of job %s is gone", t.Task, job.ID))
		case result.Task == t.Task:
			return t.Pieces(result.Data)
		}
	}
}

func failing(err error) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield(nil, err) }
}

// results yields the results of a job that may stand in a list: together, or one by one
// from a server that can't.
func (a *API) results(ctx context.Context, job *jobhost.Job) iter.Seq2[jobhost.Result, error] {
	if lister, ok := a.server.(jobhost.ResultLister); ok {
		return lister.Results(ctx, job.ID, maxListed)
	}
	return func(yield func(jobhost.Result, error) bool) {
		for i := range job.Tasks {
			if job.Tasks[i].State != jobhost.Succeeded || job.Tasks[i].ResultSize > maxListed {
				continue
			}
			if result, err := a.server.Result(ctx, job.ID, job.Tasks[i].Index); !yield(result, err) || err != nil {
				return
			}
		}
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
