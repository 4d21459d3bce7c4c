package hostcall_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// refusing is a network that has no room for the first requests.
type refusing struct {
	runtimetest.Network
	first int
}

func (r *refusing) Send(at *hostcall.Attempt, req *hostcall.HTTPRequest) (hostcall.Exchange, error) {
	if r.first--; r.first >= 0 {
		return nil, &jobhost.Error{Code: jobhost.CodeExhausted, Message: "there is no room"}
	}
	return r.Network.Send(at, req)
}

// TestRefusedHasNoNumber: a request that the host had no room for takes no key, so
// that the next attempt, which it may have room for, sends the same ones.
func TestRefusedHasNoNumber(t *testing.T) {
	t.Parallel()
	keys := make(chan string, 1)
	at := &hostcall.Attempt{Job: "job", Limits: hostcall.Limits{OpenRequests: 9, Requests: 1, RequestBytes: 9}}
	at.Services = &refusing{first: 3, Network: runtimetest.Network{
		Respond: func(_ context.Context, r *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
			keys <- r.Key
			return &hostcall.HTTPResponse{Status: 200}, nil
		},
	}}
	for range 3 {
		_, e := at.Send([]byte("POST http://a\n\n12345"))
		wantErrno(t, "a request without room", e, hostcall.ErrLimit)
	}
	if _, e := at.Send([]byte("POST http://a\n\n12345")); e != hostcall.OK {
		t.Fatalf("one with room is answered with errno %d", e)
	}
	if key := <-keys; key != "job/0/1" {
		t.Errorf("its key is %s", key)
	}
	at.Release()
}

// TestDroppedCounts: what has come counts, whether it is read or dropped.
func TestDroppedCounts(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{Limits: hostcall.Limits{OpenRequests: 9, Requests: 9, RequestBytes: 100}}
	at.Services = &runtimetest.Network{Respond: func(context.Context, *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
		return &hostcall.HTTPResponse{Status: 200, Body: make([]byte, 60)}, nil
	}}
	for range 2 {
		h := send(t, at, "http://a")
		_, e := at.Wait(t.Context(), []int32{h}, hostcall.NoTimeout)
		wantErrno(t, "wait", e, hostcall.OK)
		wantErrno(t, "drop", at.Drop(h), hostcall.OK)
	}
	_, e := at.Send([]byte("GET http://a"))
	wantErrno(t, "a request after 120 bytes", e, hostcall.ErrLimit)
}

// TestReadIsFreed: a response that was read takes no memory, although its handle
// is not dropped.
func TestReadIsFreed(t *testing.T) {
	t.Parallel()
	var body weak.Pointer[byte]
	at := &hostcall.Attempt{Limits: hostcall.Limits{OpenRequests: 9, Requests: 9, RequestBytes: 1 << 30}}
	at.Services = &runtimetest.Network{Respond: func(context.Context, *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
		b := make([]byte, 1<<20)
		body = weak.Make(&b[0])
		return &hostcall.HTTPResponse{Status: 200, Body: b}, nil
	}}
	h := send(t, at, "http://a")
	_, e := at.Read(t.Context(), h, nil)
	wantErrno(t, "read", e, hostcall.OK)
	runtime.GC()
	if body.Value() != nil {
		t.Error("the body is in memory twice")
	}
	runtime.KeepAlive(at)
}

// TestToldInAnyCase: a cancel is told also to a guest that waits for what it has read.
func TestToldInAnyCase(t *testing.T) {
	inTime(t, func(t *testing.T, at *hostcall.Attempt, _ chan string) {
		h := send(t, at, "http://1s")
		_, e := at.Read(t.Context(), h, nil)
		wantErrno(t, "read", e, hostcall.OK)
		at.Cancel()
		_, e = at.Wait(t.Context(), []int32{h}, hostcall.NoTimeout)
		wantErrno(t, "wait", e, hostcall.ErrStopped)
		_, e = at.Wait(t.Context(), []int32{h, 77}, hostcall.NoTimeout)
		wantErrno(t, "wait for what is no handle", e, hostcall.ErrInvalid)
		_, e = at.Wait(t.Context(), []int32{h}, hostcall.NoTimeout)
		wantErrno(t, "wait again", e, hostcall.OK)
	})
}
