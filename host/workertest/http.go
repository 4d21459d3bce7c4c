package workertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/pending"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Mock is a request expected by a case, and the response to it.
type Mock struct {
	// Method and URL must match those of the request; * in the URL matches anything.
	Method, URL string
	// Header lists fields that the request must have; it may have others.
	Header   map[string]string
	Body     *value // nil = any
	Response Response

	pattern *regexp.Regexp
	times   int // -1 = any number
	used    int
}

// Response is the outcome of a request.
type Response struct {
	Status   int
	Header   map[string]string
	Body     []byte
	Delay    time.Duration // which takes no real time
	Error    string        // why there is no response
	Message  string
	jsonBody bool // the content type is implied
}

// compile compiles the URL pattern.
func (m *Mock) compile() error {
	if !strings.Contains(m.URL, "*") {
		_, text, _, err := httpurl.ParseTarget(m.URL)
		if err != nil {
			return fmt.Errorf("%w", err)
		}
		m.URL = text
	}
	var err error
	m.pattern, err = regexp.Compile(anything(m.URL))
	return err
}

// differs says why a request doesn't match the mock; empty = it does.
func (m *Mock) differs(r *request) string {
	switch {
	case m.Method != r.method:
		return "its method is " + r.method
	case !m.pattern.MatchString(r.url):
		return "its URL is " + r.url
	}
	for name, want := range m.Header {
		if got := http.Header(r.header).Values(name); !slices.Contains(got, want) {
			return fmt.Sprintf("its header %s is %q, not %q", strings.ToLower(name), strings.Join(got, ", "), want)
		}
	}
	if m.Body != nil {
		if d := m.Body.compare("body", r.body); len(d) > 0 {
			return "its body is another one:\n" + d[0].text()
		}
	}
	if m.times >= 0 && m.used >= m.times {
		return fmt.Sprintf("it was sent %d times already", m.used)
	}
	return ""
}

// String names the mock.
func (m *Mock) String() string { return m.Method + " " + m.URL }

// request is a request as it would be sent.
type request struct {
	method, url string
	header      map[string][]string
	body        []byte
	canonical   httpurl.URL
}

// exchange is a request answered by a mock, with the response or the reason why there
// is none.
type exchange struct {
	box      *box
	at       time.Time
	response *hostcall.HTTPResponse
	err      error
}

func (x *exchange) ready() (time.Time, bool) { return x.at, true }

// Drop implements [hostcall.Pending].
func (*exchange) Drop() {}

// Response implements [hostcall.Exchange].
func (x *exchange) Response(ctx context.Context) (*hostcall.HTTPResponse, error) {
	if x.box.Wait(ctx, []hostcall.Pending{x}) < 0 {
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Field: string(netproxy.CodeCancelled), Message: "there was no time left for the response"}
	}
	return x.response, x.err
}

// Send implements [hostcall.HTTP].
func (b *box) Send(_ *hostcall.Attempt, r *hostcall.HTTPRequest) (hostcall.Exchange, error) {
	asked, err := b.check(r)
	if err != nil {
		return nil, err
	}
	x := &exchange{box: b}
	delay := time.Duration(0)
	x.response, delay, x.err = b.answer(asked)
	x.at = b.now().Add(delay)
	if most := cmp.Or(min(r.MaxBytes, b.maxResponse), b.maxResponse); x.err == nil && int64(len(x.response.Body)) > most {
		x.response, x.err = nil, failed(netproxy.CodeTooLarge, fmt.Sprintf("the response is larger than %d bytes", most))
	}
	return x, nil
}

// check validates a request as the sending proxy does.
func (b *box) check(r *hostcall.HTTPRequest) (*request, error) {
	if b.noHTTP {
		b.notef("%s %s was denied: the manifest lets this worker go nowhere; http.allow says where it may", r.Method, r.URL)
		return nil, pending.ErrNoHTTP
	}
	spec := netproxy.RequestSpec{ID: r.Key, Method: r.Method, URL: r.URL, Header: r.Header, Body: r.Body}
	if http.Header(r.Header).Get("Idempotency-Key") == "" {
		spec.HostHeader = http.Header{"Idempotency-Key": {r.Key}}
	}
	checked, err := netproxy.NewRequest(spec)
	if err != nil {
		return nil, err
	}
	asked := &request{method: checked.Method(), url: checked.URL(), header: checked.Header(), body: checked.Body()}
	if asked.canonical, err = httpurl.Parse(asked.url); err != nil {
		return nil, &jobhost.Error{Code: jobhost.CodeInvalid, Message: err.Error()}
	}
	if asked.header == nil {
		asked.header = map[string][]string{}
	}
	maps.Copy(asked.header, checked.HostHeader())
	return asked, nil
}

// judge asks the policy whether a request may be sent; its cause is not shown to the
// guest.
func (b *box) judge(r *request) error {
	err := b.policy.Judge(r.method, r.canonical)
	if err == nil {
		return nil
	}
	b.notef("%s %s was denied: no rule of http.allow in the manifest allows it", r.method, r.url)
	e, _ := errors.AsType[*jobhost.Error](err)
	return failed(netproxy.CodeDenied, e.Message)
}

// maxHops is how many redirects are followed.
const maxHops = netproxy.DefaultMaxRedirects

// answer looks up a request and follows redirects.
func (b *box) answer(r *request) (*hostcall.HTTPResponse, time.Duration, error) {
	var delay time.Duration
	for hop := 0; ; hop++ {
		if b.policy != nil {
			if err := b.judge(r); err != nil {
				return nil, delay, err
			}
		}
		m := b.find(r)
		if m == nil {
			return nil, delay, failed(netproxy.CodeConnection, "the test has no response for "+r.method+" "+r.url)
		}
		m.used++
		delay += m.Response.Delay
		if m.Response.Error != "" {
			return nil, delay, failed(netproxy.Code(m.Response.Error), cmp.Or(m.Response.Message, "the test says "+m.Response.Error))
		}
		response := m.Response.http()
		location := http.Header(response.Header).Get("Location")
		if location == "" || !slices.Contains(redirects, response.Status) {
			return response, delay, nil
		}
		if hop == maxHops {
			return nil, delay, failed("too_many", "the server redirects too often")
		}
		if err := r.follow(response.Status, location); err != nil {
			return nil, delay, failed(netproxy.CodeProtocol, "the server redirects to what is not a URL")
		}
	}
}

var redirects = []int{
	http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
}

// follow changes the request to the one that a redirect asks for.
func (r *request) follow(status int, location string) error {
	base, err := url.Parse(r.url)
	if err != nil {
		return err
	}
	to, err := base.Parse(location)
	if err != nil {
		return err
	}
	to.Fragment = ""
	if r.canonical, r.url, _, err = httpurl.ParseTarget(to.String()); err != nil {
		return err
	}
	if status == http.StatusSeeOther && r.method != http.MethodHead || status < http.StatusSeeOther && r.method == http.MethodPost {
		r.method, r.body = http.MethodGet, nil
	}
	return nil
}

// find returns the first matching mock that is not used up; nil = none.
func (b *box) find(r *request) *Mock {
	for _, m := range b.test.Requests {
		if m.differs(r) == "" {
			return m
		}
	}
	text := r.method + " " + r.url
	for _, m := range b.test.Requests {
		if m.Method == r.method && m.pattern.MatchString(r.url) { // close enough to say why it doesn't match
			text += "\nit is not " + m.String() + " of the case: " + m.differs(r)
		}
	}
	if len(r.body) > 0 {
		text += "\nits body: " + shown(r.body)
	}
	if len(b.unanswered) < maxKept {
		b.unanswered = append(b.unanswered, text)
	}
	return nil
}

// http returns the response for a guest, as a copy that may be changed.
func (r *Response) http() *hostcall.HTTPResponse {
	header := http.Header{}
	if r.jsonBody {
		header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		header.Set(name, value)
	}
	return &hostcall.HTTPResponse{Status: r.Status, Header: header, Body: slices.Clone(r.Body)}
}

// noResponses are the reasons for a missing response.
func noResponses() []string {
	return []string{
		"denied", "timeout", "dns", "connection", "tls", "protocol", "response_too_large", "too_many", "recursive",
		"breaker_open", "rate_limited", "exhausted", "invalid", "cancelled", "unknown",
	}
}

// failed is the error of a request without a response.
func failed(word netproxy.Code, message string) error {
	code := jobhost.CodeUnavailable
	switch word {
	case netproxy.CodeDenied:
		code = jobhost.CodeDenied
	case netproxy.CodeInvalid:
		code = jobhost.CodeInvalid
	case netproxy.CodeTooLarge:
		code = jobhost.CodeTooLarge
	case netproxy.CodeExhausted, netproxy.CodeRateLimited:
		code = jobhost.CodeExhausted
	}
	return &jobhost.Error{Code: code, Field: string(word), Message: message}
}

// deferredRequest is a request that was left to the host.
type deferredRequest struct {
	*request
	entry string
	args  []byte
}

// Defer implements [hostcall.HTTP].
func (b *box) Defer(at *hostcall.Attempt, r *hostcall.HTTPRequest, entry string, args []byte) (string, error) {
	asked, err := b.check(r)
	if err != nil {
		return "", err
	}
	if b.policy != nil {
		if err := b.judge(asked); err != nil {
			return "", err
		}
	}
	if len(b.deferred) == maxKept {
		return "", errTooMuch
	}
	b.deferred = append(b.deferred, deferredRequest{asked, entry, slices.Clone(args)})
	return fmt.Sprintf("%s-request-%d", at.Job, len(b.deferred)), nil
}

var errTooMuch error = &jobhost.Error{Code: jobhost.CodeExhausted, Message: "the attempt asks for too much"}
