use crate::http::Call;
use crate::{Errno, Failure, HttpError, Job, Pending, Request, Response, Result};

/// Batch gives the answers of requests as they come; see [`Job::fetch_all`].
pub struct Batch<'a> {
    job: &'a Job,
    requests: &'a [Request],
    at_once: usize,
    sent: usize,
    calls: Vec<(usize, Call<'a>)>, // under way, with their indices
    stopped: Option<Errno>,        // why there is no more waiting
}

impl<'a> Batch<'a> {
    fn refused(&self, i: usize, errno: Errno) -> Option<(usize, Result<Response, HttpError>)> {
        Some((i, Err(HttpError::refused(&self.requests[i].what(), errno))))
    }

    /// Waits for one of those under way.
    fn take(&mut self) -> Result<(usize, Call<'a>), Errno> {
        let pending: Vec<&dyn Pending> = self.calls.iter().map(|(_, call)| call as &dyn Pending).collect();
        let first = self.job.wait(&pending, None).map_err(|e| e.errno())?;
        Ok(self.calls.remove(first.unwrap_or(0)))
    }
}

impl Iterator for Batch<'_> {
    type Item = (usize, Result<Response, HttpError>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.stopped.is_none() && self.sent < self.requests.len() && self.calls.len() < self.at_once {
            match self.job.send(&self.requests[self.sent]) {
                Ok(call) => self.calls.push((self.sent, call)),
                // No more than the host lets be under way.
                Err(e) if e.reason == "exhausted" && !self.calls.is_empty() => {
                    self.at_once = self.calls.len();
                    break;
                }
                Err(e) => {
                    self.sent += 1;
                    return Some((self.sent - 1, Err(e)));
                }
            }
            self.sent += 1;
        }
        if self.stopped.is_none() && !self.calls.is_empty() {
            match self.take() {
                Ok((i, call)) => return Some((i, call.response())),
                Err(errno) => self.stopped = Some(errno),
            }
        }
        let errno = self.stopped?;
        if let Some((i, _)) = self.calls.pop() {
            return self.refused(i, errno);
        }
        self.sent += 1;
        if self.sent > self.requests.len() {
            return None;
        }
        self.refused(self.sent - 1, errno)
    }
}

impl Job {
    /// Sends requests, at most so many at a time, and gives the answer and the index of
    /// each as it comes. They are sent in their order. Each gets one answer, unless
    /// the loop is left: then what is under way is dropped, and the rest not sent.
    ///
    /// ```
    /// # fn f(job: &jobhost::Job, requests: &[jobhost::Request]) -> jobhost::Result<()> {
    /// for (i, answer) in job.fetch_all(requests, 20) {
    ///     job.log(jobhost::Level::Info, format!("{}: {}", i, answer?.status));
    /// }
    /// # Ok(()) }
    /// ```
    pub fn fetch_all<'a>(&'a self, requests: &'a [Request], at_once: usize) -> Batch<'a> {
        Batch { job: self, requests, at_once: at_once.max(1), sent: 0, calls: Vec::new(), stopped: None }
    }

    /// Sends all requests at once and returns the first response with a status below
    /// 400, and the index of its request; the others are dropped. When no response is
    /// good, the failure is that of the last, with the messages of all.
    pub fn race(&self, requests: &[Request]) -> Result<(usize, Response), Failure> {
        let mut messages = Vec::new();
        let mut last = Failure::new("there is nothing to race").permanent();
        for (i, answer) in self.fetch_all(requests, requests.len()) {
            let failure = match answer.map(Response::good) {
                Ok(Ok(response)) => return Ok((i, response)),
                Ok(Err(e)) => e.into(),
                Err(e) => Failure::from(e),
            };
            messages.push(failure.message().to_string());
            last = failure.with_message(messages.join("; "));
        }
        Err(last)
    }
}
