package netproxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Stream is a response whose body is still to be read. It must be closed. It is
// not safe for concurrent use.
type Stream struct {
	Status int
	Header http.Header // without the fields that concern the connection and the encoding
	// RequestID, Method, URL and Redirects are as in [Response].
	RequestID string
	Method    string
	URL       string
	Redirects []string
	// Length is the length of the body; -1 = unknown.
	Length int64

	x       *exchange
	raw     io.ReadCloser
	decoder *decoder
	max     int64
	err     error
	waited  time.Duration // since rated
	rated   int64         // bytes received since the rate was last checked
}

// Do sends a request and returns its response as soon as it begins. The request ends
// with ctx, or when the stream is closed. Errors, including those of the stream, are of
// type [*Error].
func (c *Client) Do(ctx context.Context, r *Request) (*Stream, error) {
	return c.start(ctx, r).open(nil)
}

// Call sends a request and returns its response when it is complete. Errors are of
// type [*Error].
func (c *Client) Call(ctx context.Context, r *Request) (*Response, error) {
	return c.start(ctx, r).call(nil)
}

// callTask is Call for the request of a task, which can be aborted and has room for
// bodies.
func (c *Client) callTask(t *Task) (*Response, error) {
	x := c.start(context.Background(), t.request)
	t.bind(&x.life)
	return x.call(&t.room)
}

func (x *exchange) call(room *room) (*Response, error) {
	s, err := x.open(room)
	if err != nil {
		return nil, err
	}
	return s.buffer(room)
}

// open returns the response as soon as it begins. If it is to become an error,
// it is read completely first.
func (x *exchange) open(room *room) (*Stream, error) {
	if int64(len(x.body)) > x.client.cfg.MaxRequestBytes {
		return nil, x.fail(&fault{code: CodeInvalid, message: "the body of the request is too large", limit: LimitRequestBytes})
	}
	resp, f := x.followRedirects()
	if f != nil {
		return nil, x.fail(f)
	}
	s := x.respond(resp)
	if f := s.begin(resp); f != nil {
		_ = resp.Body.Close()
		return nil, x.fail(f)
	}
	if !x.req.raiseErrors || s.Status < http.StatusBadRequest {
		return s, nil
	}
	whole, err := s.buffer(room)
	if err != nil {
		return nil, err
	}
	return nil, x.error(statusFault(whole))
}

func statusFault(r *Response) *fault {
	f := &fault{kind: KindHTTP, code: CodeClientError, message: "the server answered " + statusText(r.Status), resp: r}
	if r.Status >= http.StatusInternalServerError {
		f.code = CodeServerError
	}
	return f
}

func (x *exchange) respond(resp *http.Response) *Stream {
	s := &x.stream
	*s = Stream{
		Status: resp.StatusCode, Header: resp.Header, RequestID: x.id(), Method: x.method, URL: x.text, Redirects: x.urls,
		Length: resp.ContentLength, x: x, raw: resp.Body, max: x.client.cfg.MaxResponseBytes,
	}
	if x.req.maxBytes > 0 {
		s.max = min(s.max, x.req.maxBytes)
	}
	x.rest()
	x.summary.Status = s.Status
	x.client.secrets.redact(s.Header)
	return s
}

// begin checks how the body is encoded, and its announced length.
func (s *Stream) begin(resp *http.Response) *fault {
	encoded, f := isEncoded(resp)
	if f != nil {
		return f
	}
	forReader(s.Header)
	switch {
	case s.Method == http.MethodHead:
		s.Length = 0
	case encoded:
		s.Length = -1
		s.decoder = &decoder{raw: countingReader{r: s.raw}, readers: &s.x.client.decoders}
		s.Header.Del("Content-Encoding")
		s.Header.Del("Content-Length")
	case s.Length > s.max:
		return errTooLarge
	}
	return nil
}

// Read reads the decoded body. Errors other than [io.EOF] are of type [*Error],
// and mean that the body is incomplete.
func (s *Stream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.read(p)
	s.x.summary.Received += int64(n)
	switch {
	case err == io.EOF:
		s.finish(io.EOF, nil)
	case err != nil:
		f := faultOf(err, s.x.life.why())
		s.finish(s.x.error(f), f)
	}
	if err != nil {
		return n, s.err
	}
	s.x.rest() // from now on the reader takes the time
	return n, nil
}

func (s *Stream) read(p []byte) (int, error) {
	if left := s.max - s.x.summary.Received; int64(len(p)) > left+1 {
		p = p[:left+1]
	}
	began := s.x.expect()
	var n int
	var err error
	if s.decoder != nil {
		n, err = s.decoder.Read(p)
	} else {
		n, err = s.raw.Read(p)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = &fault{code: CodeConnection, message: "the connection broke before the response was complete", cause: err}
	}
	if s.x.summary.Received+int64(n) > s.max {
		return n - 1, errTooLarge
	}
	slow := s.tooSlow(int64(n), time.Since(s.x.began)-began, n == len(p))
	if err == nil && slow {
		err = errSlow
	}
	return n, err
}

// tooSlow adds up how long reads have waited, and how much they returned. It does
// not judge while more may already have arrived.
func (s *Stream) tooSlow(n int64, took time.Duration, more bool) bool {
	cfg := &s.x.client.cfg
	s.waited += took
	s.rated += n
	if cfg.MinRate < 0 || more || s.waited < cfg.IdleTimeout {
		return false
	}
	slow := float64(s.rated) < float64(cfg.MinRate)*s.waited.Seconds()
	s.waited, s.rated = 0, 0
	return slow
}

// finish ends the stream; err is what further reads return.
func (s *Stream) finish(err error, f *fault) {
	s.err = err
	if s.decoder != nil {
		s.decoder.release()
	}
	_ = s.raw.Close()
	s.x.end(f)
}

// Close discards the rest of the body. If the body was read to its end, the
// connection can be reused; otherwise it is closed.
func (s *Stream) Close() error {
	if s.err == nil {
		s.x.life.end(errReleased)
		s.finish(s.x.error(errReleased), errReleased)
	}
	return nil
}

// smallest is the minimum first allocation for a body.
const smallest = 512

// mostAtFirst limits what is allocated on a server's word alone.
const mostAtFirst = 64 << 10

// buffer reads the whole body and closes the stream. A nil room means no limit
// on what all bodies take.
func (s *Stream) buffer(room *room) (*Response, error) {
	size := s.Length
	if size < 0 {
		size = smallest
	}
	size = min(size, mostAtFirst)
	if !room.take(size) {
		return nil, s.full()
	}
	body := make([]byte, 0, size)
	for {
		n, err := s.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(body) == cap(body) {
			more := max(int64(cap(body)), smallest)
			if !room.take(more) {
				return nil, s.full()
			}
			grown := make([]byte, len(body), int64(cap(body))+more)
			copy(grown, body)
			body = grown
		}
	}
	return &Response{
		Status: s.Status, Header: s.Header, Body: body, Duration: s.x.summary.Duration,
		RequestID: s.RequestID, Method: s.Method, URL: s.URL, Redirects: s.Redirects,
	}, nil
}

// full ends a stream whose body has no room.
func (s *Stream) full() error {
	s.x.life.end(errFull)
	s.finish(s.x.error(errFull), errFull)
	return s.err
}
