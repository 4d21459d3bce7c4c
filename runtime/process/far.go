package process

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// far carries the calls of a guest in a sandbox process to the host. It implements [hostcall.Services] and
// [hostcall.Far]. A call without an answer, because the attempt was stopped, returns ErrStopped. Guest memory
// is copied, since a frame may be sent after its call has been abandoned.
type far struct{ run asker }

// asker is a run as seen from the sandbox process.
type asker interface {
	Call(c *protocol.Call) (*protocol.Answer, error)
	Post(c *protocol.Call) error
}

var (
	_ hostcall.Far      = (*far)(nil)
	_ hostcall.Contents = (*far)(nil)
	_ asker             = (*link.Run)(nil)
)

// ask sends a call to the host.
func (f *far) ask(c *protocol.Call) (*protocol.Answer, hostcall.Errno) {
	a, err := f.run.Call(c)
	if err != nil {
		return nil, hostcall.ErrStopped
	}
	return a, hostcall.Errno(min(a.GetErrno(), 0))
}

// number sends a call that returns a number.
func (f *far) number(c *protocol.Call) (int32, hostcall.Errno) {
	a, e := f.ask(c)
	return int32(a.GetNumber()), e
}

// errno sends a call that returns nothing else.
func (f *far) errno(c *protocol.Call) hostcall.Errno {
	_, e := f.ask(c)
	return e
}

// Emit implements [hostcall.Services].
func (f *far) Emit(_ *hostcall.Attempt, data []byte) {
	_ = f.run.Post(&protocol.Call{Call: &protocol.Call_Emit{Emit: &protocol.Emit{Data: bytes.Clone(data)}}})
}

// Progress implements [hostcall.Services].
func (f *far) Progress(_ *hostcall.Attempt, done, total int64) {
	_ = f.run.Post(&protocol.Call{Call: &protocol.Call_Progress{Progress: &protocol.Progress{Done: done, Total: total}}})
}

// Metric implements [hostcall.Services].
func (f *far) Metric(_ *hostcall.Attempt, kind hostcall.MetricKind, name string) (int32, hostcall.Errno) {
	return f.number(&protocol.Call{Call: &protocol.Call_Metric{Metric: &protocol.Metric{Kind: int32(kind), Name: name}}})
}

// Observe implements [hostcall.Services].
func (f *far) Observe(_ *hostcall.Attempt, id int32, value float64) hostcall.Errno {
	return f.errno(&protocol.Call{Call: &protocol.Call_Observe{Observe: &protocol.Observe{Id: id, Value: value}}})
}

// OpenInput implements [hostcall.Contents].
func (f *far) OpenInput(*hostcall.Attempt) (io.Reader, error) { return &farInput{far: f}, nil }

// Spill implements [hostcall.Contents].
func (f *far) Spill(*hostcall.Attempt) (io.Writer, error) { return farOutput{f}, nil }

// farInput reads the payload from the host.
type farInput struct {
	far  *far
	left []byte
}

// Read implements [io.Reader].
func (r *farInput) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		a, e := r.far.ask(&protocol.Call{Call: &protocol.Call_ReadInput{ReadInput: &protocol.ReadInput{Max: maxRead}}})
		switch {
		case e != hostcall.OK:
			return 0, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "read the payload: " + a.GetError()}
		case len(a.GetData()) == 0:
			return 0, io.EOF
		}
		r.left = a.GetData()
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// farOutput writes the result to the host.
type farOutput struct{ far *far }

// Write implements [io.Writer].
func (w farOutput) Write(p []byte) (int, error) {
	for part := range slices.Chunk(p, maxRead) {
		if e := w.far.errno(&protocol.Call{Call: &protocol.Call_Output{Output: &protocol.Output{Data: bytes.Clone(part)}}}); e != hostcall.OK {
			return 0, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the result could not be stored"}
		}
	}
	return len(p), nil
}

// Info implements [hostcall.FarJob].
func (f *far) Info(key string) (string, hostcall.Errno) {
	if !utf8.ValidString(key) { // no key is like this, and it can't be sent
		if strings.HasPrefix(key, "secret.") {
			return "", hostcall.ErrDenied
		}
		return "", hostcall.ErrNotFound
	}
	a, e := f.ask(&protocol.Call{Call: &protocol.Call_Info{Info: &protocol.Info{Key: key}}})
	return string(a.GetData()), e
}

// Log implements [hostcall.FarJob].
func (f *far) Log(level slog.Level, msg []byte) {
	msg = bytes.Clone(msg[:min(len(msg), maxLogLine)])
	_ = f.run.Post(&protocol.Call{Call: &protocol.Call_Log{Log: &protocol.Log{Level: int32(level), Line: msg}}})
}

// maxLogLine is how much of a line is sent to the host, which cuts it further.
const maxLogLine = 128 << 10

// Submit implements [hostcall.FarJob].
func (f *far) Submit(text []byte, when hostcall.SubmitTime) (int32, hostcall.Errno) {
	return f.number(&protocol.Call{Call: &protocol.Call_Submit{Submit: &protocol.Submit{Spec: bytes.Clone(text), When: int32(when)}}})
}

// KVGet implements [hostcall.FarKV].
func (f *far) KVGet(key []byte) ([]byte, int64, hostcall.Errno) {
	a, e := f.ask(&protocol.Call{Call: &protocol.Call_KvGet{KvGet: &protocol.KVGet{Key: bytes.Clone(key)}}})
	return a.GetData(), a.GetNumber(), e
}

// KVSet implements [hostcall.FarKV].
func (f *far) KVSet(key, value []byte, ttl int64) hostcall.Errno {
	return f.errno(&protocol.Call{Call: &protocol.Call_KvSet{KvSet: &protocol.KVSet{Key: bytes.Clone(key), Value: bytes.Clone(value), TtlMs: ttl}}})
}

// KVDelete implements [hostcall.FarKV].
func (f *far) KVDelete(key []byte) hostcall.Errno {
	return f.errno(&protocol.Call{Call: &protocol.Call_KvDelete{KvDelete: &protocol.KVDelete{Key: bytes.Clone(key)}}})
}

// KVAdd implements [hostcall.FarKV].
func (f *far) KVAdd(key []byte, delta int64) (int64, hostcall.Errno) {
	a, e := f.ask(&protocol.Call{Call: &protocol.Call_KvAdd{KvAdd: &protocol.KVAdd{Key: bytes.Clone(key), Delta: delta}}})
	return a.GetNumber(), e
}

// KVCompareAndSet implements [hostcall.FarKV].
func (f *far) KVCompareAndSet(key []byte, version int64, value []byte) hostcall.Errno {
	c := &protocol.KVCompareAndSet{Key: bytes.Clone(key), Version: version, Value: bytes.Clone(value)}
	return f.errno(&protocol.Call{Call: &protocol.Call_KvCompareAndSet{KvCompareAndSet: c}})
}

// SetState implements [hostcall.FarStates].
func (f *far) SetState(_ context.Context, tag string, status int32, message, payload []byte) hostcall.Errno {
	s := &protocol.StateSet{Tag: tag, Status: status, Message: bytes.Clone(message), Payload: bytes.Clone(payload)}
	return f.errno(&protocol.Call{Call: &protocol.Call_StateSet{StateSet: s}})
}

// State implements [hostcall.FarStates].
func (f *far) State(_ context.Context, task int32, tag string) ([]byte, hostcall.Errno) {
	a, e := f.ask(&protocol.Call{Call: &protocol.Call_StateGet{StateGet: &protocol.StateGet{Task: task, Tag: tag}}})
	return a.GetData(), e
}

// WatchState implements [hostcall.FarStates].
func (f *far) WatchState(_ context.Context, task int32, tag string) (int32, hostcall.Errno) {
	return f.number(&protocol.Call{Call: &protocol.Call_StateWatch{StateWatch: &protocol.StateWatch{Task: task, Tag: tag}}})
}

// Send implements [hostcall.FarOps].
func (f *far) Send(text []byte) (int32, hostcall.Errno) {
	return f.number(&protocol.Call{Call: &protocol.Call_Http{Http: &protocol.HTTP{Request: bytes.Clone(text)}}})
}

// Fetch implements [hostcall.FarOps].
func (f *far) Fetch(_ context.Context, r *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
	c := &protocol.Fetch{Request: hostcall.AppendRequest(nil, r), MaxBytes: r.MaxBytes}
	a, e := f.ask(&protocol.Call{Call: &protocol.Call_Fetch{Fetch: c}})
	if e != hostcall.OK {
		code, message := jobhost.Code(a.GetCode()), a.GetError()
		if message == "" {
			code, message = jobhost.CodeUnavailable, "there was no response"
		}
		return nil, &jobhost.Error{Code: code, Field: a.GetField(), Message: message}
	}
	return parseResponse(a.GetData()), nil
}

// parseResponse reads a response as the host has written it.
func parseResponse(text []byte) *hostcall.HTTPResponse {
	head, body, _ := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	r := &hostcall.HTTPResponse{Header: map[string][]string{}, Body: body}
	r.Status, _ = strconv.Atoi(lines[0])
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		name = http.CanonicalHeaderKey(name)
		r.Header[name] = append(r.Header[name], value)
	}
	return r
}

// Defer implements [hostcall.FarOps].
func (f *far) Defer(text []byte, entry string, args []byte) (int32, hostcall.Errno) {
	c := &protocol.HTTPDefer{Request: bytes.Clone(text), Entry: entry, Args: bytes.Clone(args)}
	return f.number(&protocol.Call{Call: &protocol.Call_HttpDefer{HttpDefer: c}})
}

// Timer implements [hostcall.FarOps].
func (f *far) Timer(ms int64) (int32, hostcall.Errno) {
	return f.number(&protocol.Call{Call: &protocol.Call_Timer{Timer: &protocol.Timer{Ms: ms}}})
}

// Receive implements [hostcall.FarOps].
func (f *far) Receive() (int32, hostcall.Errno) {
	return f.number(&protocol.Call{Call: &protocol.Call_Receive{Receive: &protocol.Receive{}}})
}

// Wait implements [hostcall.FarOps].
func (f *far) Wait(_ context.Context, numbers []int32, timeout int64) (int32, hostcall.Errno) {
	return f.number(&protocol.Call{Call: &protocol.Call_Wait{Wait: &protocol.Wait{Handles: slices.Clone(numbers), TimeoutMs: timeout}}})
}

// Read implements [hostcall.FarOps].
func (f *far) Read(_ context.Context, number int32, buf []byte) (int, hostcall.Errno) {
	a, e := f.ask(&protocol.Call{Call: &protocol.Call_Read{Read: &protocol.Read{Handle: number, Max: int32(min(len(buf), maxRead))}}})
	if len(buf) == 0 {
		return int(a.GetNumber()), e
	}
	return copy(buf, a.GetData()), e
}

// Drop implements [hostcall.FarOps].
func (f *far) Drop(number int32) hostcall.Errno {
	return f.errno(&protocol.Call{Call: &protocol.Call_Drop{Drop: &protocol.Drop{Handle: number}}})
}
