package hostcall

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
)

// MaxRequestBytes bounds the text of an HTTP request, its body included.
const MaxRequestBytes = 64<<20 + maxHeadBytes

// ParseRequest parses an HTTP request as a guest writes it: the method and the
// URL, a line for each header field, an empty line, and the body as it is.
//
//	POST https://api.example.com/v1/things
//	content-type: application/json
//
//	{"name": "thing"}
//
// A field may be given several times. White space around a value is ignored.
// Without an empty line there is no body. Method, URL and fields are validated
// by the sender. The body is a slice of text.
func ParseRequest(text []byte) (*HTTPRequest, error) {
	line, rest, more := bytes.Cut(text, []byte{'\n'})
	method, target, ok := strings.Cut(string(trimCR(line)), " ")
	if !ok || method == "" || len(line) > maxHeadBytes || !utf8.Valid(line) {
		return nil, badRequest("the first line of a request is a method, a space and a URL")
	}
	r := &HTTPRequest{Method: method, URL: target, Header: map[string][]string{}}
	for head := rest; more; {
		line, rest, more = bytes.Cut(head, []byte{'\n'})
		if line = trimCR(line); len(line) == 0 {
			r.Body = rest
			return r, nil
		}
		if len(text)-len(rest) > maxHeadBytes || !utf8.Valid(line) {
			return nil, badRequest("the header is longer than " + strconv.Itoa(maxHeadBytes) + " bytes, or not UTF-8")
		}
		name, value, ok := strings.Cut(string(line), ":")
		if !ok {
			return nil, badRequest("a line of the header has no colon; the body comes after an empty line")
		}
		name = http.CanonicalHeaderKey(name)
		r.Header[name] = append(r.Header[name], strings.TrimSpace(value))
		head = rest
	}
	return r, nil
}

func trimCR(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }

func badRequest(message string) error {
	return &jobhost.Error{Code: jobhost.CodeInvalid, Message: message}
}

// AppendRequest appends a request in the form that [ParseRequest] reads.
func AppendRequest(b []byte, r *HTTPRequest) []byte {
	b = append(append(append(append(b, r.Method...), ' '), oneLine.Replace(r.URL)...), '\n')
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, value := range r.Header[name] {
			b = append(append(b, oneLine.Replace(name)...), ": "...)
			b = append(append(b, oneLine.Replace(value)...), '\n')
		}
	}
	return append(append(b, '\n'), r.Body...)
}

// AppendResponse appends a response in the form that a guest reads: the status,
// a line for each header field, an empty line, and the body. Names are in lower
// case and sorted.
func AppendResponse(b []byte, r *HTTPResponse) []byte {
	b = append(strconv.AppendInt(b, int64(r.Status), 10), '\n')
	names := make([]string, 0, 24) // on the stack, for most responses
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.Header[name] {
			b = append(append(b, strings.ToLower(name)...), ": "...)
			b = append(append(b, oneLine.Replace(value)...), '\n')
		}
	}
	return append(append(b, '\n'), r.Body...)
}

// oneLine keeps the lines of a header separate, whatever a server sends.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// AppendNoResponse appends what a guest reads if there is no response: status
// 0, a field with the reason in a word, and a message.
func AppendNoResponse(b []byte, err error) []byte {
	word, message := "unknown", "there was no response"
	if e, ok := err.(*jobhost.Error); ok { //nolint:errorlint // nothing wraps what Response returns
		word, message = e.Field, e.Message
	}
	b = append(append(b, "0\nerror: "...), oneLine.Replace(word)...)
	return append(append(b, "\n\n"...), message...)
}
