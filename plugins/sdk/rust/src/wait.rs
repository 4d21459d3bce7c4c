use std::marker::PhantomData;
use std::time::Duration;

use crate::error::{answer, Errno, Error};
use crate::{host, Job};

/// Asks by the fill-or-size rule, with room for `first` bytes to begin with.
pub(crate) fn fill(first: usize, ask: impl Fn(&mut [u8]) -> i32) -> Result<Vec<u8>, Errno> {
    let mut room = vec![0; first];
    loop {
        let n = ask(&mut room);
        if n < 0 {
            return Err(Errno::from(n.into()));
        }
        let (n, had) = (n as usize, room.len());
        room.resize(n, 0);
        if n <= had {
            return Ok(room);
        }
    }
}

/// Rounds up to what the host counts in.
pub(crate) fn milliseconds(d: Duration) -> i64 {
    i64::try_from((d.as_nanos() + 999_999) / 1_000_000).unwrap_or(i64::MAX)
}

/// Pending is something that a job waits for: a [`Call`](crate::Call), a [`Timer`], a
/// [`Child`](crate::Child), a [`Watch`](crate::Watch) or an [`Inbox`].
pub trait Pending {
    /// Returns the number that the host knows it by.
    fn handle(&self) -> i32;
}

/// Handle is what the host knows something pending by. It is given up with it.
pub(crate) struct Handle<'a> {
    number: i32,
    job: PhantomData<&'a Job>,
}

impl<'a> Handle<'a> {
    pub fn new(_: &'a Job, number: i32) -> Handle<'a> {
        Handle { number, job: PhantomData }
    }

    pub fn number(&self) -> i32 {
        self.number
    }

    /// Waits for what comes of it and returns it whole.
    pub fn read(&self) -> Result<Vec<u8>, Errno> {
        read(self.number)
    }

    /// Waits for the next of its messages.
    pub fn next(&self) -> Result<Vec<u8>, Errno> {
        next(self.number)
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        host::drop(self.number);
    }
}

fn read(handle: i32) -> Result<Vec<u8>, Errno> {
    let size = host::read(handle, &mut []);
    if size < 0 {
        return Err(Errno::from(size.into()));
    }
    let mut message = vec![0; size as usize];
    let mut done = 0;
    while done < message.len() {
        match host::read(handle, &mut message[done..]) {
            0 => return Err(Errno::Io), // it is shorter than the host said
            n if n < 0 => return Err(Errno::from(n.into())),
            n => done += n as usize,
        }
    }
    Ok(message)
}

/// Reads a message of a handle with many. One that is empty is gone only after a
/// read with room.
fn next(handle: i32) -> Result<Vec<u8>, Errno> {
    let message = read(handle)?;
    if message.is_empty() {
        match host::read(handle, &mut [0]) {
            n if n < 0 => return Err(Errno::from(n.into())),
            _ => {}
        }
    }
    Ok(message)
}

/// Timer is ready when its time has come, for [`Job::wait`].
pub struct Timer<'a>(Handle<'a>);

impl Pending for Timer<'_> {
    fn handle(&self) -> i32 {
        self.0.number()
    }
}

/// Inbox is what a fiber is sent, message by message. It may be waited for by
/// [`Job::wait`], together with requests, timers and watches.
pub struct Inbox<'a> {
    number: i32,
    job: PhantomData<&'a Job>,
}

impl Inbox<'_> {
    /// Waits for the next message, which may be empty. The error is
    /// [`Errno::Closed`] when nobody can send any more.
    #[allow(clippy::should_implement_trait)] // Messages is the iterator
    pub fn next(&self) -> Result<Vec<u8>, Error> {
        next(self.number).map_err(|e| e.of("receive"))
    }
}

impl Pending for Inbox<'_> {
    fn handle(&self) -> i32 {
        self.number
    }
}

/// Messages gives what a fiber is sent as it comes; see [`Job::messages`].
pub struct Messages<'a>(Inbox<'a>);

impl Iterator for Messages<'_> {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.next() {
            Err(e) if e.errno() == Errno::Closed => None,
            message => Some(message),
        }
    }
}

impl Job {
    /// Waits until one of the pending is ready and returns its index; if several are,
    /// that of any of them. `None` = none was ready in time. A timeout of zero
    /// only looks; without one it waits as long as the attempt may run. Nothing is
    /// given up: whoever wants the first one only drops the others.
    ///
    /// ```
    /// # use jobhost::{Job, Request, Result};
    /// # use std::time::Duration;
    /// # fn f(job: &Job) -> Result<()> {
    /// let call = job.send(&Request::get("https://example.com/"))?;
    /// let late = job.after(Duration::from_secs(2))?;
    /// if job.wait(&[&call, &late], None)? == Some(1) {
    ///     drop(call); // it takes too long
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// The error is [`Errno::Stopped`] when the attempt is cancelled, which is told
    /// once, or past its deadline.
    pub fn wait(&self, pending: &[&dyn Pending], timeout: Option<Duration>) -> Result<Option<usize>, Error> {
        let numbers: Vec<i32> = pending.iter().map(|p| p.handle()).collect();
        match host::wait(&numbers, timeout.map_or(-1, milliseconds)) {
            -1 => Ok(None),
            n => answer(n, "wait").map(|n| Some(n as usize)),
        }
    }

    /// Returns a timer that is ready after a time, rounded up to milliseconds.
    pub fn after(&self, d: Duration) -> Result<Timer<'_>, Error> {
        answer(host::timer(milliseconds(d)), "make a timer").map(|n| Timer(Handle::new(self, n)))
    }

    /// Returns what the fiber is sent; it is the same each time. The error is
    /// [`Errno::Denied`] for jobs, which are sent nothing.
    pub fn inbox(&self) -> Result<Inbox<'_>, Error> {
        answer(host::recv(), "receive").map(|number| Inbox { number, job: PhantomData })
    }

    /// Gives what the fiber is sent as it comes, until nobody can send any more.
    /// Leave the loop at an error, such as [`Errno::Stopped`] when the fiber is interrupted.
    ///
    /// ```
    /// # fn f(job: &jobhost::Job) -> jobhost::Result<()> {
    /// for message in job.messages()? {
    ///     job.emit(message?)?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn messages(&self) -> Result<Messages<'_>, Error> {
        self.inbox().map(Messages)
    }
}
