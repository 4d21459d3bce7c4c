package api

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"strconv"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// maxStateBody bounds the body that sets a state: the payload, the message with
// every character escaped, and room to spare.
const maxStateBody = 2 * jobhost.MaxStatePayloadBytes

var (
	runParam    = param{"run", "The run of the job; default: the job itself, as the queue runs it."}
	stateParams = []param{runParam, {"task", "Only states of this task, from 0."}, {"tag", "Only states under this tag."}}
)

// stateRoutes are those of the states of tasks.
func (a *API) stateRoutes() []route {
	return []route{
		{"GET", "/v1/states", "listStateJobs", "List the jobs that have states", reads, "", []param{
			{"deleted", "true: those too that are marked as deleted."},
			{"cursor", "Where to go on: the next of the previous page."},
			{"limit", "The size of a page, 1 to 1000; default 50."},
		}, []answer{answers[jobhost.StateJobPage](200, "A page of jobs, by id.")}, a.listStateJobs},
		{"GET", "/v1/states/{job}", "getStates", "Show the states of a job, and which one prevails", reads, "", stateParams, []answer{
			answers[jobhost.StateReport](200, "The states, by task and tag, and the lowest one."),
		}, a.getStates},
		{"GET", "/v1/states/{job}/watch", "watchStates", "Follow the states of a job", reads, "", append(stateParams[:len(stateParams):len(stateParams)],
			param{"after", "Leave out what has not changed since the event of this id; the header Last-Event-ID does the same."},
		), []answer{
			{200, "Server-sent events until one of them is called end; the data is JSON.", wire.Stream, []reflect.Type{reflect.TypeFor[jobhost.StateEvent]()}},
		}, a.watchStates},
		{"PUT", "/v1/states/{job}/{task}/{tag}", "setState", "Set the state of a task under a tag", writes, wire.JSON, []param{
			runParam, {"tasks", "How many tasks the job has, to create it if it doesn't exist yet; by default it must exist."},
		}, []answer{answers[jobhost.TaskState](200, "The state is durable: with its version, time and event_id.")}, a.setState},
		{"DELETE", "/v1/states/{job}", "deleteStates", "Remove the states of a job that the queue doesn't know", writes, "", []param{runParam}, []answer{gone}, a.deleteStates},
		{"POST", "/v1/states:clean", "cleanStates", "Remove states that have not changed for a long time", writes, wire.JSON, nil, []answer{
			answers[jobhost.StateCleaned](200, "How many jobs were marked as deleted, and how many removed."),
		}, a.cleanStates},
	}
}

func (a *API) listStateJobs(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	filter := jobhost.StateJobFilter{Cursor: q.Get("cursor")}
	var err error
	if filter.Deleted, err = flagOf(q, "deleted"); err != nil {
		return err
	}
	if filter.Limit, err = limitOf(q); err != nil {
		return err
	}
	page, err := a.server.StateJobs(r.Context(), filter)
	if err != nil {
		return err
	}
	if page.Jobs == nil {
		page.Jobs = []jobhost.StateJob{} // a list, not null
	}
	return answerJSON(w, http.StatusOK, page)
}

// stateQueryOf reads what states are asked for.
func stateQueryOf(r *http.Request) (jobhost.StateQuery, error) {
	q := r.URL.Query()
	query := jobhost.StateQuery{Job: r.PathValue("job"), Run: q.Get("run"), Tag: q.Get("tag")}
	if text := q.Get("task"); text != "" {
		task, err := parseTask(text)
		if err != nil {
			return query, err
		}
		query.Task = &task
	}
	return query, nil
}

// parseTask reads the index of a task.
func parseTask(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "task", Message: "task is not the number of a task", Hint: "tasks count from 0"}
	}
	return int(n), nil
}

func (a *API) getStates(w http.ResponseWriter, r *http.Request) error {
	query, err := stateQueryOf(r)
	if err != nil {
		return err
	}
	report, err := a.server.States(r.Context(), query)
	if err != nil {
		return err
	}
	states := report.States
	report.States = []jobhost.TaskState{}
	head, err := json.Marshal(report)
	if err != nil {
		return err
	}
	// One after the other: all of them may be large.
	size := int64(len(head))
	for i := range states {
		size += int64(len(states[i].Payload))
	}
	if err := callOf(w).lease.settle(size); err != nil {
		return err
	}
	paced, err := a.pace(w)
	if err != nil {
		return err
	}
	setJSON(w, http.StatusOK)
	return writeParts(paced, head[:len(head)-len("]}")], elements(states), "]}\n")
}

// elements yields what stands between the brackets of a list.
func elements[T any](list []T) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := range list {
			data, err := json.Marshal(&list[i])
			if i > 0 {
				data = append([]byte{','}, data...)
			}
			if !yield(data, err) {
				return
			}
		}
	}
}

func (a *API) watchStates(w http.ResponseWriter, r *http.Request) error {
	query, err := stateQueryOf(r)
	if err != nil {
		return err
	}
	if query.After, err = cursorOf(r); err != nil {
		return err
	}
	return a.serveStream(w, r, func(ctx context.Context, s *stream) error {
		within, ok := a.server.(watcherWithin)
		if !ok {
			return follow(ctx, s, a.server.WatchStates(ctx, query), headingOf)
		}
		return a.replayed(ctx, w, r, s, func(room func(bytes int) error) error {
			return follow(ctx, s, within.WatchStatesWithin(ctx, query, room), headingOf)
		})
	})
}

// watcherWithin is a server that asks for room for the states that a reader begins with.
type watcherWithin interface {
	WatchStatesWithin(ctx context.Context, query jobhost.StateQuery, room func(bytes int) error) iter.Seq2[jobhost.StateEvent, error]
}

func headingOf(e *jobhost.StateEvent) heading {
	if e.Sentinel {
		return heading{id: e.Cursor, name: wire.EventSentinel, replayed: true}
	}
	// Six bytes for each as JSON, and copies.
	const inJSON = 8
	return heading{id: e.Cursor, name: wire.EventState, room: inJSON * (len(e.State.Payload) + len(e.State.Message))}
}

// cursorOf reads where a reader wants to go on. What it means the host knows.
func cursorOf(r *http.Request) (string, error) {
	const most = 64
	cursor, field := r.URL.Query().Get("after"), "after"
	ids := r.Header["Last-Event-Id"]
	if len(ids) > 0 {
		cursor, field = ids[0], "Last-Event-ID"
	}
	if len(ids) > 1 || len(cursor) > most {
		return "", badSeq(field)
	}
	return cursor, nil
}

func (a *API) setState(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	task, err := parseTask(r.PathValue("task"))
	if err != nil {
		return err
	}
	tasks, err := tasksOf(q)
	if err != nil {
		return err
	}
	m := a.borrow()
	defer a.giveBack(m)
	var state jobhost.TaskState
	err = a.readBody(w, r, m, maxStateBody, errStateTooLarge, func() (err error) {
		state, err = m.decoder.DecodeState(m.in)
		return err
	})
	if err != nil {
		return err
	}
	state.JobID, state.TaskID, state.Tag = r.PathValue("job"), task, r.PathValue("tag")
	if state, err = a.server.SetState(r.Context(), q.Get("run"), state, tasks); err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, &state)
}

var errStateTooLarge = &jobhost.Error{
	Code: jobhost.CodeTooLarge, Field: "payload", Message: "the body is larger than that of any state",
	Hint: "keep the payload elsewhere, and where it is in the state",
}

// tasksOf reads how many tasks a job is to have; 0 = it isn't given.
func tasksOf(q url.Values) (int, error) {
	text := q.Get("tasks")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return 0, &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "tasks", Message: "tasks is not a number of tasks", Hint: "a job has 1 to " + strconv.Itoa(jobhost.MaxTasks),
		}
	}
	return int(n), nil
}

func (a *API) deleteStates(w http.ResponseWriter, r *http.Request) error {
	if err := a.server.DeleteStates(r.Context(), r.PathValue("job"), r.URL.Query().Get("run")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) cleanStates(w http.ResponseWriter, r *http.Request) error {
	m := a.borrow()
	defer a.giveBack(m)
	var cleanup jobhost.StateCleanup
	err := a.readBody(w, r, m, maxStateBody, errStateTooLarge, func() (err error) {
		cleanup, err = m.decoder.DecodeCleanup(m.in)
		return err
	})
	if err != nil {
		return err
	}
	call := callOf(w)
	if err := call.beginWait(); err != nil {
		return err
	}
	defer call.endWait()
	done, err := a.server.CleanStates(r.Context(), cleanup)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, done)
}
