package netproxy

import (
	"net/http"
	"time"
)

// Response is what a server answered, in memory. It has an equal JSON form.
type Response struct {
	Status int
	Header http.Header
	// Body is decoded: it has no Content-Encoding any more, unless that was
	// one that isn't understood here.
	Body     []byte
	Duration time.Duration // from the first attempt to the last byte
	// RequestID is the id of the request; that of a hop after redirects, "id/2".
	RequestID string
	Method    string
	URL       string // of the last hop
	// Redirects are the URLs that led there, the first one first.
	Redirects []string
	// Args are those of the task's callback.
	Args []byte
}

// OK reports whether the status is one of success.
func (r *Response) OK() bool { return r.Status >= 200 && r.Status < 300 }
