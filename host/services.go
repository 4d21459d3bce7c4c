package host

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// services joins the guests of one worker to the host: what leaves a sandbox
// goes through here. It implements [hostcall.Services].
type services struct {
	host  *Host
	guest *metrics.Guest
	now   func() time.Time // of the queue, so that the events of a job are in order
}

// Emit publishes what a guest put out.
func (s *services) Emit(at *hostcall.Attempt, data []byte) {
	s.publish(at, jobhost.Event{Kind: jobhost.EventOutput, Data: append([]byte(nil), data...)})
}

// Progress publishes how far an attempt is.
func (s *services) Progress(at *hostcall.Attempt, done, total int64) {
	s.publish(at, jobhost.Event{Kind: jobhost.EventProgress, Done: done, Total: total})
}

func (s *services) publish(at *hostcall.Attempt, e jobhost.Event) {
	e.Time, e.State = s.now(), jobhost.Running
	e.Job, e.Worker, e.Task, e.Attempt = at.Job, at.Worker, at.Task, at.Number
	s.host.publish(e)
}

// Metric finds or makes a metric of the worker.
func (s *services) Metric(_ *hostcall.Attempt, kind hostcall.MetricKind, name string) (int32, hostcall.Errno) {
	return s.guest.Metric(kind, name)
}

// Observe feeds a metric of the worker.
func (s *services) Observe(_ *hostcall.Attempt, id int32, value float64) hostcall.Errno {
	return s.guest.Observe(id, value)
}
