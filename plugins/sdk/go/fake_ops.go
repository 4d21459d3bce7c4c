//go:build !wasip1

package jobhost

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sent is a request that a handler sent in [Run].
type Sent struct {
	Request
	// Dropped = it was dropped, or the handler ended, before its response was read.
	Dropped bool
}

// Deferred is a request that a handler deferred in [Run].
type Deferred struct {
	ID string
	Request
	Entry string
	Args  []byte
}

// fakeOp is something that a handler waits for in [Run].
type fakeOp struct {
	at      time.Duration // by the clock of the attempt; never = it never happens
	message []byte
	request int // number of the request, from 1; 0 = not a request
	stream  *fakeStream
}

// when returns when it is ready.
func (o *fakeOp) when() time.Duration {
	if o.stream != nil {
		return o.stream.when()
	}
	return o.at
}

const (
	never = math.MaxInt64
	// patience is how long a handler without a deadline waits for what never
	// happens, a piece at a time.
	patience = 10 * time.Minute
	// mostOpen is how many requests may be in flight.
	mostOpen = 64
	// firstHandle is the smallest number that isn't a child's.
	firstHandle = 1 << 20
)

// open creates a handle. h.mu is held, here and below.
func (h *fake) open(o *fakeOp) int32 {
	h.opened++
	h.ops[firstHandle+h.opened] = o
	return firstHandle + h.opened
}

// op returns what a number stands for; nil = nothing.
func (h *fake) op(number int32) *fakeOp {
	if o := h.ops[number]; o != nil || number < 1 || int(number) > len(h.asked) || !h.asked[number-1].now {
		return o
	}
	text, ok := h.at.Ended[h.asked[number-1].id]
	o := &fakeOp{at: never, message: []byte(text)}
	if ok {
		o.at = h.clock
	}
	h.ops[number] = o
	return o
}

// http has the request answered by the test, without the lock: it is the test's code.
func (h *fake) HTTP(text []byte) int32 {
	request := parseRequest(text)
	h.mu.Lock()
	underWay := 0
	for _, o := range h.ops {
		underWay += min(o.request, 1)
	}
	h.mu.Unlock()
	if h.at.HTTP == nil {
		return int32(ErrDenied)
	}
	if underWay >= mostOpen {
		return int32(ErrLimit)
	}
	response, err := h.at.HTTP(request)
	refused, isErrno := errors.AsType[Errno](err)
	_, isResponse := errors.AsType[*ResponseError](err)
	if isErrno && !isResponse {
		return int32(refused)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result.Requests = append(h.result.Requests, Sent{Request: request, Dropped: true})
	o := &fakeOp{at: h.clock, request: len(h.result.Requests), message: answerText(Answer{response, err}, nil)}
	if o.message == nil {
		o.at = never
	}
	return h.open(o)
}

func (h *fake) HTTPDefer(text []byte, entry string, args []byte) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.HTTP == nil {
		return int32(ErrDenied)
	}
	if len(args) > 64<<10 {
		return int32(ErrLimit)
	}
	id := "child-" + strconv.Itoa(len(h.asked)+1)
	d := &Deferred{ID: id, Request: parseRequest(text), Entry: entry, Args: slices.Clone(args)}
	h.asked = append(h.asked, fakeSubmit{id: id, deferred: d})
	return int32(len(h.asked))
}

func (h *fake) Timer(ms int64) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open(&fakeOp{at: h.clock + time.Duration(min(ms, math.MaxInt32))*time.Millisecond})
}

// wait lets time pass until the first of the numbers is ready: those that are
// ready at the same moment are taken in order.
func (h *fake) Wait(numbers []int32, timeout int64) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, at := -1, time.Duration(never)
	for i, number := range numbers {
		o := h.op(number)
		if o == nil {
			return int32(ErrInvalid)
		}
		if when := o.when(); when < at || first < 0 {
			first, at = i, when
		}
	}
	if first < 0 || timeout < -1 {
		return int32(ErrInvalid)
	}
	until := time.Duration(never)
	if timeout >= 0 {
		until = h.clock + time.Duration(min(timeout, math.MaxInt32))*time.Millisecond
	}
	if h.pass(min(max(at, h.clock), until)) {
		return int32(ErrStopped)
	}
	if at > h.clock {
		if timeout > 0 { // lets others run, and time pass in a synctest bubble
			time.Sleep(time.Millisecond)
		}
		return int32(ErrNotFound)
	}
	h.idle = 0
	return int32(first)
}

// pass lets time pass and reports whether the attempt is stopped by then.
func (h *fake) pass(until time.Duration) (stopped bool) {
	left := h.at.Remaining
	switch {
	case left < 0: // cancelled, which is reported once
		stopped, h.notified = !h.notified, true
	case left == 0:
		stopped = until == never || h.idle > patience
	default:
		stopped = until > left
		h.clock = min(until, left)
	}
	if left == 0 && !stopped {
		h.idle += until - h.clock
		h.clock = until
	}
	return stopped
}

func (h *fake) Read(number int32) ([]byte, Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.op(number)
	if o == nil {
		return nil, ErrInvalid
	}
	if h.pass(max(o.at, h.clock)) {
		return nil, ErrStopped
	}
	if o.request > 0 {
		h.result.Requests[o.request-1].Dropped = false
	}
	return o.message, 0
}

func (h *fake) Drop(number int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ops, number)
}

// parseRequest parses what [Request.text] wrote.
func parseRequest(text []byte) Request {
	head, body, _ := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	r := Request{}
	r.Method, r.URL, _ = strings.Cut(lines[0], " ")
	for _, line := range lines[1:] {
		if r.Header == nil {
			r.Header = Header{}
		}
		name, value, _ := strings.Cut(line, ": ")
		r.Header[name] = append(r.Header[name], value)
	}
	if len(body) > 0 {
		r.Body = slices.Clone(body)
	}
	return r
}

// answerText formats an answer as the host does; nil = there is none.
func answerText(a Answer, more Header) []byte {
	r := a.Response
	if a.Err != nil {
		r = &Response{Header: Header{"error": {string(ReasonConnection)}}, Body: []byte(a.Err.Error())}
		if e, ok := errors.AsType[*ResponseError](a.Err); ok {
			r = &Response{Header: Header{"error": {string(e.Reason)}}, Body: []byte(e.Message)}
		}
	}
	if r == nil {
		return nil
	}
	text := strconv.AppendInt(nil, int64(r.Status), 10)
	for _, header := range []Header{more, r.Header} {
		for name, values := range header {
			for _, value := range values {
				text = append(text, "\n"+strings.ToLower(name)+": "+value...)
			}
		}
	}
	return append(append(text, "\n\n"...), r.Body...)
}

// Payload returns the input of a job that gets this reply, for tests of
// handlers. It does not exist in wasm.
func (r Reply) Payload() []byte {
	return answerText(r.Answer, Header{fieldRequest: {r.ID}, fieldArgs: {base64.StdEncoding.EncodeToString(r.Args)}})
}
