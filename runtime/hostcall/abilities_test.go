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

func (able) KVGet(*hostcall.Attempt, []byte) ([]byte, hostcall.Errno) {
	return []byte("value"), hostcall.OK
}

func (able) KVSet(*hostcall.Attempt, []byte, []byte, time.Duration) hostcall.Errno {
	return hostcall.OK
}
func (able) KVDelete(*hostcall.Attempt, []byte) hostcall.Errno { return hostcall.OK }
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
		if r, err := at.Fetch(t.Context(), request); r != nil || jobhost.CodeOf(err) != jobhost.CodeDenied {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	at := &hostcall.Attempt{Services: able{}}
	if value, e := at.KV().KVGet(at, []byte("key")); string(value) != "value" || e != hostcall.OK {
		t.Errorf("%q, errno %d", value, e)
	}
	for _, deadline := range []time.Time{{}, time.Now().Add(time.Minute)} {
		at.Deadline = deadline
		if r, err := at.Fetch(t.Context(), request); err != nil || string(r.Body) != request.URL {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
