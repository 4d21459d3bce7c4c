package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost"
)

// Source provides the state of queues and pools. It is read at each scrape, by
// several at a time, and should answer from memory.
type Source interface {
	// QueueStats returns the numbers of each worker once.
	QueueStats() []WorkerStats
}

// WorkerStats are the numbers of one worker.
type WorkerStats struct {
	Worker string
	// Tasks counts unfinished tasks by state and priority level.
	Tasks StateLevels
	// Oldest is how long the oldest ready task has waited; 0 = none is waiting.
	Oldest time.Duration
	// Slots is the size of the pool and Busy the number of slots running a task.
	Slots, Busy int
	// Breaker is the worker's circuit breaker; nil = none.
	Breaker *jobhost.BreakerStatus
	// Dead counts the dead tasks that are kept.
	Dead int64
}

// StateLevels counts tasks by state and priority level.
type StateLevels [jobhost.Cancelled + 1][jobhost.Levels]int64

// sourceCollector turns a source into metrics.
type sourceCollector struct {
	source                                     atomic.Pointer[Source]
	tasks, oldest, slots, deadEntries, breaker *prometheus.Desc
}

func newSourceCollector() *sourceCollector {
	return &sourceCollector{
		tasks:       prometheus.NewDesc("jobhost_queue_tasks", "Tasks that have not ended.", []string{"worker", "state", "priority"}, nil),
		oldest:      prometheus.NewDesc("jobhost_queue_oldest_seconds", "How long the oldest ready task has waited.", []string{"worker"}, nil),
		slots:       prometheus.NewDesc("jobhost_pool_slots", "Slots of the pool.", []string{"worker", "state"}, nil),
		breaker:     prometheus.NewDesc("jobhost_breaker_state", "Where the worker's circuit breaker stands: 0 closed, 1 half open, 2 open.", []string{"worker", "breaker"}, nil),
		deadEntries: prometheus.NewDesc("jobhost_dead_tasks", "Dead tasks that are kept.", []string{"worker"}, nil),
	}
}

var breakerValues = map[jobhost.BreakerState]float64{
	jobhost.BreakerClosed: 0, jobhost.BreakerHalfOpen: 1, jobhost.BreakerOpen: 2,
}

func (c *sourceCollector) set(s Source) { c.source.Store(&s) }

// Describe implements [prometheus.Collector].
func (c *sourceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.tasks, c.oldest, c.slots, c.deadEntries, c.breaker} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *sourceCollector) Collect(ch chan<- prometheus.Metric) {
	source := c.source.Load()
	if source == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, w := range (*source).QueueStats() {
		for _, state := range jobhost.States() {
			if state.Ended() {
				continue
			}
			for level, n := range w.Tasks[state] {
				gauge(c.tasks, float64(n), w.Worker, state.String(), strconv.Itoa(level))
			}
		}
		gauge(c.oldest, w.Oldest.Seconds(), w.Worker)
		gauge(c.slots, float64(w.Busy), w.Worker, "busy")
		gauge(c.slots, float64(max(w.Slots-w.Busy, 0)), w.Worker, "idle")
		if b := w.Breaker; b != nil {
			gauge(c.breaker, breakerValues[b.State], w.Worker, b.Key)
		}
		gauge(c.deadEntries, float64(w.Dead), w.Worker)
	}
}
