package netproxy

import (
	"net/http"
	"time"
)

// Response is a server's response, in memory. It has an equivalent JSON form.
type Response struct {
	Status int
	Header http.Header
	// Body is decoded: it has no Content-Encoding any more, unless that was an
	// unsupported one.
	Body     []byte
	Duration time.Duration // from the first attempt to the last byte
	// RequestID is the id of the request; after redirects that of the last hop, "id/2".
	RequestID string
	Method    string
	URL       string // of the last hop
	// Redirects are the URLs that led there, in order.
	Redirects []string
	// Args are those of the task's callback.
	Args []byte
}

// OK reports whether the status indicates success.
func (r *Response) OK() bool { return r.Status >= 200 && r.Status < 300 }
