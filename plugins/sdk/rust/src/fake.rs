//! The host, when built for anything but wasm: one in memory, for tests.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use crate::{Job, Output, Result};

/// Site answers requests in a test.
pub type Site = Box<dyn Fn(&str) -> String>;

/// Attempt is what a handler is given in a test.
#[derive(Default)]
#[allow(missing_docs)]
pub struct Attempt {
    pub input: Vec<u8>,
    /// What the host knows by a key of the ABI, such as `job.id` or `config.city`. Secrets
    /// that are not here are denied.
    pub info: BTreeMap<String, String>,
    /// The keys and values of the worker.
    pub keys: BTreeMap<String, Vec<u8>>,
    /// The workers that the handler may submit to.
    pub may_submit: Vec<String>,
    /// Answers requests, as texts of the ABI: `GET http://a/\n\n`, `200\n\nhello`. Without it
    /// they are denied.
    pub http: Option<Site>,
    /// What a fiber is sent; `None` = it is a job, which is sent nothing.
    pub messages: Option<VecDeque<Vec<u8>>>,
}

/// Outcome is what a handler did in a test.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Outcome {
    pub output: Vec<u8>,
    /// Kind (1 retryable, 2 permanent, 3 snooze) and text of the failure, if there is one.
    pub failure: Option<(i32, String)>,
    pub logs: Vec<(i32, String)>,
    pub emitted: Vec<Vec<u8>>,
    /// By name with labels: the sum of a counter, the last of others.
    pub observed: BTreeMap<String, f64>,
    pub progress: (i64, i64),
    /// As texts of the ABI.
    pub submitted: Vec<String>,
    /// As texts of the ABI.
    pub requests: Vec<String>,
    /// Entries, args and texts of the ABI.
    pub deferred: Vec<(String, Vec<u8>, String)>,
    /// Status and message by tag.
    pub states: BTreeMap<String, (i32, String)>,
    pub keys: BTreeMap<String, Vec<u8>>,
}

/// Runs a handler in a test. Timers pass at once; whatever has no answer never comes.
pub fn run<O: Output>(handler: impl FnOnce(&Job) -> Result<O>, attempt: Attempt) -> Outcome {
    let input: &'static [u8] = attempt.input.clone().leak();
    HOST.with(|h| *h.borrow_mut() = Host::new(attempt));
    let result = handler(&Job::new(input));
    let output = match result {
        Ok(output) => output.into_bytes(),
        Err(failure) => {
            failure.tell();
            Vec::new()
        }
    };
    HOST.with(|h| {
        let mut host = h.take();
        host.done.output.extend(output);
        host.done.keys = host.given.keys;
        host.done
    })
}

#[derive(Default)]
struct Host {
    given: Attempt,
    done: Outcome,
    metrics: Vec<(i32, String)>,
    versions: BTreeMap<String, i64>,
    handles: BTreeMap<i32, Vec<u8>>,
    children: i32,
    last: i32,
}

const INBOX: i32 = 1 << 20;

impl Host {
    fn new(given: Attempt) -> Host {
        let versions = given.keys.keys().map(|key| (key.clone(), 1)).collect();
        Host { given, versions, last: 1000, ..Host::default() }
    }

    fn open(&mut self, text: Vec<u8>) -> i32 {
        self.last += 1;
        self.handles.insert(self.last, text);
        self.last
    }

    fn child(&mut self) -> i32 {
        self.children += 1;
        self.given.info.insert(format!("child.{}", self.children), format!("id-{}", self.children));
        self.children
    }
}

thread_local!(static HOST: RefCell<Host> = RefCell::default());

fn with<T>(f: impl FnOnce(&mut Host) -> T) -> T {
    HOST.with(|h| f(&mut h.borrow_mut()))
}

fn fill(value: Option<&[u8]>, missing: i32, room: &mut [u8]) -> i32 {
    let value = match value {
        Some(value) => value,
        None => return missing,
    };
    if value.len() <= room.len() {
        room[..value.len()].copy_from_slice(value);
    }
    value.len() as i32
}

fn text(p: &[u8]) -> String {
    String::from_utf8_lossy(p).into_owned()
}

pub fn output(p: &[u8]) -> i32 {
    with(|h| h.done.output.extend_from_slice(p));
    0
}

pub fn fail(kind: i32, text: &str) -> i32 {
    with(|h| h.done.failure = Some((kind, text.into())));
    0
}

pub fn info(key: &str, room: &mut [u8]) -> i32 {
    let missing = if key.starts_with("secret.") { -2 } else { -1 };
    with(|h| fill(h.given.info.get(key).map(|v| v.as_bytes()), missing, room))
}

pub fn emit(p: &[u8]) -> i32 {
    with(|h| h.done.emitted.push(p.into()));
    0
}

pub fn log(level: i32, text: &str) {
    with(|h| h.done.logs.push((level, text.into())));
}

pub fn log_level() -> i32 {
    -4
}

pub fn metric(kind: i32, name: &str) -> i32 {
    with(|h| {
        h.metrics.push((kind, name.into()));
        h.metrics.len() as i32 - 1
    })
}

pub fn observe(id: i32, value: f64) -> i32 {
    with(|h| {
        let (kind, name) = h.metrics[id as usize].clone();
        let seen = h.done.observed.entry(name).or_default();
        *seen = if kind == 1 { *seen + value } else { value };
    });
    0
}

pub fn progress(done: i64, total: i64) {
    with(|h| h.done.progress = (done, total));
}

pub fn remaining() -> i64 {
    -1
}

pub fn submit(spec: &[u8], _when: i32) -> i32 {
    with(|h| {
        let spec = text(spec);
        if !h.given.may_submit.iter().any(|worker| spec.starts_with(&format!("worker: {}\n", worker))) {
            return -2;
        }
        h.done.submitted.push(spec);
        h.child()
    })
}

pub fn kv_get(key: &str, room: &mut [u8]) -> i32 {
    with(|h| fill(h.given.keys.get(key).map(|v| &v[..]), -1, room))
}

pub fn kv_version(key: &str) -> i64 {
    with(|h| h.versions.get(key).copied().unwrap_or(0))
}

pub fn kv_set(key: &str, value: &[u8], _ttl: i64) -> i32 {
    with(|h| h.given.keys.insert(key.into(), value.into()));
    0
}

pub fn kv_del(key: &str) -> i32 {
    with(|h| h.given.keys.remove(key));
    0
}

pub fn kv_add(key: &str, delta: i64) -> i64 {
    with(|h| {
        let value = h.given.keys.get(key).map_or_else(|| "0".into(), |v| text(v));
        match value.parse::<i64>() {
            Ok(n) => {
                h.given.keys.insert(key.into(), (n + delta).to_string().into());
                n + delta
            }
            Err(_) => i64::MIN + 5,
        }
    })
}

pub fn kv_cas(key: &str, version: i64, value: &[u8]) -> i32 {
    if kv_version(key) != version {
        return -8;
    }
    kv_set(key, value, 0)
}

pub fn http(request: &[u8]) -> i32 {
    with(|h| {
        let request = text(request);
        let reply = match &h.given.http {
            Some(answer) => answer(&request),
            None => return -2,
        };
        h.done.requests.push(request);
        h.open(reply.into())
    })
}

pub fn timer(_ms: i64) -> i32 {
    with(|h| h.open(Vec::new()))
}

pub fn wait(handles: &[i32], _timeout: i64) -> i32 {
    with(|h| {
        if !handles.iter().all(|n| *n == INBOX || h.handles.contains_key(n) || *n <= h.children) {
            return -5;
        }
        let ready = |n: &i32| match n {
            &INBOX => true,
            n => h.handles.contains_key(n),
        };
        handles.iter().position(ready).map_or(-1, |i| i as i32)
    })
}

pub fn read(handle: i32, room: &mut [u8]) -> i32 {
    with(|h| {
        let left = match handle {
            INBOX => h.given.messages.as_mut().and_then(|m| m.front_mut()),
            _ => h.handles.get_mut(&handle),
        };
        let left = match left {
            Some(left) => left,
            None if handle == INBOX => return -7,
            None => return -3,
        };
        if room.is_empty() {
            return left.len() as i32;
        }
        let n = left.len().min(room.len());
        room[..n].copy_from_slice(&left[..n]);
        left.drain(..n);
        if handle == INBOX && left.is_empty() {
            h.given.messages.as_mut().map(VecDeque::pop_front);
        }
        n as i32
    })
}

pub fn drop(handle: i32) -> i32 {
    with(|h| h.handles.remove(&handle));
    0
}

pub fn http_defer(request: &[u8], entry: &str, args: &[u8]) -> i32 {
    with(|h| {
        h.done.deferred.push((entry.into(), args.into(), text(request)));
        h.child()
    })
}

pub fn state_set(tag: &str, status: i32, message: &str, _payload: &[u8]) -> i32 {
    if tag.starts_with('_') {
        return -2;
    }
    with(|h| h.done.states.insert(tag.into(), (status, message.into())));
    0
}

pub fn state_get(_task: i32, tag: &str, room: &mut [u8]) -> i32 {
    with(|h| {
        let (status, message) = h.done.states.get(tag).cloned().unwrap_or_default();
        let message = crate::json::quote(&message);
        let text = format!("{{\"task\":0,\"tag\":\"{}\",\"status\":{},\"message\":{}}}", tag, status, message);
        fill(Some(text.as_bytes()), -1, room)
    })
}

/// There is nobody whose states could change.
pub fn state_watch(_task: i32, _tag: &str) -> i32 {
    -2
}

pub fn recv() -> i32 {
    with(|h| if h.given.messages.is_some() { INBOX } else { -2 })
}

/// They differ from run to run, as those of a real host do from job to job.
pub fn random(p: &mut [u8]) {
    use std::collections::hash_map::RandomState;
    use std::hash::{BuildHasher, Hasher};
    for part in p.chunks_mut(8) {
        let number = RandomState::new().build_hasher().finish().to_le_bytes();
        part.copy_from_slice(&number[..part.len()]);
    }
}
