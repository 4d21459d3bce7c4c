package hostcall_test

import (
	"context"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// able is services with all optional abilities.
type able struct{ hostcall.Services }

func (able) KVGet(*hostcall.Attempt, []byte) ([]byte, int64, hostcall.Errno) {
	return []byte("value"), 7, hostcall.OK
}

func (able) KVSet(*hostcall.Attempt, []byte, []byte, time.Duration) hostcall.Errno {
	return hostcall.OK
}
func (able) KVDelete(*hostcall.Attempt, []byte) hostcall.Errno { return hostcall.OK }
func (able) KVAdd(_ *hostcall.Attempt, _ []byte, delta int64) (int64, hostcall.Errno) {
	return delta + 1, hostcall.OK
}

func (able) KVCompareAndSet(_ *hostcall.Attempt, _ []byte, version int64, _ []byte) hostcall.Errno {
	if version != 7 {
		return hostcall.ErrConflict
	}
	return hostcall.OK
}

func (able) SubmitJob(_ *hostcall.Attempt, spec *jobhost.Spec, _ hostcall.SubmitTime) (string, error) {
	if spec.ID == "taken" {
		return "", &jobhost.Error{Code: jobhost.CodeConflict, Message: "job taken exists with other content"}
	}
	return "id of " + string(spec.Payload), nil
}

func (able) Send(_ *hostcall.Attempt, r *hostcall.HTTPRequest) (hostcall.Exchange, error) {
	return echo{r}, nil
}

func (able) Defer(_ *hostcall.Attempt, r *hostcall.HTTPRequest, _ string, _ []byte) (string, error) {
	return r.URL, nil
}

// echo answers a request with its URL, and the time that there is for it.
type echo struct{ *hostcall.HTTPRequest }

func (e echo) Response(ctx context.Context) (*hostcall.HTTPResponse, error) {
	end, _ := ctx.Deadline()
	return &hostcall.HTTPResponse{Status: 200, Body: []byte(e.URL + end.Format(" 15:04:05"))}, nil
}

func (echo) Drop() {}

// TestAbilities: what the host doesn't implement is not there.
func TestAbilities(t *testing.T) {
	t.Parallel()
	request := &hostcall.HTTPRequest{Method: "GET", URL: "http://a.example"}
	for name, s := range map[string]hostcall.Services{"no services": nil, "services without": &reports{}} {
		at := &hostcall.Attempt{Services: s}
		if at.HasKV() {
			t.Errorf("%s: there are keys and values", name)
		}
		if _, e := at.KVGet([]byte("key")); e != hostcall.ErrDenied {
			t.Errorf("%s: a key is answered with errno %d", name, e)
		}
		if _, e := at.Submit([]byte("worker: w"), hostcall.SubmitNow); e != hostcall.ErrDenied {
			t.Errorf("%s: a job is answered with errno %d", name, e)
		}
		if r, err := at.Fetch(t.Context(), request); r != nil || jobhost.CodeOf(err) != jobhost.CodeDenied {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	at := &hostcall.Attempt{Services: able{}, Limits: hostcall.Limits{OpenRequests: 1, Requests: 10, RequestBytes: 1 << 10}}
	if value, e := at.KVGet([]byte("key")); string(value) != "value" || e != hostcall.OK {
		t.Errorf("%q, errno %d", value, e)
	}
	for _, deadline := range []time.Time{{}, time.Now().Add(time.Minute)} {
		at.Deadline = deadline
		if r, err := at.Fetch(t.Context(), request); err != nil || string(r.Body) != request.URL+deadline.Format(" 15:04:05") {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
