use std::fmt;

/// Errno is why the host could not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Errno {
    /// There is no such thing.
    NotFound,
    /// It is not granted in the manifest.
    Denied,
    /// The attempt is cancelled or past its deadline.
    Stopped,
    /// A limit is reached.
    Limit,
    /// An argument makes no sense.
    Invalid,
    /// Something outside failed.
    Io,
    /// The thing was closed.
    Closed,
    /// It was changed meanwhile.
    Conflict,
    /// A number that this SDK doesn't know.
    Other(i64),
}

impl Errno {
    /// Makes an errno of a negative answer.
    pub(crate) fn from(answer: i64) -> Errno {
        match answer {
            -1 => Errno::NotFound,
            -2 => Errno::Denied,
            -3 => Errno::Stopped,
            -4 => Errno::Limit,
            -5 => Errno::Invalid,
            -6 => Errno::Io,
            -7 => Errno::Closed,
            -8 => Errno::Conflict,
            other => Errno::Other(other),
        }
    }

    /// Says which call got it.
    pub(crate) fn of(self, what: impl Into<String>) -> Error {
        Error { what: what.into(), errno: self }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Errno::NotFound => "not found",
            Errno::Denied => "not granted",
            Errno::Stopped => "cancelled or past the deadline",
            Errno::Limit => "over the limit",
            Errno::Invalid => "invalid argument",
            Errno::Io => "I/O error",
            Errno::Closed => "closed",
            Errno::Conflict => "conflict",
            Errno::Other(n) => return write!(f, "errno {}", n),
        })
    }
}

/// Error says which call of the host failed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    what: String,
    errno: Errno,
}

impl Error {
    /// Returns why it failed.
    pub fn errno(&self) -> Errno {
        self.errno
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.errno)
    }
}

impl std::error::Error for Error {}

/// Makes a result of an answer that is negative when the call failed.
pub(crate) fn answer(n: i32, what: impl Into<String>) -> Result<i32, Error> {
    if n < 0 {
        return Err(Errno::from(n.into()).of(what));
    }
    Ok(n)
}

/// Is [`answer`] for calls that answer nothing else.
pub(crate) fn check(n: i32, what: &str) -> Result<(), Error> {
    answer(n, what).map(|_| ())
}
