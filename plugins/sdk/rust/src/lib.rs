//! The SDK for writing [jobhost](https://github.com/jobhost/jobhost) workers in
//! Rust. A worker is a library of crate type `cdylib` with one function:
//!
//! ```
//! use jobhost::{Failure, Job, Result};
//!
//! jobhost::worker!(hello);
//!
//! fn hello(job: &Job) -> Result<String> {
//!     let name = std::str::from_utf8(job.input()).map_err(jobhost::permanent)?;
//!     if name.is_empty() {
//!         return Err(Failure::new("nobody to greet").permanent());
//!     }
//!     Ok(format!("hello, {}", name))
//! }
//! ```
//!
//! A handler returns the result, or a [`Failure`], which `?` makes of any error.
//! Built for anything but wasm the crate has a host in memory instead, so that
//! handlers run under `cargo test`: see [`testing`].

mod batch;
mod error;
mod failure;
#[doc(hidden)]
pub mod guest;
#[cfg_attr(target_family = "wasm", path = "host_wasm.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "fake.rs")]
mod host;
mod http;
mod json;
mod kv;
mod metrics;
mod response;
mod state;
mod submit;
#[cfg(test)]
mod tests;
mod wait;

use std::marker::PhantomData;
use std::time::Duration;

pub use batch::Batch;
pub use error::{Errno, Error};
pub use failure::{permanent, snooze, Category, Failure, Severity, Value};
pub use http::{Call, Reply, Request};
pub use kv::Kv;
pub use metrics::{Counter, Gauge, Histogram};
pub use response::{HttpError, Response, StatusError};
pub use state::{Select, State, StateEvent, Watch, STATE_ERROR, STATE_FINISHED, STATE_STARTED, STATE_WARNING};
pub use submit::{Child, Spec};
pub use wait::{Inbox, Messages, Pending, Timer};

/// A host in memory, for tests of handlers without wasm.
#[cfg(not(target_family = "wasm"))]
pub mod testing {
    pub use crate::host::{run, Attempt, Outcome, Site};
}

/// What a handler returns.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Output is what a handler can give as a result.
pub trait Output {
    /// Returns the bytes of the result; none = no output.
    fn into_bytes(self) -> Vec<u8>;
}

impl Output for Vec<u8> {
    fn into_bytes(self) -> Vec<u8> {
        self
    }
}

impl Output for String {
    fn into_bytes(self) -> Vec<u8> {
        self.into()
    }
}

impl Output for &str {
    fn into_bytes(self) -> Vec<u8> {
        self.into()
    }
}

impl Output for () {
    fn into_bytes(self) -> Vec<u8> {
        Vec::new()
    }
}

/// Level says how much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Debug = -4,
    Info = 0,
    Warn = 4,
    Error = 8,
}

/// Job is the attempt under way and all that it may ask of the host. What begins
/// with it, such as a [`Call`], can't outlive it.
pub struct Job {
    input: &'static [u8],
    // There is one, and it is not for other threads.
    alone: PhantomData<*const ()>,
}

impl Job {
    pub(crate) fn new(input: &'static [u8]) -> Job {
        Job { input, alone: PhantomData }
    }

    /// Returns the payload.
    pub fn input(&self) -> &[u8] {
        self.input
    }

    /// Appends to the result, before what the handler returns. The error is
    /// [`Errno::Limit`] when it gets larger than it may be; the attempt fails then.
    pub fn write(&self, data: impl AsRef<[u8]>) -> Result<(), Error> {
        error::check(host::output(data.as_ref()), "write the result")
    }

    /// Publishes a message to whoever watches the job, at once, whatever becomes of the attempt.
    pub fn emit(&self, data: impl AsRef<[u8]>) -> Result<(), Error> {
        error::check(host::emit(data.as_ref()), "emit")
    }

    /// Writes a line to the job's log. Lines below [`Job::log_level`] are dropped.
    pub fn log(&self, level: Level, text: impl AsRef<str>) {
        host::log(level as i32, text.as_ref());
    }

    /// Reports whether lines of this level are kept, for workers that want to
    /// spare themselves the making of others.
    pub fn logs(&self, level: Level) -> bool {
        level as i32 >= host::log_level()
    }

    /// Says how far the attempt is, in units of the worker's choice; total 0 =
    /// unknown. It is cheap: the host passes on ten reports a second at most.
    pub fn progress(&self, done: u64, total: u64) {
        host::progress(done as i64, total as i64);
    }

    /// Returns the time left: `None` without a deadline, zero when the attempt is
    /// cancelled or late. Handlers that run for long ask now and then, and return
    /// early on zero.
    pub fn remaining(&self) -> Option<Duration> {
        match host::remaining() {
            -1 => None,
            ms => Some(Duration::from_millis(ms.max(0) as u64)),
        }
    }

    /// Returns the id of the job.
    pub fn id(&self) -> String {
        self.text("job.id")
    }

    /// Returns which of the job's partitions this is, from 0.
    pub fn task(&self) -> u32 {
        self.number("job.task")
    }

    /// Returns how many partitions the job has, at least 1.
    pub fn tasks(&self) -> u32 {
        self.number("job.tasks")
    }

    /// Returns which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.number("job.attempt")
    }

    /// Returns the priority: critical, high, normal, low or background.
    pub fn priority(&self) -> String {
        self.text("job.priority")
    }

    /// Returns the name of the worker in the manifest.
    pub fn worker(&self) -> String {
        self.text("worker")
    }

    /// Returns the id of the workflow that the job is a step of, or nothing.
    pub fn trace(&self) -> String {
        self.text("trace")
    }

    /// Returns a value of the worker's config in the manifest, if it is there.
    pub fn config(&self, key: &str) -> Option<String> {
        self.info(&format!("config.{}", key)).ok()
    }

    /// Returns a label of the job, if it is there.
    pub fn label(&self, key: &str) -> Option<String> {
        self.info(&format!("label.{}", key)).ok()
    }

    /// Returns a secret that the manifest grants the worker. The error is
    /// [`Errno::Denied`] for one that it doesn't, whether there is one or not.
    pub fn secret(&self, name: &str) -> Result<String, Error> {
        self.info(&format!("secret.{}", name))
    }

    /// Returns what the host knows by a key of the ABI, such as `job.id`. The
    /// methods above are for what there is today.
    pub fn info(&self, key: &str) -> Result<String, Error> {
        let value = wait::fill(256, |room| host::info(key, room)).map_err(|e| e.of(format!("read {}", key)))?;
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    fn text(&self, key: &str) -> String {
        self.info(key).unwrap_or_default()
    }

    fn number(&self, key: &str) -> u32 {
        self.text(key).parse().unwrap_or(0)
    }

    /// Returns random bytes that differ from job to job: the host is asked each
    /// time. They are good for keys and tokens too.
    ///
    /// What a library has drawn in `init` is the same in every job: a sandbox is
    /// put back to that moment after each.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        host::random(&mut bytes);
        bytes
    }

    /// Fills a slice with bytes like those of [`Job::random`].
    pub fn fill_random(&self, bytes: &mut [u8]) {
        host::random(bytes);
    }
}
