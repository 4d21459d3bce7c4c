package hostcall_test

import (
	"context"
	"runtime"
	"testing"
	"time"
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

// TestRefusedHasNoNumber: a request for which the host had no room takes no key,
// so that the next attempt, for which it may have room, sends the same ones.
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

// TestDroppedCounts: what has arrived counts, whether it is read or dropped.
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

// TestReadIsFreed: a response that was read takes no memory, even if its handle
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

// TestToldInAnyCase: a guest that waits for what it has already read is notified of a cancel, too.
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

// endings has jobs that have ended, with large results.
type endings struct{ runtimetest.Services }

func (*endings) SubmitJob(*hostcall.Attempt, *jobhost.Spec, hostcall.SubmitTime) (string, error) {
	return "child", nil
}
func (*endings) After(*hostcall.Attempt, time.Duration) hostcall.Pending { return ended{} }
func (*endings) Await(*hostcall.Attempt, string) (hostcall.Ending, error) {
	return ended{}, nil
}
func (*endings) Wait(context.Context, []hostcall.Pending) int { return 0 }

type ended struct{}

func (ended) Drop()                                   {}
func (ended) Message(context.Context) ([]byte, error) { return make([]byte, 1<<20), nil }

// TestUnreadEndings: a guest can't make the host keep the results of all its
// children at the same time.
func TestUnreadEndings(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{Services: &endings{}, MaySubmit: []string{"w"}}
	var children []int32
	for range 100 {
		n, e := at.Submit([]byte("worker: w\n\n"), hostcall.SubmitNow)
		wantErrno(t, "submit", e, hostcall.OK)
		children = append(children, n)
	}
	asked := 0
	for _, child := range children {
		if _, e := at.Read(t.Context(), child, nil); e != hostcall.OK {
			wantErrno(t, "one too many", e, hostcall.ErrLimit)
			break
		}
		asked++
	}
	if asked < 4 || asked > 32 {
		t.Fatalf("the host keeps %d results", asked)
	}
	wantErrno(t, "drop", at.Drop(children[0]), hostcall.OK)
	_, e := at.Read(t.Context(), children[asked], make([]byte, 1<<20))
	wantErrno(t, "read after a drop", e, hostcall.OK)
	_, e = at.Read(t.Context(), children[asked+1], nil)
	wantErrno(t, "read after one that was read whole", e, hostcall.OK)
}
