package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func newFires() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobhost_schedule_fires_total",
		Help: "Ticks of schedules, by what became of them: fired, caught_up, queued, skipped, missed, duplicate or refused (and tried again); manual ones have no tick.",
	}, []string{"schedule", "outcome"})
}

func newLateness() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "jobhost_schedule_lateness_seconds", Help: "How long after their tick jobs of schedules were submitted.", Buckets: waitBuckets,
	}, []string{"schedule"})
}

// ScheduleTicks counts the outcome of n ticks of a schedule of the manifest.
func (m *Metrics) ScheduleTicks(schedule, outcome string, n int) {
	m.fires.WithLabelValues(schedule, outcome).Add(float64(n))
}

// ScheduleLate records the delay between a tick and the submit of its job.
func (m *Metrics) ScheduleLate(schedule string, late time.Duration) {
	m.lateness.WithLabelValues(schedule).Observe(late.Seconds())
}
