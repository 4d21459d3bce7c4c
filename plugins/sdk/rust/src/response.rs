use std::fmt;

use crate::{Category, Errno, Failure};

/// Response is an HTTP response, with any status.
#[derive(Clone, Debug)]
pub struct Response {
    /// Such as 200.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// It is whole and decoded.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the first value of a field, whose name may be written in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Reports whether the status is 200 to 299.
    pub fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Makes an error of a status of 400 or more, which a handler may return as it is:
    ///
    /// ```
    /// # fn f(job: &jobhost::Job) -> jobhost::Result<Vec<u8>> {
    /// Ok(job.get("https://example.com/")?.good()?.body)
    /// # }
    /// ```
    pub fn good(self) -> Result<Response, StatusError> {
        match self.status {
            400.. => Err(StatusError { status: self.status }),
            _ => Ok(self),
        }
    }

    /// Takes a field that only the host can have written.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let i = self.headers.iter().position(|(key, _)| key == name)?;
        Some(self.headers.remove(i).1)
    }

    /// Tells a response from what says that there is none.
    pub(crate) fn answer(self, request: &str) -> Result<Response, HttpError> {
        if self.status != 0 {
            return Ok(self);
        }
        Err(HttpError {
            request: request.into(),
            reason: self.header("error").unwrap_or("unknown").into(),
            message: String::from_utf8_lossy(&self.body).into_owned(),
        })
    }
}

/// Reads a response as the host writes it, with status 0 if there is none; `None` = this is nothing of the kind.
pub(crate) fn read(text: &[u8]) -> Option<Response> {
    let end = text.windows(2).position(|two| two == b"\n\n")?;
    let head = String::from_utf8_lossy(&text[..end]);
    let mut lines = head.lines();
    let status = lines.next()?.parse().ok()?;
    let headers = lines.map(|line| match line.split_once(": ") {
        Some((name, value)) => (name.into(), value.into()),
        None => (line.trim_end_matches(':').into(), String::new()),
    });
    Some(Response { status, headers: headers.collect(), body: text[end + 2..].into() })
}

/// Is [`read`] for what came of a request.
pub(crate) fn parse(request: &str, text: &[u8]) -> Result<Response, HttpError> {
    match read(text) {
        Some(response) => response.answer(request),
        None => Err(HttpError::refused(request, Errno::Io)),
    }
}

/// HttpError says that there was no response, and why.
///
/// A handler may return it as it is. The failure then has the reason as its code and a
/// category to match, and is permanent where another attempt would end the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError {
    /// Method and URL without its query; empty in a [`Reply`](crate::Reply).
    pub request: String,
    /// A word of the ABI, such as `denied`, `timeout`, `dns`, `connection`, `tls`,
    /// `response_too_large`, `exhausted` or `cancelled`.
    pub reason: String,
    /// It is for people.
    pub message: String,
}

impl HttpError {
    /// Makes one of what the host answered instead of sending.
    pub(crate) fn refused(request: &str, errno: Errno) -> HttpError {
        let reason = match errno {
            Errno::Denied => "denied",
            Errno::Invalid => "invalid",
            Errno::Limit => "exhausted",
            Errno::Stopped => "cancelled",
            _ => "unknown",
        };
        HttpError { request: request.into(), reason: reason.into(), message: errno.to_string() }
    }

    /// Reports whether the same request may succeed later.
    pub fn retryable(&self) -> bool {
        let for_good = ["denied", "invalid", "tls", "protocol", "response_too_large", "too_many", "recursive"];
        !for_good.contains(&self.reason.as_str())
    }

    pub(crate) fn mark(&self, failure: Failure) -> Failure {
        let category = match self.reason.as_str() {
            "timeout" => Category::Timeout,
            "denied" | "invalid" => Category::Validation,
            "response_too_large" | "exhausted" | "rate_limited" => Category::Resource,
            "dns" | "connection" | "tls" | "protocol" | "too_many" | "recursive" | "breaker_open" => Category::Network,
            _ => Category::Unknown,
        };
        let failure = failure.code(&self.reason).category(category);
        if self.retryable() {
            failure
        } else {
            failure.permanent()
        }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if !self.request.is_empty() {
            write!(f, "{}: ", self.request)?;
        }
        f.write_str(if self.message.is_empty() { &self.reason } else { &self.message })
    }
}

impl std::error::Error for HttpError {}

/// StatusError is a response that says no; see [`Response::good`]. As a failure its code
/// is such as `http_404`. It is permanent for a status of 400 to 499, with category
/// business, except for 408, 409, 425 and 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusError {
    /// At least 400.
    pub status: u16,
}

impl StatusError {
    /// Reports whether the same request may succeed later.
    pub fn retryable(&self) -> bool {
        matches!(self.status, 408 | 409 | 425 | 429 | 500..)
    }

    pub(crate) fn mark(&self, failure: Failure) -> Failure {
        let failure = failure.code(format!("http_{}", self.status));
        if self.retryable() {
            return failure.category(Category::Network);
        }
        failure.category(Category::Business).permanent()
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "the server answered {}", self.status)
    }
}

impl std::error::Error for StatusError {}
