package client

import (
	"context"
	"strconv"

	"github.com/jobhost/jobhost"
)

// Ready returns nil when the host takes jobs, and otherwise why not: during its start an error
// whose field is [jobhost.FieldStart]. It needs no token.
func (c *Client) Ready(ctx context.Context) error {
	return c.ask(ctx, request{method: "GET", path: "/readyz"}, nil)
}

// PauseWorker implements [jobhost.Operator].
func (c *Client) PauseWorker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return c.operate(ctx, worker, "/pause")
}

// DrainWorker implements [jobhost.Operator].
func (c *Client) DrainWorker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return c.operate(ctx, worker, "/drain")
}

// ResumeWorker implements [jobhost.Operator].
func (c *Client) ResumeWorker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return c.operate(ctx, worker, "/resume")
}

// ScaleWorker implements [jobhost.Operator].
func (c *Client) ScaleWorker(ctx context.Context, worker string, slots int) (jobhost.WorkerStatus, error) {
	return c.operate(ctx, worker, "/scale?slots="+strconv.Itoa(slots))
}

// ResetBreaker implements [jobhost.Operator].
func (c *Client) ResetBreaker(ctx context.Context, worker string) (jobhost.WorkerStatus, error) {
	return c.operate(ctx, worker, "/reset-breaker")
}

func (c *Client) operate(ctx context.Context, worker, what string) (status jobhost.WorkerStatus, err error) {
	err = c.ask(ctx, request{method: "POST", path: "/v1/workers/" + worker + what, err: jobhost.CheckWorker(worker)}, &status)
	return status, err
}
