package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// Upload implements [jobhost.PayloadStorer]. It takes as long as it takes; ctx
// bounds it.
func (c *Client) Upload(ctx context.Context, r io.Reader) (jobhost.Upload, error) {
	source := &uploading{r: r}
	var upload jobhost.Upload
	resp, err := c.send(ctx, request{method: "POST", path: "/v1/payloads", contentType: wire.Bytes, body: io.NopCloser(source)})
	if source.err != nil && (err == nil || ctx.Err() == nil) {
		return upload, source.err
	}
	if err != nil {
		return upload, err
	}
	defer resp.Body.Close()
	body, err := c.readBody(ctx, resp.Body)
	if err != nil {
		return upload, err
	}
	return upload, c.decode(body, &upload)
}

// uploading remembers the error of what is uploaded, which is the caller's own.
type uploading struct {
	r   io.Reader
	err error
}

func (u *uploading) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = err
	}
	return n, err
}

// smallPayload is the largest payload that travels within a submit when it comes
// as a stream. Any host takes it there.
const smallPayload = 64 << 10

// SubmitFrom submits a job to a server, of which the payload is all that r has:
// with the submit if that is little, and uploaded before otherwise, so that
// neither side ever has it in memory. Errors are those of Upload and Submit.
func SubmitFrom(ctx context.Context, server interface {
	jobhost.Submitter
	jobhost.PayloadStorer
}, spec jobhost.Spec, r io.Reader,
) (jobhost.Receipt, error) {
	buffered := bufio.NewReaderSize(r, smallPayload+1)
	head, err := buffered.Peek(smallPayload + 1)
	switch {
	case errors.Is(err, io.EOF):
		spec.Payload = bytes.Clone(head)
		return server.Submit(ctx, spec)
	case err != nil:
		return jobhost.Receipt{}, err
	}
	upload, err := server.Upload(ctx, buffered)
	if err != nil {
		return jobhost.Receipt{}, err
	}
	spec.PayloadRef = upload.Ref
	return server.Submit(ctx, spec)
}

// OpenPayload implements [jobhost.PayloadStorer].
func (c *Client) OpenPayload(ctx context.Context, id string) (jobhost.Content, error) {
	return c.open(ctx, about("GET", id, "/payload"))
}

// OpenResult implements [jobhost.PayloadStorer].
func (c *Client) OpenResult(ctx context.Context, id string, task int) (jobhost.Content, error) {
	return c.open(ctx, about("GET", id, "/result?task="+strconv.Itoa(task)))
}

// open returns the body of an answer.
func (c *Client) open(ctx context.Context, rq request) (jobhost.Content, error) {
	resp, err := c.send(ctx, rq)
	if err != nil {
		return jobhost.Content{}, err
	}
	if resp.ContentLength < 0 {
		_ = resp.Body.Close() // nothing was read of it
		return jobhost.Content{}, &jobhost.Error{Code: jobhost.CodeInternal, Message: "the answer of " + c.base + " doesn't say how large it is"}
	}
	return jobhost.Content{ReadCloser: &answering{resp.Body, c, ctx}, Size: resp.ContentLength}, nil
}

// answering is the body of an answer, with errors that say what happened.
type answering struct {
	io.ReadCloser
	c   *Client
	ctx context.Context // of the answer
}

// Read implements [io.Reader].
func (a *answering) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.c.readError(a.ctx, err)
	}
	return n, err
}
