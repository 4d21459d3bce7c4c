package metrics

import "github.com/prometheus/client_golang/prometheus"

// crashMetrics tell of hosts that have died.
type crashMetrics struct {
	host    *prometheus.GaugeVec
	strikes *prometheus.GaugeVec
}

func newCrashMetrics() *crashMetrics {
	return &crashMetrics{
		host: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobhost_last_host_crashed",
			Help: "1 when the host before this one was not stopped but ended: fatal_error by itself, oom_killed by the kernel, killed from outside.",
		}, []string{"how"}),
		strikes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobhost_worker_strikes",
			Help: "How often a worker has ended the host or a process apart; at 2 it is held until it is resumed or another version.",
		}, []string{"worker"}),
	}
}

// HostCrashed says that the host before this one has ended in some way of a short list.
func (m *Metrics) HostCrashed(how string) { m.crashes.host.WithLabelValues(how).Set(1) }

// SetStrikes says how often a worker has ended the host.
func (m *Metrics) SetStrikes(worker string, n int) {
	m.crashes.strikes.WithLabelValues(worker).Set(float64(n))
}
