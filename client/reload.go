package client

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
)

// reloadTime is how long a reload may take besides its context: as long as
// hosts let it, since large plugins are compiled first.
const reloadTime = 6 * time.Minute

// Reload implements [jobhost.Reloader].
func (c *Client) Reload(ctx context.Context, worker string) (report jobhost.Reload, err error) {
	rq := request{method: "POST", path: "/v1/reload"}
	if worker != "" {
		rq.path, rq.err = "/v1/workers/"+worker+"/reload", jobhost.CheckWorker(worker)
	}
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	_, body, err := c.fetch(ctx, rq)
	if err == nil {
		err = c.decode(body, &report)
	}
	return report, err
}
