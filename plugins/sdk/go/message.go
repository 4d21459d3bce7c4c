package jobhost

import (
	"slices"
	"strconv"
	"strings"
)

// Header has the fields of a request or a response, like that of net/http:
//
//	jobhost.Header{"content-type": {"application/json"}}
//
// Names may be written in any case; those of responses are in lower case.
type Header map[string][]string

// Get returns the first value of a field, or "".
func (h Header) Get(name string) string {
	if values := h.Values(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Values returns all values of a field.
func (h Header) Values(name string) []string {
	if values, ok := h[strings.ToLower(name)]; ok {
		return values
	}
	for key, values := range h {
		if strings.EqualFold(key, name) {
			return values
		}
	}
	return nil
}

// Request is an HTTP request. Only URL is required.
type Request struct {
	Method string // empty = GET
	// URL is absolute; the manifest must allow it, and any redirects.
	URL string
	// Header is sent besides what the host sets: Host, Accept-Encoding, the
	// framing of the body, and an Idempotency-Key unless there is one here.
	Header Header
	Body   []byte
}

// text formats the request as the host reads it; ok is false if that is
// impossible, because one of its lines contains a line break.
func (r *Request) text() (text []byte, ok bool) {
	method := r.Method
	if method == "" {
		method = "GET"
	}
	ok = !strings.ContainsAny(method, " \n\r") && !strings.ContainsAny(r.URL, "\n\r")
	size := len(method) + len(r.URL) + 3 + len(r.Body)
	names := make([]string, 0, len(r.Header))
	for name, values := range r.Header {
		ok = ok && name != "" && !strings.ContainsAny(name, ":\n\r")
		for _, value := range values {
			ok = ok && !strings.ContainsAny(value, "\n\r")
			size += len(name) + len(value) + 3
		}
		names = append(names, name)
	}
	slices.Sort(names) // so that the same request gives the same text
	text = append(append(append(make([]byte, 0, size), method...), ' '), r.URL...)
	text = append(text, '\n')
	for _, name := range names {
		for _, value := range r.Header[name] {
			text = append(append(append(append(text, name...), ": "...), value...), '\n')
		}
	}
	return append(append(text, '\n'), r.Body...), ok
}

// what names the request in errors, without the query, which may contain secrets.
func (r *Request) what() string {
	url, _, _ := strings.Cut(r.URL, "?")
	if r.Method == "" {
		return "GET " + url
	}
	return r.Method + " " + url
}

// Response is an HTTP response, with any status.
type Response struct {
	Status int // such as 200
	Header Header
	Body   []byte // complete and decoded
}

// OK reports whether the status is 200 to 299.
func (r *Response) OK() bool { return r.Status >= 200 && r.Status <= 299 }

// Err returns a [*StatusError] for a status of 400 or more, nil for others. A
// handler may return it unchanged.
func (r *Response) Err() error {
	if r.Status < 400 {
		return nil
	}
	return &StatusError{Status: r.Status}
}

// readResponse parses a response as the host formats it; its body is a slice of
// text. There is either a response or an error: of type [*ResponseError] if the
// host says that there was no response, [ErrInvalid] if the text is invalid.
func readResponse(what string, text []byte) (*Response, error) {
	head, body, ok := cutHead(text)
	status, fields, _ := strings.Cut(head, "\n")
	code, err := strconv.Atoi(status)
	if !ok || err != nil || code < 0 {
		return nil, failed("read response", ErrInvalid)
	}
	r := &Response{Status: code, Header: Header{}, Body: body}
	for line := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		r.Header[name] = append(r.Header[name], value)
	}
	if code == 0 {
		return r, &ResponseError{Request: what, Reason: Reason(r.Header.Get("error")), Message: string(body)}
	}
	return r, nil
}

// cutHead splits a message after its head, which it copies.
func cutHead(text []byte) (head string, body []byte, ok bool) {
	for i := range len(text) - 1 {
		if text[i] == '\n' && text[i+1] == '\n' {
			return string(text[:i]), text[i+2:], true
		}
	}
	return "", nil, false
}
