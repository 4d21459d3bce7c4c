package site

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// Answer serves a request of a handler that is tested in memory: it is for the
// field HTTP of [jobhost.Attempt]. The host's name doesn't matter, except that
// there is none called "nowhere".
func (s *Site) Answer(r jobhost.Request) (*jobhost.Response, error) {
	request, err := http.NewRequest(r.Method, r.URL, bytes.NewReader(r.Body)) //nolint:noctx // served at once, in memory
	if err != nil {
		return nil, &jobhost.ResponseError{Reason: jobhost.ReasonInvalid, Message: "this is not a URL"}
	}
	if request.URL.Hostname() == "nowhere" {
		return nil, &jobhost.ResponseError{Reason: jobhost.ReasonDNS, Message: "the name is unknown"}
	}
	for name, values := range r.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, request)
	return &jobhost.Response{Status: w.Code, Header: jobhost.Header(w.Result().Header), Body: w.Body.Bytes()}, nil //nolint:bodyclose // it is a buffer
}

// AnswerText is Answer for guests, in the text form of the ABI.
func (s *Site) AnswerText(request string) string {
	head, body, _ := strings.Cut(request, "\n\n")
	line, fields, _ := strings.Cut(head, "\n")
	method, url, _ := strings.Cut(line, " ")
	r := jobhost.Request{Method: method, URL: url, Header: jobhost.Header{}, Body: []byte(body)}
	for field := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimSpace(field), ": ")
		r.Header[name] = append(r.Header[name], value)
	}
	response, err := s.Answer(r)
	if e, ok := err.(*jobhost.ResponseError); ok { //nolint:errorlint // it is that type
		return "0\nerror: " + string(e.Reason) + "\n\n" + e.Message
	}
	var b strings.Builder
	_, _ = fmt.Fprintln(&b, response.Status)
	for _, name := range slices.Sorted(maps.Keys(response.Header)) {
		_, _ = fmt.Fprintf(&b, "%s: %s\n", strings.ToLower(name), response.Header[name][0])
	}
	return b.String() + "\n" + string(response.Body)
}
