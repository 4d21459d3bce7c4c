package hostcall_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// inTime runs a test on simulated time with an attempt on a network whose
// servers answer a GET with its URL, after as long as the URL says.
func inTime(t *testing.T, test func(t *testing.T, at *hostcall.Attempt, gone chan string)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan string, 100)
		at := &hostcall.Attempt{
			Job: "job", Task: 2, Deadline: time.Now().Add(time.Minute),
			Limits:    hostcall.Limits{OpenRequests: 3, Requests: 5, RequestBytes: 100, LogBytes: 1 << 20, LineBytes: 1 << 10},
			MaySubmit: []string{"w"},
		}
		at.Services = &runtimetest.Network{
			Ended: make(chan struct{}),
			Respond: func(ctx context.Context, r *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
				wait, _ := time.ParseDuration(strings.TrimPrefix(r.URL, "http://"))
				select {
				case <-time.After(wait):
					return &hostcall.HTTPResponse{Status: 200, Body: []byte(r.Key)}, nil
				case <-ctx.Done():
					gone <- r.URL
					return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Field: "cancelled", Message: "cancelled"}
				}
			},
		}
		test(t, at, gone)
		at.Release()
		synctest.Wait()
	})
}

func send(t *testing.T, at *hostcall.Attempt, url string) int32 {
	t.Helper()
	h, e := at.Send([]byte("GET " + url))
	if e != hostcall.OK {
		t.Fatalf("%s is answered with errno %d", url, e)
	}
	return h
}

func wantErrno(t *testing.T, what string, got, want hostcall.Errno) {
	t.Helper()
	if got != want {
		t.Errorf("%s is answered with errno %d, want %d", what, got, want)
	}
}

// Requests overlap: the one that answers first is ready first.
func TestRequestsOverlap(t *testing.T) {
	inTime(t, func(t *testing.T, at *hostcall.Attempt, _ chan string) {
		began := time.Now()
		handles := []int32{send(t, at, "http://3s"), send(t, at, "http://1s"), send(t, at, "http://2s")}
		var order []string
		for len(handles) > 0 {
			i, e := at.Wait(t.Context(), handles, hostcall.NoTimeout)
			wantErrno(t, "wait", e, hostcall.OK)
			buf := make([]byte, 100)
			n, e := at.Read(t.Context(), handles[i], buf)
			wantErrno(t, "read", e, hostcall.OK)
			order = append(order, string(buf[:n]))
			handles = slices.Delete(handles, int(i), int(i)+1)
		}
		if want := []string{"200\n\njob/2/2", "200\n\njob/2/3", "200\n\njob/2/1"}; !slices.Equal(order, want) {
			t.Errorf("%q, want %q", order, want)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestReadInPieces(t *testing.T) {
	inTime(t, func(t *testing.T, at *hostcall.Attempt, _ chan string) {
		h := send(t, at, "http://1s")
		n, e := at.Read(t.Context(), h, nil)
		wantErrno(t, "read", e, hostcall.OK)
		if n != len("200\n\njob/2/1") {
			t.Errorf("%d bytes are left", n)
		}
		var got []byte
		for buf := make([]byte, 5); n > 0; {
			n, e = at.Read(t.Context(), h, buf)
			wantErrno(t, "read", e, hostcall.OK)
			got = append(got, buf[:n]...)
		}
		if string(got) != "200\n\njob/2/1" {
			t.Errorf("%q", got)
		}
		// It stays ready at its end, until it is dropped.
		if i, e := at.Wait(t.Context(), []int32{h}, 0); i != 0 || e != hostcall.OK {
			t.Errorf("index %d, errno %d", i, e)
		}
		wantErrno(t, "drop", at.Drop(h), hostcall.OK)
		wantErrno(t, "drop again", at.Drop(h), hostcall.ErrInvalid)
		_, e = at.Wait(t.Context(), []int32{h}, 0)
		wantErrno(t, "wait for a dropped one", e, hostcall.ErrInvalid)
	})
}

// A dropped request is cancelled, and so is what is left at the end.
func TestDropped(t *testing.T) {
	inTime(t, func(t *testing.T, at *hostcall.Attempt, gone chan string) {
		first, slow := send(t, at, "http://1s"), send(t, at, "http://1h")
		send(t, at, "http://2h")
		if i, e := at.Wait(t.Context(), []int32{slow, first}, hostcall.NoTimeout); i != 1 || e != hostcall.OK {
			t.Fatalf("index %d, errno %d", i, e)
		}
		at.Drop(slow)
		if url := <-gone; url != "http://1h" {
			t.Errorf("%s was cancelled", url)
		}
		at.Release()
		if url := <-gone; url != "http://2h" {
			t.Errorf("%s was cancelled", url)
		}
	})
}

func TestTimers(t *testing.T) {
	inTime(t, func(t *testing.T, at *hostcall.Attempt, _ chan string) {
		slow := send(t, at, "http://10s")
		timer, e := at.Timer(1500)
		wantErrno(t, "timer", e, hostcall.OK)
		began := time.Now()
		_, e = at.Wait(t.Context(), []int32{slow, timer}, 0)
		wantErrno(t, "a look", e, hostcall.ErrNotFound)
		_, e = at.Wait(t.Context(), []int32{slow, timer}, 1000)
		wantErrno(t, "a second", e, hostcall.ErrNotFound)
		if i, e := at.Wait(t.Context(), []int32{slow, timer}, hostcall.NoTimeout); i != 1 || e != hostcall.OK {
			t.Errorf("index %d, errno %d", i, e)
		}
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		n, e := at.Read(t.Context(), timer, make([]byte, 10))
		if n != 0 || e != hostcall.OK {
			t.Errorf("%d bytes, errno %d", n, e)
		}
		for _, ms := range []int64{-1, 1 << 62} {
			_, e := at.Timer(ms)
			wantErrno(t, fmt.Sprint("a timer of ", ms), e, hostcall.ErrInvalid)
		}
	})
}

func TestAwaitChild(t *testing.T) {
	inTime(t, func(t *testing.T, at *hostcall.Attempt, _ chan string) {
		for _, when := range []hostcall.SubmitTime{hostcall.SubmitNow, hostcall.SubmitWithSuccess} {
			_, e := at.Submit([]byte("worker: w\nid: child\n"), when)
			wantErrno(t, "submit", e, hostcall.OK)
		}
		_, e := at.Wait(t.Context(), []int32{1}, 1000)
		wantErrno(t, "a child that runs", e, hostcall.ErrNotFound)
		close(at.Services.(*runtimetest.Network).Ended)
		i, e := at.Wait(t.Context(), []int32{1}, hostcall.NoTimeout)
		wantErrno(t, "a child that has ended", e, hostcall.OK)
		buf := make([]byte, 100)
		n, e := at.Read(t.Context(), 1, buf)
		wantErrno(t, "read", e, hostcall.OK)
		if i != 0 || string(buf[:n]) != `{"job":"child"}` {
			t.Errorf("index %d, message %q", i, buf[:n])
		}
		_, e = at.Wait(t.Context(), []int32{2}, 0)
		wantErrno(t, "one that comes with success", e, hostcall.ErrInvalid)
		_, e = at.Wait(t.Context(), []int32{3}, 0)
		wantErrno(t, "one that was not submitted", e, hostcall.ErrInvalid)
	})
}

// A guest that waits is stopped at its deadline; a cancel wakes it once, and then
// it may wait while it shuts down.
func TestWaitIsStopped(t *testing.T) {
	inTime(t, func(t *testing.T, at *hostcall.Attempt, _ chan string) {
		h := send(t, at, "http://30s")
		began := time.Now()
		time.AfterFunc(5*time.Second, at.Cancel)
		_, e := at.Wait(t.Context(), []int32{h}, hostcall.NoTimeout)
		wantErrno(t, "wait", e, hostcall.ErrStopped)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the cancel was noticed after %v", took)
		}
		_, e = at.Read(t.Context(), h, make([]byte, 10))
		wantErrno(t, "read after it", e, hostcall.OK)
		late := send(t, at, "http://1h")
		_, e = at.Read(t.Context(), late, make([]byte, 10))
		wantErrno(t, "read beyond the deadline", e, hostcall.ErrStopped)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the deadline was noticed after %v", took)
		}
	})
}

func TestLimitsOfRequests(t *testing.T) {
	inTime(t, func(t *testing.T, at *hostcall.Attempt, _ chan string) {
		handles := []int32{send(t, at, "http://1s"), send(t, at, "http://1s"), send(t, at, "http://1s")}
		_, e := at.Send([]byte("GET http://1s"))
		wantErrno(t, "a fourth open one", e, hostcall.ErrLimit)
		for _, h := range handles {
			at.Drop(h)
		}
		_, e = at.Send([]byte("POST http://1s\n\n" + strings.Repeat("x", 100)))
		wantErrno(t, "one with too much to send", e, hostcall.ErrLimit)
		send(t, at, "http://1s")
		send(t, at, "http://1s")
		_, e = at.Send([]byte("GET http://1s"))
		wantErrno(t, "a sixth one", e, hostcall.ErrLimit)
		_, e = at.Send([]byte("hello"))
		wantErrno(t, "no request", e, hostcall.ErrInvalid)
		_, e = at.Wait(t.Context(), nil, 0)
		wantErrno(t, "a wait for nothing", e, hostcall.ErrInvalid)
		_, e = at.Wait(t.Context(), handles[:1], -2)
		wantErrno(t, "a negative timeout", e, hostcall.ErrInvalid)
		log, _ := at.TakeLog()
		if !strings.Contains(string(log), "an attempt may have 3 HTTP requests open") {
			t.Errorf("the log is %s", log)
		}
	})
}

// What an attempt receives counts, and limits what the next response may bring.
func TestRequestBytes(t *testing.T) {
	t.Parallel()
	var most []int64
	at := &hostcall.Attempt{Limits: hostcall.Limits{OpenRequests: 1, Requests: 10, RequestBytes: 100}}
	at.Services = &runtimetest.Network{Respond: func(_ context.Context, r *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
		most = append(most, r.MaxBytes)
		return &hostcall.HTTPResponse{Status: 200, Body: make([]byte, 55)}, nil
	}}
	for i, want := range []hostcall.Errno{hostcall.OK, hostcall.OK, hostcall.ErrLimit} {
		h, e := at.Send([]byte("GET http://a\n\n12345"))
		wantErrno(t, fmt.Sprint("request ", i), e, want)
		if e == hostcall.OK {
			_, e = at.Read(t.Context(), h, make([]byte, 100))
			wantErrno(t, "read", e, hostcall.OK)
		}
	}
	if want := []int64{95, 30}; !slices.Equal(most, want) {
		t.Errorf("the responses might have %v bytes, want %v", most, want)
	}
}

func TestDefer(t *testing.T) {
	inTime(t, func(t *testing.T, at *hostcall.Attempt, _ chan string) {
		n, e := at.Defer([]byte("GET http://a"), "entry", []byte("args"))
		wantErrno(t, "defer", e, hostcall.OK)
		if id, e := at.Info(fmt.Sprint("child.", n)); id != "http://a for entry with args" || e != hostcall.OK {
			t.Errorf("the id is %q, errno %d", id, e)
		}
		_, e = at.Defer([]byte("GET http://a"), "", make([]byte, hostcall.MaxArgsBytes+1))
		wantErrno(t, "long args", e, hostcall.ErrLimit)
		_, e = at.Defer([]byte("GET"), "", nil)
		wantErrno(t, "no request", e, hostcall.ErrInvalid)
		_, e = at.Wait(t.Context(), []int32{n}, 0)
		wantErrno(t, "a wait for it", e, hostcall.ErrInvalid)
	})
}

// Concurrent cancels and waits: none is missed.
func TestCancelHammer(t *testing.T) {
	t.Parallel()
	for range 200 {
		at := &hostcall.Attempt{Services: &runtimetest.Network{}}
		timer, _ := at.Timer(int64(time.Hour / time.Millisecond))
		go at.Cancel()
		_, e := at.Wait(t.Context(), []int32{timer}, hostcall.NoTimeout)
		wantErrno(t, "wait", e, hostcall.ErrStopped)
		at.Release()
	}
}
