package client

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// repeatable tells the transport, and only it, that a request may be sent
// again: the id makes a submit that arrives twice one job.
var repeatable = http.Header{"Idempotency-Key": {}}

// Submit implements [jobhost.Submitter]. A spec without ID gets one here, so
// that a submit whose answer was lost can be repeated.
func (c *Client) Submit(ctx context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	fresh := nameJob(&spec)
	var receipt jobhost.Receipt
	err := c.ask(ctx, submitRequest(&spec, ""), &receipt)
	if fresh && receipt.ID == spec.ID {
		receipt.Deduplicated = false // it was this very call
	}
	return receipt, err
}

// nameJob gives a spec an id if it has none, and reports whether it did.
func nameJob(spec *jobhost.Spec) bool {
	if spec.ID != "" {
		return false
	}
	spec.ID = jobhost.NewID()
	return true
}

func submitRequest(spec *jobhost.Spec, query string) request {
	return request{
		method: "POST", path: "/v1/jobs" + query, contentType: wire.JSON,
		body: jsonBody(wire.AppendSubmit(nil, spec)), header: repeatable,
	}
}

// SubmitWait submits a job and waits for it to end, in one call for as long as
// the host lets calls wait. The error is the context's cause when that ends
// first; the job is then as far as is known.
func (c *Client) SubmitWait(ctx context.Context, spec jobhost.Spec) (jobhost.Job, error) {
	nameJob(&spec)
	var answer wire.Submitted
	status, body, err := c.fetch(ctx, submitRequest(&spec, "?wait="+waitFor(ctx)))
	if err == nil {
		err = c.decode(body, &answer)
	}
	if err != nil {
		return c.asItIs(ctx, jobhost.Job{ID: spec.ID}, err)
	}
	if status != http.StatusAccepted {
		return answer.Job, nil
	}
	return c.waitOn(ctx, answer.Job)
}

// SubmitBatch implements [jobhost.Submitter]. Specs without ID get one, as with Submit.
func (c *Client) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	if len(specs) == 0 {
		return nil, c.err
	}
	answers := make([]jobhost.Submitted, 0, len(specs))
	for answer, err := range c.SubmitSeq(ctx, slices.Values(specs), 0) {
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer.Submitted)
	}
	return answers, nil
}

// Answer is the answer to one job of [Client.SubmitSeq].
type Answer struct {
	jobhost.Submitted
	// Job is the job as it was when the time to wait was over; nil = it was not waited for.
	Job *jobhost.Job
	// Results are what the tasks of a job returned that has succeeded, without
	// Data for those beyond 4 MiB of a job, which Result fetches.
	Results []jobhost.Result
}

// waitStep is how long one call waits at most. Hosts refuse more than 5 minutes.
const waitStep = time.Minute

// waitFor returns how long to ask the host to wait, so that the answer comes
// before the context's deadline.
func waitFor(ctx context.Context) string {
	wait := waitStep
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = max(time.Millisecond, min(wait, left-min(left/10, 100*time.Millisecond)))
	}
	return fmt.Sprintf("%dms", wait.Milliseconds())
}
