package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost"
)

// Workflows counts workflow events. Names come from definitions, which anyone who may start a workflow
// can send along, so their number is limited: the rest is counted under [otherNames].
type Workflows struct {
	open     *prometheus.GaugeVec
	ended    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	steps    *prometheus.CounterVec
	took     *prometheus.HistogramVec

	mu    sync.Mutex // protects names
	names map[[2]string]struct{}
}

const (
	mostNames  = 2_000 // of workflows and their steps together
	otherNames = "_other"
)

func newWorkflows() *Workflows {
	named := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: waitBuckets}, []string{"workflow"})
	}
	return &Workflows{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobhost_workflows_open", Help: "Workflows that run.",
		}, []string{"workflow"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_workflows_total", Help: "Workflows that ended, by their status.",
		}, []string{"workflow", "status"}),
		duration: named("jobhost_workflow_duration_seconds", "How long workflows took from their start to their end."),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_workflow_steps_total", Help: "Steps of workflows that ended, by their status.",
		}, []string{"workflow", "step", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "jobhost_workflow_step_duration_seconds", Help: "How long the jobs of steps took, from their submit to their end.", Buckets: waitBuckets,
		}, []string{"workflow", "step"}),
		names: map[[2]string]struct{}{},
	}
}

func (w *Workflows) register(r *prometheus.Registry) {
	r.MustRegister(w.open, w.ended, w.duration, w.steps, w.took)
}

// Workflows returns the metrics of workflows.
func (m *Metrics) Workflows() *Workflows { return m.workflows }

// known returns the names under which to count.
func (w *Workflows) known(name, step string) (string, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := [2]string{name, step}
	if _, ok := w.names[key]; ok {
		return name, step
	}
	if len(w.names) >= mostNames {
		return otherNames, otherNames
	}
	w.names[key] = struct{}{}
	return name, step
}

// Open adds n to the number of running workflows.
func (w *Workflows) Open(name string, n int64) {
	name, _ = w.known(name, "")
	w.open.WithLabelValues(name).Add(float64(n))
}

// WorkflowStarted counts a start.
func (w *Workflows) WorkflowStarted(name string) { w.Open(name, 1) }

// WorkflowResumed counts a failed workflow that continues.
func (w *Workflows) WorkflowResumed(name string) { w.Open(name, 1) }

// WorkflowEnded counts an end.
func (w *Workflows) WorkflowEnded(name string, status jobhost.WorkflowStatus, took time.Duration) {
	w.Open(name, -1)
	name, _ = w.known(name, "")
	w.ended.WithLabelValues(name, string(status)).Inc()
	w.duration.WithLabelValues(name).Observe(took.Seconds())
}

// StepEnded counts the end of a step; took 0 = it had no job.
func (w *Workflows) StepEnded(workflow, step string, status jobhost.StepStatus, took time.Duration) {
	workflow, step = w.known(workflow, step)
	w.steps.WithLabelValues(workflow, step, string(status)).Inc()
	if took > 0 {
		w.took.WithLabelValues(workflow, step).Observe(took.Seconds())
	}
}
