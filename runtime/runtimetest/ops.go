package runtimetest

import (
	"context"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Network is [Services] with a network and a clock: it answers all requests
// with Respond and knows one job, "child", which ends when Ended is closed.
type Network struct {
	Services
	// Respond is called on a goroutine of its own for each request; ctx ends when
	// the response is no longer wanted.
	Respond func(ctx context.Context, r *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error)
	Ended   chan struct{}
}

// event is something that happens once; gone is called when it is no longer awaited.
type event struct {
	ready    chan struct{}
	gone     context.CancelFunc
	response *hostcall.HTTPResponse
	message  string
	err      error
}

// Drop implements [hostcall.Pending].
func (e *event) Drop() { e.gone() }

// Response implements [hostcall.Exchange].
func (e *event) Response(ctx context.Context) (*hostcall.HTTPResponse, error) {
	select {
	case <-e.ready:
		return e.response, e.err
	case <-ctx.Done():
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Field: "cancelled", Message: "no answer"}
	}
}

type ending struct{ *event }

// Response keeps an ending from implementing Exchange too.
func (ending) Response() {}

// Message implements [hostcall.Ending].
func (e ending) Message(context.Context) ([]byte, error) { return []byte(e.message), e.err }

// Send implements [hostcall.HTTP].
func (n *Network) Send(_ *hostcall.Attempt, r *hostcall.HTTPRequest) (hostcall.Exchange, error) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &event{ready: make(chan struct{}), gone: cancel}
	sent := *r
	go func() {
		e.response, e.err = n.Respond(ctx, &sent)
		close(e.ready)
	}()
	return e, nil
}

// Defer implements [hostcall.HTTP].
func (n *Network) Defer(_ *hostcall.Attempt, r *hostcall.HTTPRequest, entry string, args []byte) (string, error) {
	return r.URL + " for " + entry + " with " + string(args), nil
}

// After implements [hostcall.Ops].
func (n *Network) After(_ *hostcall.Attempt, d time.Duration) hostcall.Pending {
	e := &event{ready: make(chan struct{})}
	timer := time.AfterFunc(d, func() { close(e.ready) })
	e.gone = func() { timer.Stop() }
	return ending{e}
}

// Await implements [hostcall.Ops].
func (n *Network) Await(_ *hostcall.Attempt, job string) (hostcall.Ending, error) {
	if job != "child" {
		return nil, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no job " + job}
	}
	return ending{&event{ready: n.Ended, gone: func() {}, message: `{"job":"child"}`}}, nil
}

// SubmitJob implements [hostcall.Jobs].
func (n *Network) SubmitJob(_ *hostcall.Attempt, spec *jobhost.Spec, _ hostcall.SubmitTime) (string, error) {
	return spec.ID, nil
}

// look reports whether the event has happened, and returns a channel that is closed when it does.
func (e *event) look() (bool, <-chan struct{}) {
	select {
	case <-e.ready:
		return true, e.ready
	default:
		return false, e.ready
	}
}

// Wait implements [hostcall.Ops].
func (n *Network) Wait(ctx context.Context, pending []hostcall.Pending) int {
	for {
		cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
		for _, i := range rand.Perm(len(pending)) {
			ready, changed := pending[i].(interface {
				look() (bool, <-chan struct{})
			}).look()
			if ready {
				return i
			}
			cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(changed)})
		}
		if i, _, _ := reflect.Select(cases); i == 0 {
			return -1
		}
	}
}
