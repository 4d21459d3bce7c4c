package metrics

import "github.com/prometheus/client_golang/prometheus"

// Processes are the metrics of processes that run workers.
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

// Processes returns what is told of the processes of workers.
func (m *Metrics) Processes() *Processes { return m.processes }

// Started counts a process.
func (p *Processes) Started(worker string, _ int) { p.running.WithLabelValues(worker).Inc() }

// Ended counts the end of one, by a reason of a short list.
func (p *Processes) Ended(worker, reason string) {
	p.running.WithLabelValues(worker).Dec()
	p.ends.WithLabelValues(worker, reason).Inc()
}
