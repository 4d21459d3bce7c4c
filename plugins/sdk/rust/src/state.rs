use std::time::Duration;

use crate::error::{answer, check, Errno, Error};
use crate::wait::{fill, Handle, Pending};
use crate::{host, json, Category, Failure, Job};

/// The status of what has begun.
pub const STATE_STARTED: i32 = 1;
/// The status of what has ended well.
pub const STATE_FINISHED: i32 = i32::MAX;
/// The status of an error.
pub const STATE_ERROR: i32 = -1;
/// The status of a warning.
pub const STATE_WARNING: i32 = -2;

/// State is what a task of a job has reported under a tag, which is one of its streams
/// of work. What nobody has reported has version 0 and is not started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct State {
    pub job: String,
    pub task: u32,
    pub tag: String,
    /// 0 = not started, below 0 an error, [`STATE_FINISHED`]; others are the worker's own.
    pub status: i32,
    pub message: String,
    /// A JSON object, if there is one.
    pub payload: Option<String>,
    /// When it was reported, by the host's clock, as of RFC 3339.
    pub time: String,
    /// Counts the reports of a task under a tag, from 1.
    pub version: u64,
}

impl State {
    fn parse(text: &str) -> Option<State> {
        let mut s = State::default();
        for (name, value) in json::fields(text)? {
            match name.as_str() {
                "job" => s.job = json::unquote(value)?,
                "task" => s.task = value.parse().ok()?,
                "tag" => s.tag = json::unquote(value)?,
                "status" => s.status = value.parse().ok()?,
                "message" => s.message = json::unquote(value)?,
                "payload" if value != "null" => s.payload = Some(value.into()),
                "timestamp" => s.time = json::unquote(value)?,
                "version" => s.version = value.parse().ok()?,
                _ => {}
            }
        }
        Some(s)
    }
}

/// Select says which states are asked for: those of all tasks of this job and all
/// tags, unless it says otherwise.
///
/// ```
/// use jobhost::Select;
/// let third = Select::tag("ingest").task(3);
/// ```
#[derive(Clone, Debug)]
pub struct Select {
    task: i32,
    tag: String,
}

impl Select {
    /// Selects all states of this job.
    pub fn all() -> Select {
        Select::tag("")
    }

    /// Selects the states under a tag. `_run` is where the host reports how the
    /// attempts of each task go.
    pub fn tag(tag: &str) -> Select {
        Select { task: -1, tag: tag.into() }
    }

    /// Selects those of one task, from 0.
    pub fn task(mut self, task: u32) -> Select {
        self.task = i32::try_from(task).unwrap_or(i32::MAX);
        self
    }

    /// Selects those of another job, if the manifest lets this worker watch those of its worker.
    pub fn job(mut self, id: &str) -> Select {
        self.tag = format!("{}/{}", id, self.tag);
        self
    }
}

/// StateEvent is what a [`Watch`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateEvent {
    /// A state that was there when the watch began.
    Present(State),
    /// All states that were there have been told.
    Sentinel,
    /// A state as it is from now on.
    Change(State),
}

/// Watch tells of states: first of those that there are, oldest first, then that this was
/// all, and then of each change. It may be waited for by [`Job::wait`].
pub struct Watch<'a>(Handle<'a>);

impl Watch<'_> {
    /// Waits for the next event. Errors: [`Errno::Closed`] when there will be no more, as
    /// when the job was deleted; [`Errno::Limit`] when 256 changes were left unread: watch anew.
    #[allow(clippy::should_implement_trait)] // there is no end
    pub fn next(&self) -> Result<StateEvent, Error> {
        let message = self.0.next().map_err(|e| e.of("watch states"))?;
        event(&String::from_utf8_lossy(&message)).ok_or_else(|| Errno::Io.of("watch states"))
    }
}

fn event(text: &str) -> Option<StateEvent> {
    let fields = json::fields(text)?;
    let field = |name| fields.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    if field("sentinel") == Some("true") {
        return Some(StateEvent::Sentinel);
    }
    let state = State::parse(field("state")?)?;
    Some(match field("replay") {
        Some("true") => StateEvent::Present(state),
        _ => StateEvent::Change(state),
    })
}

impl Pending for Watch<'_> {
    fn handle(&self) -> i32 {
        self.0.number()
    }
}

impl Job {
    /// Reports how far this task is, to the other tasks of the job and to whoever watches
    /// it. It returns when that is durable, whatever becomes of the attempt. A message has
    /// up to 4 KiB; payload is a JSON object of up to 64 KiB, or empty. The error is
    /// [`Errno::Denied`] for a tag that begins with `_`: those are the host's.
    pub fn set_state(&self, tag: &str, status: i32, message: &str, payload: &str) -> Result<(), Error> {
        check(host::state_set(tag, status, message, payload.as_bytes()), "set state")
    }

    /// Is [`Job::set_state`] with [`STATE_STARTED`].
    pub fn set_started(&self, tag: &str) -> Result<(), Error> {
        self.set_state(tag, STATE_STARTED, "🟢 Started", "")
    }

    /// Is [`Job::set_state`] with [`STATE_FINISHED`].
    pub fn set_finished(&self, tag: &str) -> Result<(), Error> {
        self.set_state(tag, STATE_FINISHED, "⚫ Finished", "")
    }

    /// Is [`Job::set_state`] with [`STATE_ERROR`] and what happened.
    pub fn set_error(&self, tag: &str, text: &str) -> Result<(), Error> {
        self.set_state(tag, STATE_ERROR, &format!("🔴 {}", text), "")
    }

    /// Is [`Job::set_state`] with [`STATE_WARNING`] and what happened.
    pub fn set_warning(&self, tag: &str, text: &str) -> Result<(), Error> {
        self.set_state(tag, STATE_WARNING, &format!("🟡 {}", text), "")
    }

    /// Returns the state that prevails among those selected: the one with the lowest
    /// status, so that a job is as far as its slowest task, and an error shows.
    pub fn get_state(&self, of: &Select) -> Result<State, Error> {
        let what = "get state";
        let text = fill(512, |room| host::state_get(of.task, &of.tag, room)).map_err(|e| e.of(what))?;
        State::parse(&String::from_utf8_lossy(&text)).ok_or_else(|| Errno::Io.of(what))
    }

    /// Begins to follow states. An attempt may have 64 watches.
    pub fn watch_state(&self, of: &Select) -> Result<Watch<'_>, Error> {
        answer(host::state_watch(of.task, &of.tag), "watch states").map(|n| Watch(Handle::new(self, n)))
    }

    /// Waits at a barrier: until every task of the job has reported at least the status
    /// `target` under a tag. It returns the lowest state then. A worker whose tasks wait
    /// for each other needs a slot for each. If the time is up, the failure says who
    /// has not come, with category timeout.
    pub fn synchronize(&self, tag: &str, target: i32, timeout: Duration) -> Result<State, Failure> {
        let of = Select::tag(tag);
        let late = self.after(timeout)?;
        let mut watch = self.watch_state(&of)?;
        loop {
            // Asked for after the watch has begun, so that no change is missed.
            let lowest = self.get_state(&of)?;
            if lowest.status >= target {
                return Ok(lowest);
            }
            if self.wait(&[&watch, &late], None)? == Some(1) {
                let text = format!("synchronize {}: task {} is at {}: not in time", tag, lowest.task, lowest.status);
                return Err(Failure::new(text).code("timeout").category(Category::Timeout));
            }
            match watch.next() {
                // More changes than it holds: the next begins with what there is.
                Err(e) if e.errno() == Errno::Limit => watch = self.watch_state(&of)?,
                event => drop(event?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read() {
        let state = r#"{"job":"j","task":3,"tag":"in","status":-2,"message":"\"","timestamp":"2026-01-01T00:00:00Z","version":2,"payload":{"rows":[5]},"schema_version":1}"#;
        let want = State {
            job: "j".into(),
            task: 3,
            tag: "in".into(),
            status: -2,
            message: "\"".into(),
            payload: Some(r#"{"rows":[5]}"#.into()),
            time: "2026-01-01T00:00:00Z".into(),
            version: 2,
        };
        let tell = |replay| event(&format!(r#"{{"state":{},"replay":{}}}"#, state, replay));
        assert_eq!(tell(true), Some(StateEvent::Present(want.clone())));
        assert_eq!(tell(false), Some(StateEvent::Change(want)));
        assert_eq!(event(r#"{"replay":true,"sentinel":true}"#), Some(StateEvent::Sentinel));
        assert_eq!(event(r#"{"replay":false}"#), None);
    }
}
