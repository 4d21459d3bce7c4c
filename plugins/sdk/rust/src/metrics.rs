use std::fmt::Write;

use crate::error::{answer, Error};
use crate::{host, Job};

/// Metric is a metric's id, or the errno why there is none.
#[derive(Clone, Copy)]
struct Metric(i32);

impl Metric {
    fn observe(self, value: f64) -> Result<(), Error> {
        let id = answer(self.0, "define metric")?;
        answer(host::observe(id, value), "observe metric").map(|_| ())
    }
}

/// Counter counts something that only gets more.
#[derive(Clone, Copy)]
pub struct Counter(Metric);

impl Counter {
    /// Adds to the counter.
    pub fn add(&self, n: f64) -> Result<(), Error> {
        self.0.observe(n)
    }
}

/// Gauge is a value that goes up and down.
#[derive(Clone, Copy)]
pub struct Gauge(Metric);

impl Gauge {
    /// Sets the gauge.
    pub fn set(&self, value: f64) -> Result<(), Error> {
        self.0.observe(value)
    }
}

/// Histogram shows how values are spread.
#[derive(Clone, Copy)]
pub struct Histogram(Metric);

impl Histogram {
    /// Counts a value.
    pub fn observe(&self, value: f64) -> Result<(), Error> {
        self.0.observe(value)
    }
}

impl Job {
    /// Returns a counter of the worker, with labels:
    ///
    /// ```
    /// # fn f(job: &jobhost::Job) -> jobhost::Result<()> {
    /// job.counter("requests", &[("class", "5xx")]).add(1.0)?;
    /// # Ok(()) }
    /// ```
    ///
    /// Names consist of letters, digits and underscores. The host puts a prefix and
    /// the worker's name to it, and limits how many there may be. A metric that the
    /// host refuses answers every use with the reason; a worker may ignore it. Get
    /// metrics once per job rather than once per value: it is a host call.
    pub fn counter(&self, name: &str, labels: &[(&str, &str)]) -> Counter {
        Counter(metric(1, name, labels))
    }

    /// Returns a gauge of the worker; see [`Job::counter`].
    pub fn gauge(&self, name: &str, labels: &[(&str, &str)]) -> Gauge {
        Gauge(metric(2, name, labels))
    }

    /// Returns a histogram of the worker; see [`Job::counter`].
    pub fn histogram(&self, name: &str, labels: &[(&str, &str)]) -> Histogram {
        Histogram(metric(3, name, labels))
    }
}

/// Writes a metric as Prometheus does, such as `requests{class="5xx"}`, and asks for its id.
fn metric(kind: i32, name: &str, labels: &[(&str, &str)]) -> Metric {
    let mut text = name.to_string();
    for (i, (label, value)) in labels.iter().enumerate() {
        text.push(if i == 0 { '{' } else { ',' });
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(text, "{}=\"{}\"", label, value); // a string takes everything
    }
    if !labels.is_empty() {
        text.push('}');
    }
    Metric(host::metric(kind, &text))
}
