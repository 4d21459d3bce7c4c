package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// aboutFiber returns a request about a fiber.
func aboutFiber(method, id, rest string) request {
	return request{method: method, path: "/v1/fibers/" + id + rest, err: jobhost.CheckFiber(id)}
}

// StartFiber implements [jobhost.FiberRunner].
func (c *Client) StartFiber(ctx context.Context, spec jobhost.FiberSpec) (jobhost.Fiber, error) {
	if err := spec.Check(); err != nil {
		return jobhost.Fiber{}, err
	}
	body := wire.AppendFiber(nil, &spec)
	for {
		// The id makes a start that arrives twice one fiber.
		_, answer, err := c.fetch(ctx, request{
			method: "POST", path: "/v1/fibers?wait=" + waitFor(ctx), contentType: wire.JSON, body: jsonBody(body), header: repeatable,
		})
		if err == nil {
			var f wire.Fiber
			err = c.decode(answer, &f)
			return f.Value(), err
		}
		if e, ok := errors.AsType[*jobhost.Error](err); !ok || e.Code != jobhost.CodeExhausted || e.Field != "wait" {
			return jobhost.Fiber{}, err
		}
		if err := pause(ctx, waitPause); err != nil { // the time to wait ran out, but not the caller's
			return jobhost.Fiber{}, fmt.Errorf("start fiber %s: %w", spec.ID, err)
		}
	}
}

// Fiber implements [jobhost.FiberRunner].
func (c *Client) Fiber(ctx context.Context, id string) (jobhost.Fiber, error) {
	return c.askFiber(ctx, aboutFiber("GET", id, ""))
}

func (c *Client) askFiber(ctx context.Context, rq request) (jobhost.Fiber, error) {
	var f wire.Fiber
	err := c.ask(ctx, rq, &f)
	return f.Value(), err
}

// Fibers implements [jobhost.FiberRunner].
func (c *Client) Fibers(ctx context.Context, filter jobhost.FiberFilter) (jobhost.FiberPage, error) {
	q := url.Values{}
	setText(q, "worker", filter.Worker)
	setText(q, "status", string(filter.Status))
	setText(q, "cursor", filter.Cursor)
	if filter.Limit != 0 {
		q.Set("limit", strconv.Itoa(filter.Limit))
	}
	var answer wire.FiberPage
	err := c.ask(ctx, request{method: "GET", path: "/v1/fibers?" + q.Encode()}, &answer)
	page := jobhost.FiberPage{Next: answer.Next}
	for i := range answer.Fibers {
		page.Fibers = append(page.Fibers, answer.Fibers[i].Value())
	}
	return page, err
}

// SendFiber implements [jobhost.FiberTalker]. With wait it asks again for as long as
// there is no room; others may come before it then. A message whose answer was lost
// may or may not have arrived.
func (c *Client) SendFiber(ctx context.Context, id string, message []byte, wait bool) error {
	for {
		rq := aboutFiber("POST", id, "/messages")
		rq.contentType, rq.body = wire.Bytes, jsonBody(message)
		if !wait {
			return c.ask(ctx, rq, nil)
		}
		rq.path += "?wait=" + waitFor(ctx)
		_, _, err := c.fetch(ctx, rq)
		if jobhost.CodeOf(err) != jobhost.CodeExhausted {
			return err
		}
		if err := pause(ctx, waitPause); err != nil {
			return fmt.Errorf("wait for room in the input of fiber %s: %w", id, err)
		}
	}
}

// WatchFiber implements [jobhost.FiberTalker]. A connection that breaks is made
// again and goes on after the last output; if the fiber has ended since, that is the
// end, even if there is another of its id.
func (c *Client) WatchFiber(ctx context.Context, query jobhost.FiberQuery) iter.Seq2[jobhost.FiberOutput, error] {
	return func(yield func(jobhost.FiberOutput, error) bool) {
		s, err := c.outputs(ctx, query)
		if err != nil {
			yield(jobhost.FiberOutput{Time: time.Now()}, err)
			return
		}
		for o, err := range followed[wire.FiberOutput](ctx, c, s) {
			if err != nil {
				yield(jobhost.FiberOutput{Time: time.Now()}, err)
				return
			}
			if !yield(o.Value(), nil) {
				return
			}
		}
	}
}

// outputs returns what a query asks for as a source that names the one fiber that is
// meant, and where to begin: so that a connection that breaks before the first
// output can be made again too.
func (c *Client) outputs(ctx context.Context, query jobhost.FiberQuery) (source, error) {
	f, err := c.Fiber(ctx, query.ID)
	if err != nil {
		return source{}, err
	}
	if query.CreatedAt.IsZero() {
		query.CreatedAt = f.CreatedAt
	}
	if !query.Replay && query.After == 0 {
		query.After = f.Emitted
	}
	return source{
		what: "outputs of a fiber", path: "/v1/fibers/" + query.ID + "/watch",
		query: url.Values{"created_at": {query.CreatedAt.Format(time.RFC3339Nano)}}, after: strconv.FormatUint(query.After, 10),
	}, nil
}

// PauseFiber implements [jobhost.FiberController].
func (c *Client) PauseFiber(ctx context.Context, id string) (jobhost.Fiber, error) {
	return c.askFiber(ctx, aboutFiber("POST", id, "/pause"))
}

// ResumeFiber implements [jobhost.FiberController].
func (c *Client) ResumeFiber(ctx context.Context, id string) (jobhost.Fiber, error) {
	return c.askFiber(ctx, aboutFiber("POST", id, "/resume"))
}

// InterruptFiber implements [jobhost.FiberController].
func (c *Client) InterruptFiber(ctx context.Context, id string) (jobhost.Fiber, error) {
	return c.askFiber(ctx, aboutFiber("POST", id, "/interrupt"))
}
