//go:build !wasip1

package jobhost_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// site answers by the path: "/N" with that status, "/never" not at all, "/WORD"
// with that reason for no answer.
func site(r jobhost.Request) (*jobhost.Response, error) {
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), "/")
	path, _, _ = strings.Cut(path, "?")
	status := 0
	switch _, err := fmt.Sscanf(path, "%d", &status); {
	case path == "never":
		return nil, nil
	case path == "full":
		return nil, jobhost.ErrLimit
	case path == "broken":
		return nil, errors.New("the line was cut")
	case err != nil:
		return nil, &jobhost.ResponseError{Reason: jobhost.Reason(path), Message: "no " + path}
	}
	return &jobhost.Response{Status: status, Header: jobhost.Header{"X-Path": {path}}, Body: []byte(r.Method + " " + path)}, nil
}

// do runs a handler that returns nothing on the site.
func do(t *testing.T, h func(job *jobhost.Job) error) *jobhost.Result {
	t.Helper()
	got := jobhost.Run(func(job *jobhost.Job) ([]byte, error) { return nil, h(job) }, jobhost.Attempt{HTTP: site, MaySubmit: []string{"w"}})
	return got
}

func TestFetch(t *testing.T) {
	t.Parallel()
	request := jobhost.Request{
		Method: "PUT", URL: "http://a/201?key=secret", Header: jobhost.Header{"X-B": {"1", "2"}, "accept": {"*/*"}}, Body: []byte("a\n\nb"),
	}
	got := do(t, func(job *jobhost.Job) error {
		call, err := job.Send(request)
		if err != nil {
			return err
		}
		for range 2 { // it is the same both times
			want := &jobhost.Response{Status: 201, Header: jobhost.Header{"x-path": {"201"}}, Body: []byte("PUT 201")}
			r, err := call.Response()
			if diff := cmp.Diff(want, r); diff != "" || err != nil {
				t.Errorf("%v: %s", err, diff)
			}
			if r.Header.Get("X-Path") == "" || !r.OK() || r.Err() != nil {
				t.Errorf("%+v", r)
			}
		}
		call.Drop()
		if i, err := job.Wait(0, call); i != 0 || err != nil {
			t.Errorf("an answer is not ready: %d, %v", i, err)
		}
		r, err := job.Get("http://a/404")
		if err != nil || r.Err() == nil {
			t.Errorf("%+v, %v", r, err)
		}
		return nil
	})
	want := []jobhost.Sent{{Request: request}, {Request: jobhost.Request{Method: "GET", URL: "http://a/404"}}}
	if diff := cmp.Diff(want, got.Requests); diff != "" || got.Err != nil {
		t.Errorf("%v: %s", got.Err, diff)
	}
}

func TestRequestsThatCantBe(t *testing.T) {
	t.Parallel()
	for _, r := range []jobhost.Request{
		{Method: "GET /", URL: "http://a/200"},
		{URL: "http://a/200\nx: y"},
		{URL: "http://a/200", Header: jobhost.Header{"a": {"b\r\nc: d"}}},
		{URL: "http://a/200", Header: jobhost.Header{"a: b": {""}}},
		{URL: "http://a/200", Header: jobhost.Header{"": {"a"}}},
	} {
		do(t, func(job *jobhost.Job) error {
			if _, err := job.Fetch(r); !errors.Is(err, jobhost.ErrInvalid) {
				t.Errorf("%+v: %v", r, err)
			}
			if _, err := job.Defer(r, "", nil); !errors.Is(err, jobhost.ErrInvalid) {
				t.Errorf("deferred %+v: %v", r, err)
			}
			return nil
		})
	}
	got := jobhost.Run(func(job *jobhost.Job) ([]byte, error) {
		_, err := job.Get("http://a/200")
		_, deferErr := job.Defer(jobhost.Request{URL: "http://a/200"}, "", nil)
		return nil, errors.Join(err, deferErr)
	}, jobhost.Attempt{})
	if got.Err == nil || got.Err.Error() != "GET http://a/200: not granted\ndefer GET http://a/200: not granted" {
		t.Errorf("without a grant: %v", got.Err)
	}
}

// TestNoResponse: how a failure is recorded when a handler returns it unchanged.
func TestNoResponse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path     string
		is       error
		category jobhost.Category
		final    bool
	}{
		{"timeout", jobhost.ReasonTimeout, jobhost.Timeout, false},
		{"dns", jobhost.ErrIO, jobhost.Network, false},
		{"broken", jobhost.ReasonConnection, jobhost.Network, false},
		{"tls", jobhost.ReasonTLS, jobhost.Network, true},
		{"denied", jobhost.ErrDenied, jobhost.Validation, true},
		{"invalid", jobhost.ErrInvalid, jobhost.Validation, true},
		{"response_too_large", jobhost.ErrLimit, jobhost.Resource, true},
		{"rate_limited", jobhost.ErrLimit, jobhost.Resource, false},
		{"cancelled", jobhost.ErrStopped, jobhost.Unknown, false},
		{"news", jobhost.ErrIO, jobhost.Unknown, false},
		{"503", nil, jobhost.Network, false},
		{"429", nil, jobhost.Network, false},
		{"404", nil, jobhost.Business, true},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			err := do(t, func(job *jobhost.Job) error {
				r, err := job.Get("http://a/" + tt.path + "?key=secret")
				if err != nil {
					return fmt.Errorf("look: %w", err)
				}
				return r.Err()
			}).Err
			f, ok := errors.AsType[*jobhost.Failure](err)
			if !ok || f.Category != tt.category || f.Permanent != tt.final || tt.is != nil && !errors.Is(err, tt.is) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: %+v", err, f)
			}
		})
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	got := do(t, func(job *jobhost.Job) error {
		never, err := job.Send(jobhost.Request{URL: "http://a/never"})
		if err != nil {
			return err
		}
		late, soon := job.After(2*time.Hour), job.After(time.Microsecond)
		for _, tt := range []struct {
			name    string
			timeout time.Duration
			pending []jobhost.Pending
			want    int
			err     error
		}{
			{"not yet", 0, []jobhost.Pending{late, soon, never}, -1, nil},
			{"a negative time is none", -time.Hour, []jobhost.Pending{soon}, -1, nil},
			{"the first", jobhost.Forever, []jobhost.Pending{late, soon, never}, 1, nil},
			{"in vain", time.Second, []jobhost.Pending{never, late}, -1, nil},
			{"for ever", jobhost.Forever, []jobhost.Pending{never}, -1, jobhost.ErrStopped},
			{"much later", jobhost.Forever, []jobhost.Pending{never, late}, 1, nil},
			{"nothing", 0, nil, -1, jobhost.ErrInvalid},
		} {
			if i, err := job.Wait(tt.timeout, tt.pending...); i != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%s: %d, %v", tt.name, i, err)
			}
		}
		never.Drop()
		soon.Drop()
		_, closed := never.Response()
		_, dropped := job.Wait(0, late, soon)
		if !errors.Is(closed, jobhost.ErrClosed) || !errors.Is(dropped, jobhost.ErrClosed) {
			t.Errorf("%v, %v", closed, dropped)
		}
		return nil
	})
	if got.Err != nil || len(got.Requests) != 1 || !got.Requests[0].Dropped {
		t.Errorf("%v, %+v", got.Err, got.Requests)
	}
}

// TestDeadline: a handler waits no longer than it may run.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		left   time.Duration
		errors []error
		end    time.Duration
	}{
		{"deadline", time.Minute, []error{nil, jobhost.ErrStopped, jobhost.ErrStopped}, 0},
		{"cancelled", -1, []error{jobhost.ErrStopped, nil, nil}, 0},
		{"none", 0, []error{nil, nil, nil}, jobhost.Forever},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			jobhost.Run(func(job *jobhost.Job) ([]byte, error) {
				for i, want := range tt.errors {
					if _, err := job.Wait(jobhost.Forever, job.After(40*time.Second)); !errors.Is(err, want) {
						t.Errorf("wait %d: %v", i, err)
					}
				}
				if left := job.Remaining(); left != tt.end {
					t.Errorf("%v are left", left)
				}
				return nil, nil
			}, jobhost.Attempt{Remaining: tt.left})
		})
	}
}

func TestChild(t *testing.T) {
	t.Parallel()
	got := jobhost.Run(func(job *jobhost.Job) ([]byte, error) {
		first, err := job.Start(jobhost.Spec{Worker: "w", ID: "a"})
		second, err2 := job.Start(jobhost.Spec{Worker: "w", ID: "b"})
		_, denied := job.Start(jobhost.Spec{Worker: "x"})
		if err != nil || err2 != nil || !errors.Is(denied, jobhost.ErrDenied) {
			t.Errorf("%v, %v, %v", err, err2, denied)
		}
		if i, err := job.Wait(jobhost.Forever, first, second); i != 1 || err != nil {
			t.Errorf("%d, %v", i, err)
		}
		if _, err := first.Ended(); !errors.Is(err, jobhost.ErrStopped) {
			t.Errorf("%s has ended: %v", first.ID(), err)
		}
		return second.Ended()
	}, jobhost.Attempt{MaySubmit: []string{"w"}, Ended: map[string]string{"b": `{"job":"b"}`}})
	if got.Err != nil || string(got.Output) != `{"job":"b"}` || len(got.Submitted) != 2 {
		t.Errorf("%+v", got)
	}
}
