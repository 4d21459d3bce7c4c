package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost/state"
)

// stateMetrics are about states that tasks report.
type stateMetrics struct {
	opened                             *prometheus.CounterVec
	replay, delivery, write            prometheus.Histogram
	errors, dropped, slow, missed, new prometheus.Counter
}

func newStateMetrics() *stateMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: stateBuckets})
	}
	return &stateMetrics{
		opened: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_state_cache_total", Help: "Uses of a job's states: hit, when they were in memory, or miss.",
		}, []string{"result"}),
		replay:   seconds("jobhost_state_replay_seconds", "How long it took to gather what a watcher begins with."),
		delivery: seconds("jobhost_state_delivery_seconds", "From the store's time of a change to its watchers."),
		write:    seconds("jobhost_state_write_seconds", "How long writes of states took, failed ones too."),
		errors:   counter("jobhost_state_write_errors_total", "Writes of states that failed."),
		dropped:  counter("jobhost_state_dropped_total", "Events that watchers had not read when they left."),
		slow:     counter("jobhost_state_slow_total", "Watchers that were ended since they did not read as fast as states changed."),
		missed:   counter("jobhost_state_version_drift_total", "Versions of states that were never seen."),
		new:      counter("jobhost_state_reconnects_total", "How often a store had to reconnect its listeners."),
	}
}

var stateBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}

func (s *stateMetrics) register(r *prometheus.Registry) {
	r.MustRegister(s.opened, s.replay, s.delivery, s.write, s.errors, s.dropped, s.slow, s.missed, s.new)
}

// States returns the observer of operations on states.
func (m *Metrics) States() state.Observer {
	s := m.states
	hit, miss := s.opened.WithLabelValues("hit"), s.opened.WithLabelValues("miss")
	return state.Observer{
		Opened: func(was bool) {
			if was {
				hit.Inc()
			} else {
				miss.Inc()
			}
		},
		Replayed:  func(took time.Duration) { s.replay.Observe(took.Seconds()) },
		Delivered: func(took time.Duration) { s.delivery.Observe(took.Seconds()) },
		Wrote: func(took time.Duration, err error) {
			s.write.Observe(took.Seconds())
			if err != nil {
				s.errors.Inc()
			}
		},
		Dropped:     func(events int) { s.dropped.Add(float64(events)) },
		Slow:        s.slow.Inc,
		Drift:       func(versions int64) { s.missed.Add(float64(versions)) },
		Reconnected: s.new.Inc,
	}
}
