package jobhost

import "strings"

// Kinds of metrics, as the ABI numbers them.
const (
	kindCounter   = 1
	kindGauge     = 2
	kindHistogram = 3
)

// metric is a metric's id, or the errno that says why there is none.
type metric struct {
	host host
	id   int32
}

func (m metric) observe(value float64) error {
	if m.id < 0 {
		return failed("define metric", Errno(m.id))
	}
	return failed("observe metric", m.host.Observe(m.id, value))
}

// Counter counts something that only increases.
type Counter struct{ m metric }

// Add adds to the counter.
func (c Counter) Add(n float64) error { return c.m.observe(n) }

// Gauge is a value that goes up and down.
type Gauge struct{ m metric }

// Set sets the gauge.
func (g Gauge) Set(value float64) error { return g.m.observe(value) }

// Histogram shows how values are spread.
type Histogram struct{ m metric }

// Observe counts a value.
func (h Histogram) Observe(value float64) error { return h.m.observe(value) }

// Counter returns a counter of the worker. labels are alternating names and values:
//
//	job.Counter("requests", "class", "5xx").Add(1)
//
// Names consist of letters, digits and underscores. The host adds a prefix and
// the worker's name, and limits the number of metrics. Every use of a metric
// that the host refuses returns the reason; a worker may ignore it. Get metrics
// once per job rather than once per value: it is a host call.
func (j *Job) Counter(name string, labels ...string) Counter {
	return Counter{j.metric(kindCounter, name, labels)}
}

// Gauge returns a gauge of the worker; see [Job.Counter].
func (j *Job) Gauge(name string, labels ...string) Gauge {
	return Gauge{j.metric(kindGauge, name, labels)}
}

// Histogram returns a histogram of the worker; see [Job.Counter].
func (j *Job) Histogram(name string, labels ...string) Histogram {
	return Histogram{j.metric(kindHistogram, name, labels)}
}

func (j *Job) metric(kind int32, name string, labels []string) metric {
	if len(labels)%2 != 0 {
		return metric{j.host, int32(ErrInvalid)}
	}
	return metric{j.host, j.host.Metric(kind, metricName(name, labels))}
}

// metricName formats a metric as Prometheus does: requests{class="5xx"}.
func metricName(name string, labels []string) string {
	if len(labels) == 0 {
		return name
	}
	var b strings.Builder
	b.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(labels[i])
		b.WriteString(`="`)
		for _, c := range []byte(labels[i+1]) {
			switch c {
			case '\\', '"':
				b.WriteByte('\\')
			case '\n':
				b.WriteByte('\\')
				c = 'n'
			}
			b.WriteByte(c)
		}
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}
