package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost"
)

// Worker counts for one worker. Its methods allocate nothing and may be called
// from many goroutines.
type Worker struct {
	outcomes [outcomeCount]prometheus.Counter
	duration prometheus.Observer
	wait     prometheus.Observer
	replaced map[string]prometheus.Counter // by reason; not changed after it was made
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

// otherReason stands for all reasons that are not known.
const otherReason = "other"

// reasons are why sandboxes are replaced: the codes of the host's failures. A
// worker chooses its own codes, so others must not become labels.
var reasons = []string{
	jobhost.FailTrap, jobhost.FailExit, jobhost.FailTimeout, jobhost.FailOutputTooLarge, jobhost.FailBadResult,
	jobhost.FailNoEntry, jobhost.FailStart, jobhost.FailInternal, jobhost.FailWorker, otherReason,
}

// Worker returns the metrics of the worker of that name, the same each time.
// Names must come from the manifest: each costs some 60 series for ever.
func (m *Metrics) Worker(name string) *Worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.workers[name]; w != nil {
		return w
	}
	w := &Worker{
		duration: m.duration.WithLabelValues(name),
		wait:     m.wait.WithLabelValues(name),
		replaced: make(map[string]prometheus.Counter, len(reasons)),
		guest:    newGuest(name, m.guests, m.limits[LimitGuestMetrics]),
	}
	for i, label := range outcomeLabels {
		w.outcomes[i] = m.jobs.WithLabelValues(name, label)
	}
	for _, reason := range reasons {
		w.replaced[reason] = m.replaced.WithLabelValues(name, reason)
	}
	m.workers[name] = w
	return w
}

// JobDone counts an attempt that ended as kind and left its task in state,
// after the task had been ready for wait and the attempt had run for run.
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

// SandboxReplaced counts a sandbox that was thrown away. The reason is the
// code of the failure that broke it; those that are not the host's own are
// counted as "other".
func (w *Worker) SandboxReplaced(reason string) {
	c := w.replaced[reason]
	if c == nil {
		c = w.replaced[otherReason]
	}
	c.Inc()
}

// Guest returns the metrics that the worker's guests keep.
func (w *Worker) Guest() *Guest { return w.guest }
