use std::time::Duration;

use crate::error::{answer, Errno, Error};
use crate::wait::{milliseconds, Handle, Pending};
use crate::{host, Job};

/// Spec says what job is wanted. Only the worker is needed, which the manifest must
/// name in the `submit` of this worker; what isn't said is that worker's default.
///
/// ```
/// # fn f(job: &jobhost::Job) -> jobhost::Result<()> {
/// use jobhost::Spec;
/// let id = job.submit(&Spec::new("resize").payload("a.png").priority("high").label("customer", "7"))?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Spec {
    worker: String,
    lines: Vec<(String, String)>,
    payload: Vec<u8>,
}

impl Spec {
    /// Returns a spec of a job for a worker.
    pub fn new(worker: &str) -> Spec {
        Spec { worker: worker.into(), lines: Vec::new(), payload: Vec::new() }.option("worker", worker)
    }

    /// Gives the job its payload.
    pub fn payload(mut self, payload: impl Into<Vec<u8>>) -> Spec {
        self.payload = payload.into();
        self
    }

    /// Names the job. Otherwise it gets a name that is the same in each attempt of
    /// this task, for the first, the second, … job that it submits.
    pub fn id(self, id: &str) -> Spec {
        self.option("id", id)
    }

    /// Says what the payload is.
    pub fn content_type(self, content_type: &str) -> Spec {
        self.option("content_type", content_type)
    }

    /// Says which entry of the worker to call.
    pub fn entry(self, entry: &str) -> Spec {
        self.option("entry", entry)
    }

    /// Sets the priority: critical, high, normal, low or background.
    pub fn priority(self, priority: &str) -> Spec {
        self.option("priority", priority)
    }

    /// Lets the job begin after a time, in whole milliseconds.
    pub fn delay(self, delay: Duration) -> Spec {
        self.option("delay", &format!("{}ms", milliseconds(delay)))
    }

    /// Lets the job begin at a time as of RFC 3339.
    pub fn run_at(self, time: &str) -> Spec {
        self.option("run_at", time)
    }

    /// Sets how many tasks it has.
    pub fn tasks(self, tasks: u32) -> Spec {
        self.option("tasks", &tasks.to_string())
    }

    /// Sets how often it is tried at most.
    pub fn max_attempts(self, attempts: u32) -> Spec {
        self.option("max_attempts", &attempts.to_string())
    }

    /// Sets how long an attempt may take.
    pub fn timeout(self, timeout: Duration) -> Spec {
        self.option("timeout", &format!("{}ms", milliseconds(timeout)))
    }

    /// Gives the job a label.
    pub fn label(self, name: &str, value: &str) -> Spec {
        // A space keeps an empty value.
        self.option(&format!("label.{}", name), &format!("{} ", value))
    }

    fn option(mut self, name: &str, value: &str) -> Spec {
        self.lines.push((name.into(), value.into()));
        self
    }

    /// Writes the spec as the host reads it; `None` = a line of it would be two.
    fn text(&self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for (name, value) in &self.lines {
            if name.contains(&[':', '\n', '\r'][..]) || value.contains(&['\n', '\r'][..]) {
                return None;
            }
            text.extend_from_slice(format!("{}: {}\n", name, value).as_bytes());
        }
        text.push(b'\n');
        text.extend_from_slice(&self.payload);
        Some(text)
    }
}

/// Child is a job that this attempt has submitted, for [`Job::wait`]. The job goes on
/// when nobody waits.
pub struct Child<'a> {
    handle: Handle<'a>,
    id: String,
}

impl Child<'_> {
    /// Returns the id of the job.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the end of the job and returns what is told of it, as JSON with
    /// `job`, `worker`, `state`, `result` and what else callbacks get.
    pub fn ended(self) -> Result<Vec<u8>, Error> {
        self.handle.read().map_err(|e| e.of(format!("wait for job {}", self.id)))
    }
}

impl Pending for Child<'_> {
    fn handle(&self) -> i32 {
        self.handle.number()
    }
}

impl Job {
    /// Submits a job when this one has succeeded, exactly once, and returns its id. If
    /// this one fails, there is no such job.
    ///
    /// Errors: [`Errno::Denied`] for a worker that this one may not submit to,
    /// [`Errno::NotFound`] for one that isn't loaded, [`Errno::Invalid`] for a spec that
    /// makes no sense, [`Errno::Conflict`] for an id that is taken, [`Errno::Limit`] when
    /// the worker's queue is full or the job has submitted too many. The job's log says more.
    pub fn submit(&self, spec: &Spec) -> Result<String, Error> {
        let number = submit(spec, 0)?;
        self.child_id(number)
    }

    /// Submits a job at once and durably, whatever becomes of this one. If this one is
    /// tried again, and submits the same jobs in the same order, they are there
    /// already and not submitted again. A worker that waits for jobs of its own
    /// needs another slot for them.
    pub fn start(&self, spec: &Spec) -> Result<Child<'_>, Error> {
        let number = submit(spec, 1)?;
        Ok(Child { handle: Handle::new(self, number), id: self.child_id(number)? })
    }

    pub(crate) fn child_id(&self, number: i32) -> Result<String, Error> {
        self.info(&format!("child.{}", number))
    }
}

fn submit(spec: &Spec, when: i32) -> Result<i32, Error> {
    let what = format!("submit to {}", spec.worker);
    match spec.text() {
        Some(text) => answer(host::submit(&text, when), what),
        None => Err(Errno::Invalid.of(what)),
    }
}
