package client

import (
	"context"

	"github.com/jobhost/jobhost"
)

// aboutSchedule returns a request about a schedule.
func aboutSchedule(method, name, rest string) request {
	return request{method: method, path: "/v1/schedules/" + name + rest, err: jobhost.CheckSchedule(name)}
}

// Schedules implements [jobhost.Scheduler].
func (c *Client) Schedules(ctx context.Context) (list []jobhost.Schedule, err error) {
	err = c.ask(ctx, request{method: "GET", path: "/v1/schedules"}, &list)
	return list, err
}

// Schedule implements [jobhost.Scheduler].
func (c *Client) Schedule(ctx context.Context, name string) (s jobhost.Schedule, err error) {
	err = c.ask(ctx, aboutSchedule("GET", name, ""), &s)
	return s, err
}

// RunSchedule implements [jobhost.Scheduler].
func (c *Client) RunSchedule(ctx context.Context, name string) (receipt jobhost.Receipt, err error) {
	err = c.ask(ctx, aboutSchedule("POST", name, "/run"), &receipt)
	return receipt, err
}

// PauseSchedule implements [jobhost.Scheduler].
func (c *Client) PauseSchedule(ctx context.Context, name string) (s jobhost.Schedule, err error) {
	err = c.ask(ctx, aboutSchedule("POST", name, "/pause"), &s)
	return s, err
}

// ResumeSchedule implements [jobhost.Scheduler].
func (c *Client) ResumeSchedule(ctx context.Context, name string) (s jobhost.Schedule, err error) {
	err = c.ask(ctx, aboutSchedule("POST", name, "/resume"), &s)
	return s, err
}
