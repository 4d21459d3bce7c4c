package jobhost

// Call is a request in flight, for [Job.Wait], and then its response.
type Call struct {
	op
	what   string // method and URL
	answer Answer // once it was read
}

// Send begins a request and returns at once. It counts as in flight until its
// response is read, or it is dropped. A job may have 64 requests in flight, send
// 1,000, and move 64 MiB of bodies, unless the manifest says otherwise. Its n-th
// request has the same Idempotency-Key in each attempt, so that servers that honor it
// do nothing twice.
//
// Errors: [ErrDenied] for a worker without network access, [ErrInvalid] for an
// invalid request, [ErrLimit]. The job's log says more. Whether the worker may
// reach the destination shows in the response.
func (j *Job) Send(request Request) (*Call, error) {
	what := request.what()
	text, ok := request.text()
	if !ok {
		return nil, failed(what, ErrInvalid)
	}
	n := j.host.HTTP(text)
	if n < 0 {
		return nil, failed(what, Errno(n))
	}
	return &Call{op: j.op("", n), what: what}, nil
}

// Response waits for the response and returns it, the same one every time. A
// response with any status is not an error: see [Response.Err]. The error is of
// type [*ResponseError] if there was none, and otherwise one of [Job.Wait].
func (c *Call) Response() (*Response, error) {
	if !c.taken {
		text, err := c.take(c.what)
		if err != nil {
			return nil, err
		}
		if c.answer.Response, c.answer.Err = readResponse(c.what, text); c.answer.Err != nil {
			c.answer.Response = nil
		}
	}
	return c.answer.Response, c.answer.Err
}

// Drop gives up the request: if it is in flight, its connection is closed. After
// Response it does nothing.
func (c *Call) Drop() { c.drop() }

// Fetch sends a request and waits for its response. Errors are those of
// [Job.Send] and [Call.Response].
func (j *Job) Fetch(request Request) (*Response, error) {
	call, err := j.Send(request)
	if err != nil {
		return nil, err
	}
	defer call.Drop()
	return call.Response()
}

// Get is [Job.Fetch] for a URL.
func (j *Job) Get(url string) (*Response, error) { return j.Fetch(Request{URL: url}) }
