package workertest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost/netproxy/policy"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// box is the environment of one attempt: it answers what leaves the sandbox as the case
// says, and records it. It is used by the guest's goroutine, and after that has ended
// by the comparison.
type box struct {
	test *Case
	at   *hostcall.Attempt
	stop context.CancelCauseFunc // of the run

	// policy says where the worker may go; nil = anywhere the case answers.
	policy *policy.Policy
	// noHTTP: the manifest grants no requests.
	noHTTP       bool
	maxResponse  int64
	skipped      time.Duration // by which the clock is ahead
	keys         map[string]*key
	version      int64
	emitted      [][]byte
	emittedMore  bool // than are kept
	progress     [2]int64
	submitted    []submitted
	deferred     []deferredRequest
	ended        int // of test.Children that were delivered
	metrics      []*metric
	states       []GivenState
	watches      []*stream
	inbox        *stream
	unanswered   []string // requests without a mock
	notes        []string
	deadlineNote bool
}

var (
	_ hostcall.Services = (*box)(nil)
	_ hostcall.KV       = (*box)(nil)
	_ hostcall.Jobs     = (*box)(nil)
	_ hostcall.Ops      = (*box)(nil)
	_ hostcall.HTTP     = (*box)(nil)
	_ hostcall.States   = (*box)(nil)
	_ hostcall.Inbox    = (*box)(nil)
)

func newBox(c *Case, at *hostcall.Attempt, stop context.CancelCauseFunc) *box {
	b := &box{test: c, at: at, stop: stop}
	b.fillKeys()
	b.states = append(b.states, c.States...)
	for _, m := range c.Requests {
		m.used = 0
	}
	return b
}

// notef adds a note that may explain a difference.
func (b *box) notef(format string, args ...any) {
	const most = 20
	if len(b.notes) < most {
		b.notes = append(b.notes, fmt.Sprintf(format, args...))
	}
}

// maxKept bounds the messages, jobs, metrics and requests that are kept of one attempt.
const maxKept = 10_000

// Emit implements [hostcall.Services].
func (b *box) Emit(_ *hostcall.Attempt, data []byte) {
	if len(b.emitted) == maxKept {
		if !b.emittedMore {
			b.emittedMore = true
			b.notef("only the first %d messages are looked at", maxKept)
		}
		return
	}
	b.emitted = append(b.emitted, bytes.Clone(data))
}

// Progress implements [hostcall.Services].
func (b *box) Progress(_ *hostcall.Attempt, done, total int64) { b.progress = [2]int64{done, total} }

// metric is a metric of the worker: the sum of a counter or histogram, the last
// value of a gauge.
type metric struct {
	name  string
	kind  hostcall.MetricKind
	value float64
	count int64
}

// metricKinds are the names of the kinds, by their numbers.
var metricKinds = []string{hostcall.Counter: "counter", hostcall.Gauge: "gauge", hostcall.Histogram: "histogram"}

// Metric implements [hostcall.Services].
func (b *box) Metric(_ *hostcall.Attempt, kind hostcall.MetricKind, name string) (int32, hostcall.Errno) {
	parsed, err := hostcall.ParseMetric(name)
	if err != nil {
		b.notef("metric %q: %v", name, err)
		return 0, hostcall.ErrInvalid
	}
	name = parsed.String()
	for i, m := range b.metrics {
		if m.name == name && m.kind == kind {
			return int32(i), hostcall.OK
		}
	}
	if len(b.metrics) == maxKept {
		return 0, hostcall.ErrLimit
	}
	b.metrics = append(b.metrics, &metric{name: name, kind: kind})
	return int32(len(b.metrics) - 1), hostcall.OK
}

// Observe implements [hostcall.Services].
func (b *box) Observe(_ *hostcall.Attempt, id int32, v float64) hostcall.Errno {
	if id < 0 || int(id) >= len(b.metrics) {
		return hostcall.ErrInvalid
	}
	m := b.metrics[id]
	switch {
	case m.kind == hostcall.Gauge:
		m.value = v
	case m.kind == hostcall.Counter && v < 0:
		return hostcall.ErrInvalid
	default:
		m.value += v
	}
	m.count++
	return hostcall.OK
}
