package extismabi

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// httpCalls reach the outside world, through [hostcall.HTTP].
func httpCalls() []hostCall {
	return []hostCall{
		{name: "http_request", params: []api.ValueType{i32, i32, i32, i32}, results: []api.ValueType{i32}, call: httpRequest},
		{name: "http_status_code", results: []api.ValueType{i32}, call: httpStatus},
		{name: "http_headers", results: []api.ValueType{i32}, call: httpHeaders},
	}
}

// request is the JSON text of a request. Plugin kits write these members, and
// sometimes more.
type request struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
}

// maxRequest bounds the JSON text of a request, which takes more memory once parsed.
const maxRequest = 256 << 10

// http_request(request, body) → the body of the response, or 0 if it is empty.
func httpRequest(ctx context.Context, m api.Module, stack []uint64) {
	const call = "http_request"
	p, at := callOf(ctx)
	p.last = nil
	asked := guestText(m, call, stack[0], stack[1])
	if len(asked) > maxRequest {
		trap(call, jobhost.CategoryResource, "the request without its body is %d bytes long, more than %d", len(asked), maxRequest)
	}
	var r request
	if err := json.Unmarshal(asked, &r); err != nil {
		trap(call, jobhost.CategoryValidation, "the request is not JSON with url, method and headers: %s", escaped(err.Error()))
	}
	target, err := url.Parse(r.URL)
	if err != nil || target.Hostname() == "" {
		trap(call, jobhost.CategoryValidation, "%q is not a URL with a host", escaped(r.URL))
	}
	shown := escaped(target.Scheme + "://" + target.Host)
	if !p.options.Hosts.Allow(target.Hostname()) {
		trap(call, jobhost.CategoryValidation, "HTTP request to %s is not allowed: the host is not in allowed_hosts", shown)
	}
	header := make(map[string][]string, len(r.Headers))
	for name, value := range r.Headers {
		header[name] = []string{value}
	}
	if r.Method == "" {
		r.Method = "GET"
	}
	// At least 1, since 0 would mean no bound.
	response, err := at.Fetch(ctx.(Caller).Life(), &hostcall.HTTPRequest{
		Method: strings.ToUpper(r.Method), URL: r.URL, Header: header,
		Body: guestText(m, call, stack[2], stack[3]), MaxBytes: max(p.options.ResponseBytes, 1),
	})
	if err != nil {
		trapFetch(call, shown, err)
	}
	if int64(len(response.Body)) > p.options.ResponseBytes {
		trap(call, jobhost.CategoryResource, "the response from %s is over the limit of %d bytes", shown, p.options.ResponseBytes)
	}
	p.last = response
	p.hold(stack, response.Body)
	response.Body = nil // so that the status and headers don't keep a large body alive
}

// trapFetch ends an attempt whose request got no response.
func trapFetch(call, shown string, err error) {
	switch jobhost.CodeOf(err) {
	case jobhost.CodeDenied:
		trap(call, jobhost.CategoryValidation, "HTTP request to %s is not allowed: %s", shown, escaped(err.Error()))
	case jobhost.CodeInvalid:
		trap(call, jobhost.CategoryValidation, "HTTP request to %s: %s", shown, escaped(err.Error()))
	case jobhost.CodeTooLarge:
		trap(call, jobhost.CategoryResource, "HTTP request to %s: %s", shown, escaped(err.Error()))
	default:
		trap(call, jobhost.CategoryNetwork, "HTTP request to %s: %s", shown, escaped(err.Error()))
	}
}

// http_status_code() → that of the last response, or 0 if there is none.
func httpStatus(ctx context.Context, _ api.Module, stack []uint64) {
	p, _ := callOf(ctx)
	stack[0] = 0
	if p.last != nil {
		stack[0] = api.EncodeI32(int32(p.last.Status))
	}
}

// http_headers() → those of the last response as a JSON object, or 0 if there
// is none. Names are in lower case, values of the same name joined with commas.
func httpHeaders(ctx context.Context, _ api.Module, stack []uint64) {
	p, _ := callOf(ctx)
	if p.last == nil {
		p.hold(stack, nil)
		return
	}
	headers := make(map[string]string, len(p.last.Header))
	for name, values := range p.last.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	text, err := json.Marshal(headers)
	if err != nil { // marshalling strings can't fail
		trap("http_headers", jobhost.CategorySystem, "the headers can't be written as JSON")
	}
	p.hold(stack, text)
}

// escaped makes text from a guest or a server safe to show.
func escaped(s string) string { return text.Line(s, 300) }
