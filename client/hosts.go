package client

import (
	"context"

	"github.com/jobhost/jobhost"
)

var _ jobhost.Cluster = (*Client)(nil)

// Hosts implements [jobhost.Cluster].
func (c *Client) Hosts(ctx context.Context) (hosts []jobhost.HostStatus, err error) {
	err = c.ask(ctx, request{method: "GET", path: "/v1/hosts"}, &hosts)
	return hosts, err
}

// Host returns one of them.
func (c *Client) Host(ctx context.Context, name string) (jobhost.HostStatus, error) {
	return c.askHost(ctx, "GET", name, "")
}

// DrainHost implements [jobhost.Cluster].
func (c *Client) DrainHost(ctx context.Context, name string) (jobhost.HostStatus, error) {
	return c.askHost(ctx, "POST", name, "/drain")
}

// LeadHost implements [jobhost.Cluster].
func (c *Client) LeadHost(ctx context.Context, name string) (jobhost.HostStatus, error) {
	return c.askHost(ctx, "POST", name, "/lead")
}

func (c *Client) askHost(ctx context.Context, method, name, rest string) (host jobhost.HostStatus, err error) {
	err = c.ask(ctx, request{method: method, path: "/v1/hosts/" + name + rest, err: jobhost.CheckHost(name)}, &host)
	return host, err
}
