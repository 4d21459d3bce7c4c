package netproxy

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// RequestSpec is what a [Request] is made from. Only the URL is required.
type RequestSpec struct {
	// ID names the request in logs and results; "" = a new one.
	ID     string
	Method string // "" = GET
	// URL is absolute: see package internal/httpurl for what is rejected.
	URL string
	// Header is what the author of the request wants to send. Fields that
	// concern the connection, a proxy or the framing are dropped, as are Host
	// and Accept-Encoding, which follow from the URL and from the supported
	// encodings.
	Header http.Header
	// HostHeader is what the host adds, replacing fields of the same name. It is
	// not sent to another origin after a redirect.
	HostHeader http.Header
	Body       []byte
	// Timeout bounds the time from the first attempt to the last byte of the
	// body; 0, or more than the client's = the client's.
	Timeout time.Duration
	// MaxResponseBytes bounds the decoded body; 0, or more than the client's =
	// the client's.
	MaxResponseBytes int64
	// MaxRedirects is how many are followed; 0 = they are returned as responses;
	// nil, or more than the client's = as many as the client's.
	MaxRedirects *int
	// RaiseErrors turns statuses of 400 and more into errors of kind http.
	RaiseErrors bool
}

// Request is an immutable HTTP request that can be sent any number of times. It
// is safe for concurrent use.
type Request struct {
	id          string
	method      string
	url         httpurl.URL
	text        string   // url's
	target      *url.URL // url, in the form that net/http needs; read-only
	header      http.Header
	hostHeader  http.Header
	body        []byte
	timeout     time.Duration
	maxBytes    int64
	redirects   *int
	raiseErrors bool
}

// NewRequest checks and copies a spec. The errors are of type [*jobhost.Error]
// with code invalid, too_large or denied (a method that is never sent).
func NewRequest(spec RequestSpec) (*Request, error) {
	r := &Request{
		id: spec.ID, method: spec.Method, body: bytes.Clone(spec.Body),
		timeout: spec.Timeout, maxBytes: spec.MaxResponseBytes, raiseErrors: spec.RaiseErrors,
	}
	if r.id == "" {
		r.id = jobhost.NewID()
	}
	if r.method == "" {
		r.method = http.MethodGet
	}
	if spec.MaxRedirects != nil {
		r.redirects = new(*spec.MaxRedirects)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	var err error
	if err = r.setURL(spec.URL); err != nil {
		return nil, err
	}
	if r.header, err = cleanHeader(spec.Header); err != nil {
		return nil, err
	}
	if r.hostHeader, err = cleanHeader(spec.HostHeader); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Request) check() error {
	switch {
	case len(r.id) > MaxIDBytes || strings.ContainsFunc(r.id, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return jobhost.Invalid("id", "", "the id of a request is up to %d visible characters", MaxIDBytes)
	case !slices.Contains(policy.Methods(), r.method):
		return &jobhost.Error{
			Code: jobhost.CodeDenied, Field: "method", Message: fmt.Sprintf("the method %.20q is never sent", r.method),
			Hint: "the methods are " + strings.Join(policy.Methods(), ", "),
		}
	case r.timeout < 0:
		return jobhost.Invalid("timeout", "", "the timeout is negative")
	case r.maxBytes < 0:
		return jobhost.Invalid("max_response_bytes", "", "the bound on the response is negative")
	case r.redirects != nil && *r.redirects < 0:
		return jobhost.Invalid("max_redirects", "0 returns redirects as they are", "the number of redirects is negative")
	}
	return nil
}

// setURL parses a URL.
func (r *Request) setURL(raw string) (err error) {
	if r.url, r.text, r.target, err = httpurl.ParseTarget(raw); err != nil {
		message, hint := urlFault(err)
		return jobhost.Invalid("url", hint, "%s", message)
	}
	return nil
}

// ID returns the request's id.
func (r *Request) ID() string { return r.id }

// Method returns the method.
func (r *Request) Method() string { return r.method }

// URL returns the URL in its canonical form.
func (r *Request) URL() string { return r.text }

// Origin returns scheme, host and port, which are not secret.
func (r *Request) Origin() string { return r.url.Origin() }

// Header returns a copy of the header, without what the host adds.
func (r *Request) Header() http.Header { return r.header.Clone() }

// HostHeader returns a copy of what the host adds to the header.
func (r *Request) HostHeader() http.Header { return r.hostHeader.Clone() }

// Body returns a copy of the body.
func (r *Request) Body() []byte { return bytes.Clone(r.body) }

// Size returns roughly how much memory the request takes, in bytes.
func (r *Request) Size() int64 { return int64(len(r.body)) }

// Timeout returns the bound on its time; 0 = the client's.
func (r *Request) Timeout() time.Duration { return r.timeout }

// Spec returns a spec from which the request could be made again.
func (r *Request) Spec() RequestSpec {
	spec := RequestSpec{
		ID: r.id, Method: r.method, URL: r.URL(), Header: r.Header(), HostHeader: r.HostHeader(), Body: r.Body(),
		Timeout: r.timeout, MaxResponseBytes: r.maxBytes, RaiseErrors: r.raiseErrors,
	}
	if r.redirects != nil {
		spec.MaxRedirects = new(*r.redirects)
	}
	return spec
}

// isIdempotent reports whether a method may be sent twice.
func isIdempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions:
		return true
	}
	return false
}
