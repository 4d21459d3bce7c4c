package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
)

// fiberMetrics are about fibers.
type fiberMetrics struct {
	started, ended, restarted *prometheus.CounterVec
	limits                    *prometheus.CounterVec
}

func newFiberMetrics() *fiberMetrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &fiberMetrics{
		started:   vec("jobhost_fibers_started_total", "Fibers that began.", "worker"),
		ended:     vec("jobhost_fibers_ended_total", "Fibers that ended, by how: completed, failed or killed.", "worker", "status"),
		restarted: vec("jobhost_fibers_restarted_total", "Fibers that were started again after they had ended.", "worker"),
		limits:    vec("jobhost_fiber_limit_hits_total", "How often a limit of fibers was hit: fibers, input, reader or restarts.", "limit"),
	}
}

func (f *fiberMetrics) register(r *prometheus.Registry) {
	r.MustRegister(f.started, f.ended, f.restarted, f.limits)
}

var fiberLimits = map[fiber.Limit]string{
	fiber.LimitFibers: "fibers", fiber.LimitInput: "input", fiber.LimitReader: "reader", fiber.LimitRestarts: "restarts",
}

// Fibers returns the counters of fibers. Worker names come from the manifest.
func (m *Metrics) Fibers() fiber.Observe {
	f := m.fibers
	return fiber.Observe{
		Started:   func(worker string) { f.started.WithLabelValues(worker).Inc() },
		Ended:     func(worker string, s jobhost.FiberStatus) { f.ended.WithLabelValues(worker, string(s)).Inc() },
		Restarted: func(worker string) { f.restarted.WithLabelValues(worker).Inc() },
		Refused:   func(l fiber.Limit) { f.limits.WithLabelValues(fiberLimits[l]).Inc() },
	}
}
