package netproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
)

// text is bytes that are mostly text: a JSON string if they are valid UTF-8,
// otherwise {"base64":"…"}.
type text []byte

type binary struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements [json.Marshaler].
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return json.Marshal(string(t))
	}
	return json.Marshal(binary{t})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var b binary
		err := json.Unmarshal(data, &b)
		*t = b.Base64
		return err
	}
	var s string
	err := json.Unmarshal(data, &s)
	*t = text(s)
	return err
}

type requestJSON struct {
	ID               string           `json:"id"`
	Method           string           `json:"method"`
	URL              string           `json:"url"`
	Header           http.Header      `json:"headers,omitempty"`
	HostHeader       http.Header      `json:"host_headers,omitempty"`
	Body             text             `json:"body,omitempty"`
	Timeout          jobhost.Duration `json:"timeout,omitzero"`
	MaxResponseBytes int64            `json:"max_response_bytes,omitempty"`
	MaxRedirects     *int             `json:"max_redirects,omitempty"`
	RaiseErrors      bool             `json:"raise_errors,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (r *Request) MarshalJSON() ([]byte, error) {
	return json.Marshal(requestJSON{
		r.id, r.method, r.URL(), r.header, r.hostHeader, r.body, jobhost.Duration(r.timeout), r.maxBytes, r.redirects, r.raiseErrors,
	})
}

// UnmarshalJSON implements [json.Unmarshaler]. What it reads is checked as in
// [NewRequest].
func (r *Request) UnmarshalJSON(data []byte) error {
	var j requestJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("read HTTP request: %w", err)
	}
	read, err := NewRequest(RequestSpec{
		j.ID, j.Method, j.URL, j.Header, j.HostHeader, j.Body, time.Duration(j.Timeout), j.MaxResponseBytes, j.MaxRedirects, j.RaiseErrors,
	})
	if err != nil {
		return fmt.Errorf("read HTTP request: %w", err)
	}
	*r = *read
	return nil
}

type responseJSON struct {
	Status    int              `json:"status"`
	Header    http.Header      `json:"headers,omitempty"`
	Body      text             `json:"body,omitempty"`
	Duration  jobhost.Duration `json:"duration"`
	RequestID string           `json:"request_id"`
	Method    string           `json:"method"`
	URL       string           `json:"url"`
	Redirects []string         `json:"redirects,omitempty"`
	Args      text             `json:"args,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (r *Response) MarshalJSON() ([]byte, error) {
	return json.Marshal(responseJSON{r.Status, r.Header, r.Body, jobhost.Duration(r.Duration), r.RequestID, r.Method, r.URL, r.Redirects, r.Args})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Response) UnmarshalJSON(data []byte) error {
	var j responseJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("read HTTP response: %w", err)
	}
	if j.Status < 100 || j.Status > 999 {
		return fmt.Errorf("read HTTP response: %d is not a status", j.Status)
	}
	*r = Response{j.Status, j.Header, j.Body, time.Duration(j.Duration), j.RequestID, j.Method, j.URL, j.Redirects, j.Args}
	return nil
}

type errorJSON struct {
	Kind      Kind             `json:"kind"`
	Code      Code             `json:"code"`
	Message   string           `json:"message"`
	RequestID string           `json:"request_id"`
	Method    string           `json:"method"`
	URL       string           `json:"url"`
	Redirects []string         `json:"redirects,omitempty"`
	Duration  jobhost.Duration `json:"duration"`
	Response  *Response        `json:"response,omitempty"`
	Args      text             `json:"args,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(errorJSON{e.Kind, e.Code, e.Message, e.RequestID, e.Method, e.URL, e.Redirects, jobhost.Duration(e.Duration), e.Response, e.Args})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (e *Error) UnmarshalJSON(data []byte) error {
	var j errorJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("read HTTP error: %w", err)
	}
	if j.Kind != KindHTTP && j.Kind != KindRequest && j.Kind != KindRedirect || j.Code == "" {
		return errors.New("read HTTP error: it has no known kind, or no code")
	}
	*e = Error{j.Kind, j.Code, j.Message, j.RequestID, j.Method, j.URL, j.Redirects, time.Duration(j.Duration), j.Response, j.Args, nil}
	return nil
}
