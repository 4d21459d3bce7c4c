package metrics

import "github.com/prometheus/client_golang/prometheus"

// crashMetrics are about hosts that crashed.
type crashMetrics struct {
	host    *prometheus.GaugeVec
	strikes *prometheus.GaugeVec
}

func newCrashMetrics() *crashMetrics {
	return &crashMetrics{
		host: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobhost_last_host_crashed",
			Help: "1 if the previous host was not stopped but crashed: fatal_error on its own, oom_killed by the kernel, killed from outside.",
		}, []string{"how"}),
		strikes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobhost_worker_strikes",
			Help: "How often a worker has ended the host or a process apart; at 2 it is held until it is resumed or another version.",
		}, []string{"worker"}),
	}
}

// HostCrashed records how the previous host ended, by one of a few words.
func (m *Metrics) HostCrashed(how string) { m.crashes.host.WithLabelValues(how).Set(1) }

// SetStrikes records how often a worker has ended the host.
func (m *Metrics) SetStrikes(worker string, n int) {
	m.crashes.strikes.WithLabelValues(worker).Set(float64(n))
}
