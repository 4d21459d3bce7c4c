package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
)

// about returns a request about a job. The id is checked here, since not every
// text can be part of a path.
func about(method, id, rest string) request {
	return request{method: method, path: "/v1/jobs/" + id + rest, err: jobhost.CheckID(id)}
}

// Job implements [jobhost.Reader].
func (c *Client) Job(ctx context.Context, id string) (job jobhost.Job, err error) {
	err = c.ask(ctx, about("GET", id, ""), &job)
	return job, err
}

// Jobs implements [jobhost.Reader].
func (c *Client) Jobs(ctx context.Context, filter jobhost.Filter) (page jobhost.Page, err error) {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("worker", filter.Worker)
	set("parent", filter.Parent)
	set("cursor", filter.Cursor)
	if filter.State != 0 {
		set("state", filter.State.String())
	}
	if !filter.After.IsZero() {
		set("after", filter.After.Format(time.RFC3339Nano))
	}
	if !filter.Before.IsZero() {
		set("before", filter.Before.Format(time.RFC3339Nano))
	}
	if filter.Limit != 0 {
		set("limit", strconv.Itoa(filter.Limit))
	}
	for name, value := range filter.Labels {
		q.Add("label", name+"="+value)
	}
	err = c.ask(ctx, request{method: "GET", path: "/v1/jobs?" + q.Encode()}, &page)
	return page, err
}

// Result implements [jobhost.Reader].
func (c *Client) Result(ctx context.Context, id string, task int) (jobhost.Result, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, data, err := c.fetch(ctx, about("GET", id, "/result?task="+strconv.Itoa(task)))
	return jobhost.Result{Task: task, Data: data}, err
}

// CopyResult writes what a task returned to w, whatever its size.
func (c *Client) CopyResult(ctx context.Context, w io.Writer, id string, task int) error {
	resp, err := c.send(ctx, about("GET", id, "/result?task="+strconv.Itoa(task)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return c.readError(ctx, err)
	}
	return nil
}

// Logs implements [jobhost.Reader].
func (c *Client) Logs(ctx context.Context, id string) (logs []jobhost.AttemptLog, err error) {
	err = c.ask(ctx, about("GET", id, "/logs"), &logs)
	return logs, err
}

// Why implements [jobhost.Reader].
func (c *Client) Why(ctx context.Context, id string) (why jobhost.Why, err error) {
	err = c.ask(ctx, about("GET", id, "/why"), &why)
	return why, err
}

// Workers implements [jobhost.WorkerLister].
func (c *Client) Workers(ctx context.Context) (workers []jobhost.WorkerStatus, err error) {
	err = c.ask(ctx, request{method: "GET", path: "/v1/workers"}, &workers)
	return workers, err
}

// Cancel implements [jobhost.Controller].
func (c *Client) Cancel(ctx context.Context, id string) (job jobhost.Job, err error) {
	err = c.ask(ctx, about("POST", id, "/cancel"), &job)
	return job, err
}

// Retry implements [jobhost.Controller].
func (c *Client) Retry(ctx context.Context, id string) (job jobhost.Job, err error) {
	err = c.ask(ctx, about("POST", id, "/retry"), &job)
	return job, err
}

// Delete implements [jobhost.Controller].
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.ask(ctx, about("DELETE", id, ""), nil)
}

// Wait implements [jobhost.Watcher].
func (c *Client) Wait(ctx context.Context, id string) (jobhost.Job, error) {
	job, err := c.Job(ctx, id)
	if err != nil {
		return c.asItIs(ctx, jobhost.Job{ID: id}, err)
	}
	if job.State.Ended() {
		return job, nil
	}
	return c.waitOn(ctx, job)
}

// lastLook is how long a wait that its context has ended may take to find out
// how far the job is.
const lastLook = 2 * time.Second

// asItIs returns the job as it is now, if it can be had, with the error that
// ended a wait for it. job is what was known of it last.
func (c *Client) asItIs(ctx context.Context, job jobhost.Job, err error) (jobhost.Job, error) {
	if ctx.Err() == nil {
		return job, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	if now, lookErr := c.Job(ctx, job.ID); lookErr == nil {
		job = now
	}
	return job, err
}

// waitOn waits for a job that had not ended when it was asked for.
func (c *Client) waitOn(ctx context.Context, job jobhost.Job) (jobhost.Job, error) {
	for {
		var next jobhost.Job
		status, body, err := c.fetch(ctx, about("GET", job.ID, "?wait="+waitFor(ctx)))
		if err == nil {
			err = c.decode(body, &next)
		}
		if err != nil {
			return c.asItIs(ctx, job, err)
		}
		if job = next; status == http.StatusOK {
			return job, nil
		}
		if err := pause(ctx, waitPause); err != nil {
			return c.asItIs(ctx, job, err)
		}
	}
}

// waitPause keeps a host that doesn't wait, since it is stopping, from being
// asked again and again.
const waitPause = 20 * time.Millisecond

// pause waits for d, or until ctx ends, whose cause is the error then.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
