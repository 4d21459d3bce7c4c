package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// request is a request in the making.
type request struct {
	method, path string
	contentType  string
	body         io.Reader
	header       http.Header
	err          error // why it cannot be made
}

// send sends a request and returns an answer that is no problem. The caller
// closes its body. Errors: the context's cause, unavailable when there is no
// host, and whatever the host said.
func (c *Client) send(ctx context.Context, rq request) (*http.Response, error) {
	if err := cmp.Or(c.err, rq.err); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, rq.method, c.base+rq.path, rq.body)
	if err != nil {
		return nil, &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the request cannot be sent", Cause: err}
	}
	for name, values := range rq.header {
		r.Header[name] = values
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if rq.contentType != "" {
		r.Header.Set("Content-Type", rq.contentType)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.sendError(ctx, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.problem(resp)
}

// sendError says why there was no answer.
func (c *Client) sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return e // the body of the request said so
	}
	return &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Field:   jobhost.FieldURL,
		Message: "cannot reach jobhost at " + c.base,
		Hint:    "is jobhost running? start it with: jobhost run",
		Cause:   err,
	}
}

// problem reads the error of an answer.
func (c *Client) problem(resp *http.Response) error {
	const most = 1 << 20
	var p wire.Problem
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == wire.Trouble && json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&p) == nil && p.Code != "" {
		if p.Field == jobhost.FieldToken && resp.StatusCode == http.StatusUnauthorized && c.token != "" {
			return c.wrongToken()
		}
		return p.Err()
	}
	e := &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: fmt.Sprintf("%s answered %q, which is not from jobhost", c.base, resp.Status),
		Hint:    "check the address, and what stands between",
	}
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// wrongToken is the error of a token that was sent and refused. The host's answer is the same
// as to a request without one.
func (c *Client) wrongToken() error {
	return &jobhost.Error{
		Code: jobhost.CodeDenied, Field: jobhost.FieldToken, Message: "the token is not that of the host at " + c.base,
		Hint: "the token is in the file that the host prints when it starts",
	}
}

// bounded gives a call its time.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.timeout, &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("jobhost at %s did not answer within %v", c.base, c.timeout),
	})
}

// fetch sends a request and returns the status and all of the body.
func (c *Client) fetch(ctx context.Context, rq request) (int, []byte, error) {
	resp, err := c.send(ctx, rq)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := c.readBody(ctx, resp.Body)
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, body, nil
}

// readBody reads all of a body, up to the client's bound.
func (c *Client) readBody(ctx context.Context, r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, c.maxResponse+1))
	if err != nil {
		return nil, c.readError(ctx, err)
	}
	if int64(len(body)) > c.maxResponse {
		return nil, errTooLarge(c.maxResponse)
	}
	return body, nil
}

func errTooLarge(most int64) error {
	return &jobhost.Error{
		Code:    jobhost.CodeTooLarge,
		Message: fmt.Sprintf("the answer is larger than %d bytes", most),
	}
}

// readError says why an answer broke off.
func (c *Client) readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the answer of jobhost at " + c.base + " broke off", Cause: err}
}

// ask sends a request within the client's time, and decodes the answer into v, if there is one.
func (c *Client) ask(ctx context.Context, rq request, v any) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, body, err := c.fetch(ctx, rq)
	if err != nil || v == nil {
		return err
	}
	return c.decode(body, v)
}

func (c *Client) decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return &jobhost.Error{
			Code: jobhost.CodeInternal, Message: "the answer of " + c.base + " cannot be read", Cause: err,
			Hint: "are client and host of the same version?",
		}
	}
	return nil
}

// jsonBody returns a body that the transport can send again on another
// connection, when the first one turns out to be closed.
func jsonBody(body []byte) io.Reader { return bytes.NewReader(body) }
