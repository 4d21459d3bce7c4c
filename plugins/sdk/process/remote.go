package process

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// maxRead is how much is read or written at once.
const maxRead = 1 << 20

// remote calls the host over the protocol. Its arguments are copied, since a frame may be sent after
// its call has been abandoned.
type remote struct {
	run  *link.Run
	host *Host

	mu       sync.Mutex // protects the rest
	children map[int32]string
	reported time.Time          // when progress was last reported
	later    *protocol.Progress // not reported yet
}

var _ jobhost.Remote = (*remote)(nil)

// ask sends a call to the host and waits for the answer.
func (r *remote) ask(c *protocol.Call) (*protocol.Answer, jobhost.Errno) {
	a, err := r.run.Call(c)
	if err != nil {
		return nil, jobhost.ErrStopped
	}
	return a, jobhost.Errno(min(a.GetErrno(), 0))
}

func (r *remote) errno(c *protocol.Call) jobhost.Errno {
	_, e := r.ask(c)
	return e
}

// number returns a number, or a negative errno.
func (r *remote) number(c *protocol.Call) int32 {
	a, e := r.ask(c)
	if e != 0 {
		return int32(e)
	}
	return int32(a.GetNumber())
}

// Output implements [jobhost.Remote].
func (r *remote) Output(p []byte) jobhost.Errno {
	for part := range slices.Chunk(p, maxRead) {
		if e := r.errno(&protocol.Call{Call: &protocol.Call_Output{Output: &protocol.Output{Data: bytes.Clone(part)}}}); e != 0 {
			return e
		}
	}
	return 0
}

// Info implements [jobhost.Remote]. The host is only asked for what did not arrive with the task.
func (r *remote) Info(key string) (string, jobhost.Errno) {
	t := r.run.Task
	group, name, _ := strings.Cut(key, ".")
	switch group {
	case "config":
		return value(r.host.Config, name)
	case "label":
		return value(t.GetLabels(), name)
	case "child":
		return r.child(name)
	}
	switch key {
	case "job.id":
		return t.GetJob(), 0
	case "job.task":
		return strconv.Itoa(int(t.GetIndex())), 0
	case "job.tasks":
		return strconv.Itoa(int(t.GetTasks())), 0
	case "job.attempt":
		return strconv.Itoa(int(t.GetAttempt())), 0
	case "job.priority":
		return t.GetPriority(), 0
	case "worker":
		return t.GetWorker(), 0
	case "trace":
		return t.GetTrace(), 0
	}
	a, e := r.ask(&protocol.Call{Call: &protocol.Call_Info{Info: &protocol.Info{Key: key}}})
	return string(a.GetData()), e
}

func value(values map[string]string, name string) (string, jobhost.Errno) {
	if v, ok := values[name]; ok {
		return v, 0
	}
	return "", jobhost.ErrNotFound
}

func (r *remote) child(number string) (string, jobhost.Errno) {
	r.mu.Lock()
	n, _ := strconv.Atoi(number)
	id, ok := r.children[int32(n)]
	r.mu.Unlock()
	if ok {
		return id, 0
	}
	a, e := r.ask(&protocol.Call{Call: &protocol.Call_Info{Info: &protocol.Info{Key: "child." + number}}})
	return string(a.GetData()), e
}

// Submit implements [jobhost.Remote]. The id arrives with the number.
func (r *remote) Submit(text []byte, when int32) int32 {
	a, e := r.ask(&protocol.Call{Call: &protocol.Call_Submit{Submit: &protocol.Submit{Spec: text, When: when}}})
	if e != 0 {
		return int32(e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children == nil {
		r.children = map[int32]string{}
	}
	r.children[int32(a.GetNumber())] = string(a.GetData())
	return int32(a.GetNumber())
}

// Emit implements [jobhost.Remote]. It doesn't wait for the host.
func (r *remote) Emit(p []byte) jobhost.Errno {
	if limit := r.run.Task.GetOutputLimit(); limit > 0 && int64(len(p)) > limit {
		return jobhost.ErrLimit
	}
	r.post(&protocol.Call{Call: &protocol.Call_Emit{Emit: &protocol.Emit{Data: bytes.Clone(p)}}})
	return 0
}

// post sends a call that needs no answer. If that fails the stream has ended, which the next call that
// waits reports.
func (r *remote) post(c *protocol.Call) { _ = r.run.Post(c) }

// Log implements [jobhost.Remote].
func (r *remote) Log(level jobhost.Level, text string) {
	if level >= r.LogLevel() {
		r.post(&protocol.Call{Call: &protocol.Call_Log{Log: &protocol.Log{Level: int32(level), Line: []byte(text[:min(len(text), maxLine)])}}})
	}
}

// maxLine is how much of a line is sent to the host, which cuts it further.
const maxLine = 128 << 10

// LogLevel implements [jobhost.Remote].
func (r *remote) LogLevel() jobhost.Level { return jobhost.Level(r.run.Task.GetLogLevel()) }

// Metric implements [jobhost.Remote].
func (r *remote) Metric(kind int32, name string) int32 {
	return r.number(&protocol.Call{Call: &protocol.Call_Metric{Metric: &protocol.Metric{Kind: kind, Name: name}}})
}

// Observe implements [jobhost.Remote].
func (r *remote) Observe(id int32, value float64) jobhost.Errno {
	return r.errno(&protocol.Call{Call: &protocol.Call_Observe{Observe: &protocol.Observe{Id: id, Value: value}}})
}

// Progress implements [jobhost.Remote]. The host passes on ten reports a second; more are not sent.
func (r *remote) Progress(done, total int64) {
	p := &protocol.Progress{Done: done, Total: total}
	now := time.Now()
	r.mu.Lock()
	if now.Sub(r.reported) < 100*time.Millisecond {
		r.later = p
		r.mu.Unlock()
		return
	}
	r.reported, r.later = now, nil
	r.mu.Unlock()
	r.post(&protocol.Call{Call: &protocol.Call_Progress{Progress: p}})
}

// flush sends the last progress, at the end.
func (r *remote) flush() {
	r.mu.Lock()
	p := r.later
	r.later = nil
	r.mu.Unlock()
	if p != nil {
		r.post(&protocol.Call{Call: &protocol.Call_Progress{Progress: p}})
	}
}

// Remaining implements [jobhost.Remote].
func (r *remote) Remaining() int64 {
	left := time.Until(r.run.Deadline)
	switch {
	case r.run.IsCancelled():
		return int64(jobhost.ErrStopped)
	case r.run.Deadline.IsZero():
		return -1
	case left <= 0:
		return int64(jobhost.ErrStopped)
	}
	return int64((left + time.Millisecond - 1) / time.Millisecond)
}

// KVGet implements [jobhost.Remote].
func (r *remote) KVGet(key string) ([]byte, jobhost.Errno) {
	a, e := r.ask(&protocol.Call{Call: &protocol.Call_KvGet{KvGet: &protocol.KVGet{Key: []byte(key)}}})
	return a.GetData(), e
}

// KVVersion implements [jobhost.Remote].
func (r *remote) KVVersion(key string) int64 {
	a, e := r.ask(&protocol.Call{Call: &protocol.Call_KvGet{KvGet: &protocol.KVGet{Key: []byte(key)}}})
	if e != 0 && e != jobhost.ErrNotFound {
		return int64(e)
	}
	return a.GetNumber()
}

// KVSet implements [jobhost.Remote].
func (r *remote) KVSet(key string, value []byte, ttl int64) jobhost.Errno {
	c := &protocol.KVSet{Key: []byte(key), Value: bytes.Clone(value), TtlMs: ttl}
	return r.errno(&protocol.Call{Call: &protocol.Call_KvSet{KvSet: c}})
}

// KVDelete implements [jobhost.Remote].
func (r *remote) KVDelete(key string) jobhost.Errno {
	return r.errno(&protocol.Call{Call: &protocol.Call_KvDelete{KvDelete: &protocol.KVDelete{Key: []byte(key)}}})
}

// KVAdd implements [jobhost.Remote].
func (r *remote) KVAdd(key string, delta int64) int64 {
	a, e := r.ask(&protocol.Call{Call: &protocol.Call_KvAdd{KvAdd: &protocol.KVAdd{Key: []byte(key), Delta: delta}}})
	if e != 0 {
		return math.MinInt64 - int64(e)
	}
	return a.GetNumber()
}

// KVCompareAndSet implements [jobhost.Remote].
func (r *remote) KVCompareAndSet(key string, version int64, value []byte) jobhost.Errno {
	c := &protocol.KVCompareAndSet{Key: []byte(key), Version: version, Value: bytes.Clone(value)}
	return r.errno(&protocol.Call{Call: &protocol.Call_KvCompareAndSet{KvCompareAndSet: c}})
}

// payload reads the payload from the host.
type payload struct {
	remote *remote
	left   []byte
}

// Read implements [io.Reader].
func (p *payload) Read(b []byte) (int, error) {
	if len(p.left) == 0 && len(b) > 0 {
		a, e := p.remote.ask(&protocol.Call{Call: &protocol.Call_ReadInput{ReadInput: &protocol.ReadInput{Max: maxRead}}})
		switch {
		case e != 0:
			return 0, e
		case len(a.GetData()) == 0:
			return 0, io.EOF
		}
		p.left = a.GetData()
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}
