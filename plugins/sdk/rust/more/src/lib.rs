//! What the suite doesn't look at: streams of messages, barriers, what is done when a sandbox
//! is made and put back, and what goes wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jobhost::{Failure, Job, Request, Result, Select, Spec, StateEvent};

jobhost::worker!(started, init = init, wake = wake);
jobhost::entry!(follow, follow);
jobhost::entry!(meet, |job: &Job| Ok(job.synchronize("a", 2, Duration::from_secs(60))?.status.to_string()));
jobhost::entry!(fiber, fiber);
jobhost::entry!(submit, submit);
jobhost::entry!(first, first);
jobhost::entry!(all, all);
jobhost::entry!(broken, |job: &Job| Ok([b'a', b'b', b'c'][job.input().len()..job.input().len() + 2].to_vec()));
jobhost::entry!(waste, |job: &Job| Ok((0..10).fold(vec![], |last, _| [job.input(), &last[..last.len() / 2]].concat())));

static INIT: AtomicU64 = AtomicU64::new(0);
static WOKEN: AtomicU64 = AtomicU64::new(0);

fn init() {
    INIT.fetch_add(1, Ordering::Relaxed);
}

fn wake() {
    WOKEN.fetch_add(1, Ordering::Relaxed);
}

fn started(_: &Job) -> Result<String> {
    Ok(format!("{} {}", INIT.load(Ordering::Relaxed), WOKEN.load(Ordering::Relaxed)))
}

fn follow(job: &Job) -> Result<&'static str> {
    let tag = String::from_utf8_lossy(job.input());
    let of = Select::tag(&tag).task(1);
    job.emit(format!("{:?}", job.get_state(&of)?))?;
    let watch = job.watch_state(&of)?;
    loop {
        let (what, state) = match watch.next()? {
            StateEvent::Sentinel => return Ok("all"),
            StateEvent::Present(state) => ("present", state),
            StateEvent::Change(state) => ("change", state),
        };
        job.emit(format!("{} {} {}", what, state.status, state.message.len()))?;
    }
}

fn fiber(job: &Job) -> Result<&'static str> {
    for message in job.messages()? {
        job.emit(message?)?;
    }
    Ok("end")
}

fn submit(job: &Job) -> Result<String> {
    let child = job.start(&Spec::new("other"))?;
    let id = child.id().to_string();
    Ok(format!("{} {}", id, String::from_utf8_lossy(&child.ended()?)))
}

/// Asks five places, two at a time.
fn all(job: &Job) -> Result<String> {
    let requests: Vec<_> = (0..5).map(|i| Request::get(&format!("http://{}/", i))).collect();
    let answers = job.fetch_all(&requests, 2).map(|(i, answer)| match answer {
        Ok(response) => format!("{} {}", i, response.status),
        Err(e) => format!("{} {}", i, e),
    });
    Ok(answers.collect::<Vec<_>>().join("\n"))
}

/// Returns the first answer of three requests, or fails after a minute.
fn first(job: &Job) -> Result<Vec<u8>> {
    let mut calls = vec![];
    for i in 0..3 {
        calls.push(job.send(&Request::get(&format!("http://{}/", i)))?);
    }
    let late = job.after(Duration::from_secs(60))?;
    match job.wait(&[&calls[0], &calls[1], &calls[2], &late], None)? {
        Some(i) if i < 3 => Ok(calls.swap_remove(i).response()?.good()?.body),
        _ => Err(Failure::new("all are late")),
    }
}
