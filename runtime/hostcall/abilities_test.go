package hostcall_test

import (
	"context"
	"errors"
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

func (able) Fetch(ctx context.Context, at *hostcall.Attempt, r *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
	if end, _ := ctx.Deadline(); !end.Equal(at.Deadline) {
		return nil, errors.New("the request may outlive the attempt")
	}
	return &hostcall.HTTPResponse{Status: 200, Body: []byte(r.URL)}, nil
}

// TestAbilities: what the host doesn't implement is not there.
func TestAbilities(t *testing.T) {
	t.Parallel()
	request := &hostcall.HTTPRequest{Method: "GET", URL: "http://a.example"}
	for name, s := range map[string]hostcall.Services{"no services": nil, "services without": &reports{}} {
		at := &hostcall.Attempt{Services: s}
		if at.KV() != nil {
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
	at := &hostcall.Attempt{Services: able{}}
	if value, e := at.KVGet([]byte("key")); string(value) != "value" || e != hostcall.OK {
		t.Errorf("%q, errno %d", value, e)
	}
	for _, deadline := range []time.Time{{}, time.Now().Add(time.Minute)} {
		at.Deadline = deadline
		if r, err := at.Fetch(t.Context(), request); err != nil || string(r.Body) != request.URL {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
