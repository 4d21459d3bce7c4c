use std::any::Any;
use std::fmt::Display;
use std::time::Duration;

use crate::json::quote;
use crate::{host, HttpError, StatusError};

/// Category groups failures by what they mean for the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The input can never succeed.
    Validation,
    /// Something took too long.
    Timeout,
    /// Something remote did not answer.
    Network,
    /// A limit was reached.
    Resource,
    /// The worker's own rules say no.
    Business,
    /// A fault of the worker.
    System,
    /// Anything else.
    Unknown,
}

impl Category {
    fn name(self) -> &'static str {
        match self {
            Category::Validation => "validation",
            Category::Timeout => "timeout",
            Category::Network => "network",
            Category::Resource => "resource",
            Category::Business => "business",
            Category::System => "system",
            Category::Unknown => "unknown",
        }
    }
}

/// Severity says how loudly to tell people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Severity {
    Critical,
    Error,
    Warning,
    Info,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

// The kinds of failure as the ABI numbers them.
const RETRYABLE: i32 = 1;
const PERMANENT: i32 = 2;
const SNOOZE: i32 = 3;

// The host keeps no more than this of a failure.
const MAX_MESSAGE: usize = 4 << 10;
const MAX_CONTEXT: usize = 16 << 10;

/// Failure is how an attempt ends that doesn't succeed. `?` makes one of any error,
/// with its message and those of its sources; it is tried again as the
/// worker's retry policy says, unless it is marked otherwise:
///
/// ```
/// # use jobhost::{Category, Failure};
/// # let _ =
/// Failure::new("no quota left").code("quota").category(Category::Resource).context("account", 7).permanent();
/// ```
#[derive(Debug)]
pub struct Failure {
    kind: i32,
    message: String,
    fields: String, // of the JSON object, each with a comma before it
    context: String,
}

impl Failure {
    /// Returns a failure that another attempt may cure.
    pub fn new(message: impl Display) -> Failure {
        Failure { kind: RETRYABLE, message: message.to_string(), fields: String::new(), context: String::new() }
    }

    /// Marks it as one that no further attempt will cure.
    pub fn permanent(mut self) -> Failure {
        self.kind = PERMANENT;
        self
    }

    /// Marks it as one that may pass, which is what failures are unless they are marked otherwise.
    pub fn retryable(mut self) -> Failure {
        self.kind = RETRYABLE;
        self
    }

    /// Names it for programs: 1 to 64 of A-Z a-z 0-9 . _ -
    pub fn code(self, code: impl Display) -> Failure {
        let code = code.to_string();
        self.field("code", &code)
    }

    /// Says what it means for the next attempt.
    pub fn category(self, category: Category) -> Failure {
        self.field("category", category.name())
    }

    /// Says how loudly to tell people; an error unless it says otherwise.
    pub fn severity(self, severity: Severity) -> Failure {
        self.field("severity", severity.name())
    }

    /// Adds something that is kept with the failure, up to 16 KiB in all.
    pub fn context(mut self, key: &str, value: impl Into<Value>) -> Failure {
        if !self.context.is_empty() {
            self.context.push(',');
        }
        self.context += &quote(key);
        self.context.push(':');
        self.context += &value.into().0;
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn with_message(mut self, message: String) -> Failure {
        self.message = message;
        self
    }

    fn field(mut self, name: &str, value: &str) -> Failure {
        self.fields += &format!(",\"{}\":{}", name, quote(cut(value)));
        self
    }

    #[cfg_attr(not(target_family = "wasm"), allow(dead_code))]
    pub(crate) fn panic(text: &str) -> Failure {
        let message = format!("panic: {}", text);
        Failure::new(message).code("panic").category(Category::System).severity(Severity::Critical)
    }

    /// Says to the host that the attempt ends like this.
    pub(crate) fn tell(&self) {
        if self.kind == SNOOZE {
            host::fail(SNOOZE, &self.message);
            return;
        }
        let mut text = format!("{{\"message\":{}{}", quote(cut(&self.message)), self.fields);
        if self.context.len() + 2 > MAX_CONTEXT {
            text += &format!(",\"context\":{{\"omitted\":\"{} bytes are over the limit\"}}", self.context.len() + 2);
        } else if !self.context.is_empty() {
            text += &format!(",\"context\":{{{}}}", self.context);
        }
        text.push('}');
        host::fail(self.kind, &text);
    }
}

/// Cuts a text where the host would, at the end of a character.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_MESSAGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Makes an error one that no further attempt will cure:
///
/// ```
/// # fn f(text: &str) -> jobhost::Result<i32> {
/// let n: i32 = text.parse().map_err(jobhost::permanent)?;
/// # Ok(n) }
/// ```
pub fn permanent(err: impl Into<Failure>) -> Failure {
    err.into().permanent()
}

/// Is returned by a handler to run again after a while, in whole milliseconds and
/// at least one; the attempt doesn't count.
pub fn snooze(after: Duration) -> Failure {
    let ms = (after.as_nanos() + 999_999) / 1_000_000;
    Failure { kind: SNOOZE, ..Failure::new(format!("{{\"after_ms\":{}}}", ms.max(1))) }
}

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(err: E) -> Failure {
        let mut message = err.to_string();
        let mut source = err.source();
        while let Some(err) = source {
            message += &format!(": {}", err);
            source = err.source();
        }
        let any: &dyn Any = &err;
        let failure = Failure::new(message);
        if let Some(err) = any.downcast_ref::<HttpError>() {
            return err.mark(failure);
        }
        match any.downcast_ref::<StatusError>() {
            Some(err) => err.mark(failure),
            None => failure,
        }
    }
}

/// Value is what the context of a failure can hold.
pub struct Value(String);

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value(quote(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value(quote(&text))
    }
}

/// Makes values of what is written in JSON as it is in Rust.
macro_rules! plain {
    ($($type:ty)*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value(value.to_string())
            }
        }
    )*};
}

plain!(bool i32 i64 u32 u64 usize);

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value(if value.is_finite() { value.to_string() } else { "null".into() })
    }
}
