package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// SubmitSeq submits jobs while specs yields them, and yields an answer to
// each in the same order, while it goes: neither all jobs nor all answers are
// ever in memory. specs runs in a goroutine of its own, which ends with it, or
// with the first spec after this sequence has ended. With
// wait > 0 each answer comes when its job has ended, or wait after its submit.
// An error ends it; jobs without an answer may then have been taken or not,
// and may be submitted again if they have ids.
func (c *Client) SubmitSeq(ctx context.Context, specs iter.Seq[jobhost.Spec], wait time.Duration) iter.Seq2[Answer, error] {
	return func(yield func(Answer, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		body := newSpecReader(specs)
		defer body.Close()
		path := "/v1/jobs:batch"
		if wait > 0 {
			path += "?" + url.Values{"wait": {jobhost.Duration(wait).String()}}.Encode()
		}
		resp, err := c.send(ctx, request{method: "POST", path: path, contentType: wire.NDJSON, body: body})
		if err != nil {
			yield(Answer{}, err)
			return
		}
		defer resp.Body.Close()
		answered, err := c.readAnswers(resp.Body, yield)
		sent := int(body.sent.Load())
		switch {
		case errors.Is(err, errDone): // and more may have been sent meanwhile
		case err != nil && ctx.Err() != nil:
			yield(Answer{}, context.Cause(ctx))
		case err != nil:
			yield(Answer{}, err)
		case answered < sent:
			yield(Answer{}, &jobhost.Error{
				Code:    jobhost.CodeUnavailable,
				Message: fmt.Sprintf("the answer ended after %d of %d jobs", answered, sent),
				Hint:    "submit the others again: those with an id are not doubled",
			})
		}
	}
}

// readAnswers yields the answers in r and returns how many there were, or errDone
// when no more are wanted.
func (c *Client) readAnswers(r io.Reader, yield func(Answer, error) bool) (int, error) {
	lines, n := bufio.NewScanner(r), 0
	lines.Buffer(nil, int(min(c.maxResponse, 1<<30)))
	for lines.Scan() {
		var line wire.Answer
		if err := c.decode(lines.Bytes(), &line); err != nil {
			return n, err
		}
		if line.Index != n {
			return n, &jobhost.Error{Code: jobhost.CodeInternal, Message: fmt.Sprintf("the answer to job %d came in the place of %d", line.Index, n)}
		}
		n++
		if !yield(answerOf(&line), nil) {
			return n, errDone
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return n, errTooLarge(c.maxResponse)
	}
	if err := lines.Err(); err != nil {
		return n, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the answer of jobhost at " + c.base + " broke off", Cause: err}
	}
	return n, nil
}

func answerOf(line *wire.Answer) Answer {
	if line.Error != nil {
		return Answer{Submitted: jobhost.Submitted{Err: line.Error.Err()}}
	}
	a := Answer{
		Submitted: jobhost.Submitted{Receipt: jobhost.Receipt{
			ID: line.ID, State: line.State, Deduplicated: line.Deduplicated,
		}},
		Job: line.Job,
	}
	for i := range line.Results {
		if t := &line.Results[i]; t.State == jobhost.Succeeded {
			a.Results = append(a.Results, jobhost.Result{Task: t.Task, Data: t.Data()})
		}
	}
	return a
}
