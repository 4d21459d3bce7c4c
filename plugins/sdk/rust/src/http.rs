use std::convert::TryFrom;

use crate::response::{self, HttpError, Response};
use crate::wait::{Handle, Pending};
use crate::{error, host, Errno, Error, Failure, Job};

/// Request is an HTTP request. The manifest must allow where it goes, and where that
/// redirects to.
///
/// ```
/// use jobhost::Request;
/// let request = Request::post("https://api.example.com/v1/prices", "{}").header("content-type", "application/json");
/// ```
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    url: String,
    header: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// Returns a request without a body.
    pub fn new(method: &str, url: &str) -> Request {
        Request { method: method.into(), url: url.into(), header: Vec::new(), body: Vec::new() }
    }

    /// Returns a request that gets what an absolute URL stands for.
    pub fn get(url: &str) -> Request {
        Request::new("GET", url)
    }

    /// Returns a request that posts a body.
    pub fn post(url: &str, body: impl Into<Vec<u8>>) -> Request {
        Request::new("POST", url).body(body)
    }

    /// Adds a field to the header. The host sets `Host`, `Accept-Encoding`, the framing
    /// of the body, and an `Idempotency-Key` unless there is one here.
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.header.push((name.into(), value.into()));
        self
    }

    /// Gives it a body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = body.into();
        self
    }

    /// Writes the request as the host reads it; `None` = a line of it would be two.
    fn text(&self) -> Option<Vec<u8>> {
        let one = |text: &str, not: &[char]| !text.contains(&['\n', '\r'][..]) && !text.contains(not);
        let fine = one(&self.method, &[' ']) && one(&self.url, &[]);
        if !fine || !self.header.iter().all(|(name, value)| one(name, &[':']) && one(value, &[])) {
            return None;
        }
        let mut text = format!("{} {}\n", self.method, self.url);
        for (name, value) in &self.header {
            text += &format!("{}: {}\n", name, value);
        }
        text.push('\n');
        let mut text = text.into_bytes();
        text.extend_from_slice(&self.body);
        Some(text)
    }

    /// Names it in errors, without the query, in which there may be secrets.
    pub(crate) fn what(&self) -> String {
        format!("{} {}", self.method, self.url.split('?').next().unwrap_or_default())
    }
}

/// Call is a request on its way, for [`Job::wait`], and then its response. A call that is
/// dropped before is cancelled on the wire.
pub struct Call<'a> {
    handle: Handle<'a>,
    what: String,
}

impl Call<'_> {
    /// Waits for the response. One with any status is no error: see [`Response::good`].
    pub fn response(self) -> Result<Response, HttpError> {
        match self.handle.read() {
            Ok(text) => response::parse(&self.what, &text),
            Err(e) => Err(HttpError::refused(&self.what, e)),
        }
    }
}

impl Pending for Call<'_> {
    fn handle(&self) -> i32 {
        self.handle.number()
    }
}

/// Reply is what a job is given whose request was deferred by another.
#[derive(Debug)]
pub struct Reply {
    /// The id of the request, as [`Job::defer`] returned it.
    pub id: String,
    /// What was given to [`Job::defer`].
    pub args: Vec<u8>,
    /// The response, or why there is none.
    pub answer: Result<Response, HttpError>,
}

impl Reply {
    /// Reads the payload of a job that a response came as. The failure, which is
    /// permanent, says that the payload is none, as when somebody else submitted the job.
    pub fn parse(payload: &[u8]) -> Result<Reply, Failure> {
        let none = || Failure::new("read reply: the payload is none").permanent();
        let mut response = response::read(payload).ok_or_else(none)?;
        let id = response.take("jobhost-request").ok_or_else(none)?;
        let args = response.take("jobhost-args").unwrap_or_default();
        let args = unbase64(&args).ok_or_else(none)?;
        Ok(Reply { id, args, answer: response.answer("") })
    }
}

/// Decodes base64 with padding; `None` = it is none.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0u32, 0);
    for c in text.bytes() {
        let digit = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(out)
}

impl Job {
    /// Begins a request and returns at once. A job may have 64 under way, send 1,000,
    /// and move 64 MiB of bodies, unless the manifest says otherwise. Its n-th
    /// request has the same `Idempotency-Key` in each attempt, so that servers that
    /// heed it do nothing twice.
    pub fn send(&self, request: &Request) -> Result<Call<'_>, HttpError> {
        let what = request.what();
        let n = match request.text() {
            Some(text) => error::answer(host::http(&text), ""),
            None => Err(Errno::Invalid.of("")),
        };
        match n {
            Ok(n) => Ok(Call { handle: Handle::new(self, n), what }),
            Err(e) => Err(HttpError::refused(&what, e.errno())),
        }
    }

    /// Sends a request and waits for its response.
    pub fn fetch(&self, request: &Request) -> Result<Response, HttpError> {
        self.send(request)?.response()
    }

    /// Is [`Job::fetch`] for a URL.
    pub fn get(&self, url: &str) -> Result<Response, HttpError> {
        self.fetch(&Request::get(url))
    }

    /// Hands a request to the host, which sends it when this job has succeeded, and not
    /// at all if it fails: durably, at least once, with the same `Idempotency-Key` each
    /// time. The response comes as a new job of this worker, for `entry` (empty = the
    /// worker's own), with this job's priority and labels; there [`Reply::parse`] reads
    /// it. So the sandbox is free while the request is under way. `args`, up to 64 KiB,
    /// come with it. The id that is returned is the one by which the reply names it.
    pub fn defer(&self, request: &Request, entry: &str, args: impl AsRef<[u8]>) -> Result<String, Error> {
        let what = format!("defer {}", request.what());
        let text = request.text().ok_or_else(|| Errno::Invalid.of(&what[..]))?;
        let number = error::answer(host::http_defer(&text, entry, args.as_ref()), what)?;
        self.child_id(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_texts() {
        let request = Request::post("http://a/", "body\n\n").header("x", "1").header("y", "2");
        assert_eq!(request.text().unwrap(), b"POST http://a/\nx: 1\ny: 2\n\nbody\n\n");
        for bad in [
            Request::new("G ET", "http://a/"),
            Request::get("http://a/\n"),
            Request::get("http://a/").header("a:b", ""),
            Request::get("http://a/").header("a", "b\rc"),
        ] {
            assert_eq!(bad.text(), None, "{:?}", bad);
        }
        assert_eq!(Request::get("http://a/b?key=secret").what(), "GET http://a/b");
    }

    #[test]
    fn replies_are_read() {
        let payload = b"200\njobhost-args: YXJncw==\njobhost-request: r1\nx: 1\n\nbody";
        let reply = Reply::parse(payload).unwrap();
        let response = reply.answer.unwrap();
        assert_eq!((reply.id.as_str(), &reply.args[..]), ("r1", &b"args"[..]));
        assert_eq!((response.status, &response.body[..], response.header("X")), (200, &b"body"[..], Some("1")));

        let reply = Reply::parse(b"0\nerror: timeout\njobhost-args: \njobhost-request: r1\n\nno answer").unwrap();
        assert_eq!(reply.answer.unwrap_err().reason, "timeout");
        for bad in
            [&b""[..], b"200\n\nbody", b"x\njobhost-request: r\n\n", b"200\njobhost-request: r\njobhost-args: ?\n\n"]
        {
            assert!(Reply::parse(bad).is_err(), "{:?}", bad);
        }
    }
}
