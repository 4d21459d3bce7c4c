package metrics

import "github.com/prometheus/client_golang/prometheus"

// Processes are the metrics of worker processes.
type Processes struct {
	running *prometheus.GaugeVec
	ends    *prometheus.CounterVec
}

func newProcesses() *Processes {
	return &Processes{
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobhost_processes", Help: "Processes that run workers at the moment.",
		}, []string{"worker"}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobhost_process_ends_total",
			Help: "Processes of workers that have ended: closed when they were not needed any more, crashed by themselves, killed since an attempt did not end in time, or hung.",
		}, []string{"worker", "reason"}),
	}
}

// Processes returns the metrics of worker processes.
func (m *Metrics) Processes() *Processes { return m.processes }

// Started counts the start of a process.
func (p *Processes) Started(worker string, _ int) { p.running.WithLabelValues(worker).Inc() }

// Ended counts the end of a process, by a reason from a short list.
func (p *Processes) Ended(worker, reason string) {
	p.running.WithLabelValues(worker).Dec()
	p.ends.WithLabelValues(worker, reason).Inc()
}
