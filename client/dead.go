package client

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// CancelTask implements [jobhost.Controller].
func (c *Client) CancelTask(ctx context.Context, id string, task int) (job jobhost.Job, err error) {
	err = c.ask(ctx, about("POST", id, "/cancel?task="+strconv.Itoa(task)), &job)
	return job, err
}

// RetryTask implements [jobhost.Controller].
func (c *Client) RetryTask(ctx context.Context, id string, task int) (job jobhost.Job, err error) {
	err = c.ask(ctx, about("POST", id, "/retry?task="+strconv.Itoa(task)), &job)
	return job, err
}

// Dead implements [jobhost.DeadLetters].
func (c *Client) Dead(ctx context.Context, filter jobhost.DeadFilter) (page jobhost.DeadPage, err error) {
	q, err := deadParams(&filter)
	if err == nil {
		err = c.ask(ctx, request{method: "GET", path: "/v1/dead?" + q.Encode()}, &page)
	}
	return page, err
}

// DeadSummary implements [jobhost.DeadLetters].
func (c *Client) DeadSummary(ctx context.Context, query jobhost.DeadQuery) (summary jobhost.DeadSummary, err error) {
	q := url.Values{}
	setText(q, "worker", query.Worker)
	setTime(q, "after", query.After)
	setTime(q, "before", query.Before)
	err = c.ask(ctx, request{method: "GET", path: "/v1/dead:summary?" + q.Encode()}, &summary)
	return summary, err
}

// ChangeDead implements [jobhost.DeadLetters].
func (c *Client) ChangeDead(ctx context.Context, change jobhost.DeadChange) (done jobhost.DeadChanged, err error) {
	if err := change.Check(); err != nil {
		return done, err
	}
	q, err := deadParams(&change.Filter)
	if err != nil {
		return done, err
	}
	if len(change.Jobs) > 0 {
		q = url.Values{"jobs": {strings.Join(change.Jobs, ",")}}
	}
	if change.Rate > 0 {
		q.Set("rate", strconv.FormatFloat(change.Rate, 'g', -1, 64))
	}
	if change.DryRun {
		q.Set("dry_run", "true")
	}
	err = c.ask(ctx, request{method: "POST", path: "/v1/dead:" + string(change.Action) + "?" + q.Encode()}, &done)
	return done, err
}

// deadParams writes a filter as the parameters of a query.
func deadParams(f *jobhost.DeadFilter) (url.Values, error) {
	q := url.Values{}
	setText(q, "worker", f.Worker)
	setText(q, "category", string(f.Category))
	setText(q, "code", f.Code)
	setText(q, "text", f.Text)
	setText(q, "cursor", f.Cursor)
	setTime(q, "after", f.After)
	setTime(q, "before", f.Before)
	for _, k := range slices.Sorted(maps.Keys(f.Labels)) {
		if strings.Contains(k, "=") {
			return nil, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "label", Message: "a label whose name has a = can't be looked for over HTTP"}
		}
		q.Add("label", k+"="+f.Labels[k])
	}
	if f.Retried {
		q.Set("retried", "true")
	}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q, nil
}

func setText(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func setTime(q url.Values, name string, t time.Time) {
	if !t.IsZero() {
		q.Set(name, t.Format(time.RFC3339Nano))
	}
}
