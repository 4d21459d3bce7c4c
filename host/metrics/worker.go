package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
)

// Worker counts for one worker. Its methods allocate nothing. It is safe for
// concurrent use.
type Worker struct {
	outcomes [outcomeCount]prometheus.Counter
	duration prometheus.Observer
	wait     prometheus.Observer
	replaced map[runtime.Reason]prometheus.Counter // read-only once created
	reset    prometheus.Observer
	fuel     prometheus.Counter
	memory   prometheus.Counter // of limit hits, for all workers together
	guest    *Guest
}

// outcome is the label of jobhost_jobs_total.
type outcome int

const (
	succeeded outcome = iota
	retrying
	dead
	cancelled
	snoozed
	returned
	outcomeCount
)

var outcomeLabels = [outcomeCount]string{"succeeded", "retrying", "dead", "cancelled", "snoozed", "returned"}

// Worker returns the metrics of the worker with that name, always the same.
// Names must come from the manifest: each costs some 60 series for the life of
// the host.
func (m *Metrics) Worker(name string) *Worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.workers[name]; w != nil {
		return w
	}
	w := &Worker{
		duration: m.duration.WithLabelValues(name),
		wait:     m.wait.WithLabelValues(name),
		replaced: make(map[runtime.Reason]prometheus.Counter, len(runtime.Reasons())),
		reset:    m.reset.WithLabelValues(name),
		fuel:     m.fuel.WithLabelValues(name),
		memory:   m.limits[LimitMemory],
		guest:    newGuest(name, m.guests, m.limits[LimitGuestMetrics]),
	}
	for i, label := range outcomeLabels {
		w.outcomes[i] = m.jobs.WithLabelValues(name, label)
	}
	for _, reason := range runtime.Reasons() {
		w.replaced[reason] = m.replaced.WithLabelValues(name, string(reason))
	}
	m.workers[name] = w
	return w
}

// JobDone counts an attempt that ended as kind and left its task in state, with
// the time the task had been ready and the duration of the attempt.
func (w *Worker) JobDone(kind jobhost.OutcomeKind, state jobhost.State, wait, run time.Duration) {
	w.outcomes[outcomeOf(kind, state)].Inc()
	w.wait.Observe(wait.Seconds())
	w.duration.Observe(run.Seconds())
}

func outcomeOf(kind jobhost.OutcomeKind, state jobhost.State) outcome {
	switch kind {
	case jobhost.OutcomeSucceeded:
		return succeeded
	case jobhost.OutcomeSnoozed:
		return snoozed
	case jobhost.OutcomeCancelled:
		return cancelled
	case jobhost.OutcomeReturned:
		return returned
	default: // failed
		if state == jobhost.Dead {
			return dead
		}
		return retrying
	}
}

// Ran counts the effects of a run on its sandbox, and its cost.
func (w *Worker) Ran(r *runtime.Result) {
	w.fuel.Add(float64(r.Outcome.Fuel))
	if c := w.replaced[r.Replace]; c != nil {
		c.Inc()
	}
	if r.Reset > 0 {
		w.reset.Observe(r.Reset.Seconds())
	}
	if r.MemoryRefused {
		w.memory.Inc()
	}
}

// Guest returns the metrics of the worker's guests.
func (w *Worker) Guest() *Guest { return w.guest }
