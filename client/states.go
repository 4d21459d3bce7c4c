package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"strconv"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// StateJobs implements [jobhost.StateKeeper].
func (c *Client) StateJobs(ctx context.Context, filter jobhost.StateJobFilter) (page jobhost.StateJobPage, err error) {
	if err := filter.Check(); err != nil {
		return page, err
	}
	q := url.Values{}
	setText(q, "cursor", filter.Cursor)
	if filter.Deleted {
		q.Set("deleted", "true")
	}
	if filter.Limit != 0 {
		q.Set("limit", strconv.Itoa(filter.Limit))
	}
	err = c.ask(ctx, request{method: "GET", path: "/v1/states?" + q.Encode()}, &page)
	return page, err
}

// States implements [jobhost.StateKeeper].
func (c *Client) States(ctx context.Context, query jobhost.StateQuery) (report jobhost.StateReport, err error) {
	path, q, err := aboutStates(&query)
	err = c.ask(ctx, request{method: "GET", path: path + "?" + q.Encode(), err: err}, &report)
	return report, err
}

// aboutStates returns where the states of a query are, and what selects among
// them. What stands in the path is checked here, since not every text can.
func aboutStates(query *jobhost.StateQuery) (path string, q url.Values, err error) {
	q = url.Values{}
	setText(q, "run", query.Run)
	setText(q, "tag", query.Tag)
	if query.Task != nil {
		q.Set("task", strconv.Itoa(*query.Task))
	}
	return "/v1/states/" + query.Job, q, errors.Join(jobhost.CheckID(query.Job), jobhost.CheckRun(query.Run))
}

// SetState implements [jobhost.StateKeeper].
func (c *Client) SetState(ctx context.Context, run string, s jobhost.TaskState, tasks int) (set jobhost.TaskState, err error) {
	path, q, err := aboutStates(&jobhost.StateQuery{Job: s.JobID, Run: run})
	path += "/" + strconv.Itoa(s.TaskID) + "/" + s.Tag
	if tasks != 0 {
		q.Set("tasks", strconv.Itoa(tasks))
	}
	rq := request{method: "PUT", path: path + "?" + q.Encode(), contentType: wire.JSON, err: errors.Join(err, s.Check())}
	if rq.err == nil {
		rq.body = jsonBody(wire.AppendState(nil, &s))
	}
	err = c.ask(ctx, rq, &set)
	return set, err
}

// WatchStates implements [jobhost.StateKeeper]. A connection that breaks is made
// again and goes on after the last event that had a cursor: what has changed since
// comes as a replay, with another sentinel. If the host was started anew since,
// that is everything there is.
func (c *Client) WatchStates(ctx context.Context, query jobhost.StateQuery) iter.Seq2[jobhost.StateEvent, error] {
	path, q, err := aboutStates(&query)
	return followed[jobhost.StateEvent](ctx, c, source{what: "states", path: path + "/watch", query: q, after: query.After, err: err})
}

// DeleteStates implements [jobhost.StateCleaner].
func (c *Client) DeleteStates(ctx context.Context, job, run string) error {
	path, q, err := aboutStates(&jobhost.StateQuery{Job: job, Run: run})
	return c.ask(ctx, request{method: "DELETE", path: path + "?" + q.Encode(), err: err}, nil)
}

// CleanStates implements [jobhost.StateCleaner]. It takes as long as the host does:
// an error leaves what was done done.
func (c *Client) CleanStates(ctx context.Context, cleanup jobhost.StateCleanup) (done jobhost.StateCleaned, err error) {
	if err := cleanup.Check(); err != nil {
		return done, err
	}
	body, err := json.Marshal(cleanup)
	if err != nil {
		return done, err
	}
	_, answer, err := c.fetch(ctx, request{method: "POST", path: "/v1/states:clean", contentType: wire.JSON, body: jsonBody(body)})
	if err == nil {
		err = c.decode(answer, &done)
	}
	return done, err
}
