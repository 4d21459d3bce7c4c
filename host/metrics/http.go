package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobhost/jobhost/netproxy"
)

// httpMetrics are about the requests of guests.
type httpMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	retries  *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	refused  *prometheus.CounterVec
	limits   *prometheus.CounterVec
}

var requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newHTTPMetrics() *httpMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"worker"}, labels...))
	}
	return &httpMetrics{
		requests: counter("jobhost_http_requests_total", "HTTP requests of guests that ended, by the status of the response (2xx) or the reason why there was none.", "outcome"),
		duration: histogramVec("jobhost_http_request_seconds", "How long HTTP requests took, retries and redirects included.", requestBuckets),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobhost_http_in_flight", Help: "HTTP requests that are under way.",
		}, []string{"worker"}),
		retries: counter("jobhost_http_retries_total", "HTTP requests that were sent again."),
		bytes:   counter("jobhost_http_bytes_total", "Bytes of bodies of HTTP requests and, decoded, of responses.", "direction"),
		refused: counter("jobhost_http_refused_total", "HTTP requests that were not taken: exhausted, when there was no room, or closed.", "reason"),
		limits:  counter("jobhost_http_limit_hits_total", "How often a limit of HTTP requests was hit.", "limit"),
	}
}

func (h *httpMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{h.requests, h.duration, h.inFlight, h.retries, h.bytes, h.refused, h.limits}
}

// HTTP returns the observer of the requests of a worker's guests. Names must come
// from the manifest.
func (m *Metrics) HTTP(worker string) netproxy.Observer {
	h := m.http
	return &httpObserver{
		requests: h.requests.MustCurryWith(prometheus.Labels{"worker": worker}),
		refused:  h.refused.MustCurryWith(prometheus.Labels{"worker": worker}),
		limits:   h.limits.MustCurryWith(prometheus.Labels{"worker": worker}),
		duration: h.duration.WithLabelValues(worker),
		inFlight: h.inFlight.WithLabelValues(worker),
		retries:  h.retries.WithLabelValues(worker),
		sent:     h.bytes.WithLabelValues(worker, "sent"),
		received: h.bytes.WithLabelValues(worker, "received"),
	}
}

// httpObserver implements [netproxy.Observer]. Codes, classes of statuses, reasons
// and names of limits are fixed lists.
type httpObserver struct {
	requests, refused, limits *prometheus.CounterVec
	duration                  prometheus.Observer
	inFlight                  prometheus.Gauge
	retries, sent, received   prometheus.Counter
}

// Started implements [netproxy.Observer].
func (o *httpObserver) Started(*netproxy.Request) { o.inFlight.Inc() }

// Ended implements [netproxy.Observer].
func (o *httpObserver) Ended(_ *netproxy.Request, s netproxy.Summary) {
	o.inFlight.Dec()
	outcome := string(s.Code)
	if outcome == "" {
		outcome = strconv.Itoa(s.Status/100) + "xx"
	}
	o.requests.WithLabelValues(outcome).Inc()
	o.duration.Observe(s.Duration.Seconds())
	o.retries.Add(float64(s.Retries))
	o.sent.Add(float64(s.Sent))
	o.received.Add(float64(s.Received))
}

// Refused implements [netproxy.Observer].
func (o *httpObserver) Refused(_ *netproxy.Task, code string) {
	o.refused.WithLabelValues(code).Inc()
}

// Limit implements [netproxy.Observer].
func (o *httpObserver) Limit(name string) { o.limits.WithLabelValues(name).Inc() }
