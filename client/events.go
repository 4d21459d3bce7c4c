package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/jobhost/jobhost"
)

// Events implements [jobhost.Watcher]. A connection that breaks, or that the host
// ends because its reader was too slow, is made again and goes on after the last
// event, as far as the host remembers them: a hole in the numbers shows what is
// lost. When that cannot be, because the host was
// started anew or is gone for more than some seconds, the error says so.
func (c *Client) Events(ctx context.Context, query jobhost.EventQuery) iter.Seq2[jobhost.Event, error] {
	s := source{what: "events", path: "/v1/events", query: url.Values{}}
	setText(s.query, "job", query.Job)
	setText(s.query, "workflow", query.Workflow)
	setText(s.query, "worker", query.Worker)
	if query.After > 0 {
		s.after = strconv.FormatUint(query.After, 10)
	}
	return followed[jobhost.Event](ctx, c, s)
}
