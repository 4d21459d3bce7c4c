//! What the suite for SDKs calls: an entry for each thing that a worker may do.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jobhost::{Category, Errno, Failure, Job, Level, Request, Result, Select, Spec};

jobhost::worker!(|job: &Job| Ok(job.input().to_ascii_uppercase()));

jobhost::entry!(echo, |job: &Job| Ok(job.write(job.input())?));

jobhost::entry!(info, |job: &Job| match job.info(&text(job)) {
    Err(e) if e.errno() == Errno::NotFound => Ok("none".into()),
    Err(e) if e.errno() == Errno::Denied => Ok("denied".into()),
    value => Ok(value?),
});

jobhost::entry!(log, |job: &Job| {
    job.log(Level::Info, text(job));
    job.log(Level::Debug, "debugging");
    Ok(())
});

jobhost::entry!(fail, |job: &Job| {
    let failure = Failure::new(text(job)).code("bad_input").category(Category::Validation);
    Result::<()>::Err(failure.context("seen", true).permanent())
});

jobhost::entry!(retry, |job: &Job| Result::<()>::Err(Failure::new(text(job))));

jobhost::entry!(snooze, |_: &Job| Result::<()>::Err(jobhost::snooze(Duration::from_millis(1500))));

jobhost::entry!(panic, |_: &Job| -> Result<()> { panic!("boom") });

jobhost::entry!(count, |job: &Job| Ok(job.kv().add("count", 1)?.to_string()));

jobhost::entry!(keep, |job: &Job| {
    if let Some(value) = job.kv().get("k")? {
        return Ok(value);
    }
    job.kv().set("k", job.input())?;
    Ok(vec![])
});

jobhost::entry!(swap, |job: &Job| {
    let kv = job.kv();
    let version = kv.version("k")?;
    kv.compare_and_set("k", version, job.input())?;
    match kv.compare_and_set("k", 12345, job.input()) {
        Err(e) if e.errno() == Errno::Conflict => Ok("ok conflict"),
        _ => Ok("ok"),
    }
});

jobhost::entry!(fetch, |job: &Job| {
    Ok(match job.get(&text(job)) {
        Ok(response) => format!("{} {}", response.status, String::from_utf8_lossy(&response.body)),
        Err(e) => format!("error: {}", e),
    })
});

jobhost::entry!(race, |job: &Job| {
    let urls = text(job);
    let (one, other) = urls.split_once(' ').ok_or_else(|| Failure::new("there are no two URLs").permanent())?;
    let calls = [job.send(&Request::get(one))?, job.send(&Request::get(other))?];
    let winner = job.wait(&[&calls[0], &calls[1]], None)?.unwrap_or(0);
    // The other is dropped at the end of this statement.
    let call = calls.into_iter().nth(winner).unwrap();
    Ok(call.response()?.body)
});

jobhost::entry!(timeout, |job: &Job| {
    let timer = job.after(Duration::from_millis(10))?;
    job.wait(&[&timer], None)?;
    Ok("late")
});

jobhost::entry!(child, |job: &Job| Ok(job.submit(&Spec::new("other").payload(job.input()))?));

jobhost::entry!(spread, |job: &Job| {
    job.progress(1, 2);
    job.counter("seen", &[]).add(1.0)?;
    job.emit(job.input())?;
    job.set_state("half", 50, "half", "")?;
    let state = job.get_state(&Select::tag("half").task(job.task()))?;
    Ok(state.status.to_string())
});

jobhost::entry!(defer, |job: &Job| {
    job.defer(&Request::get(&text(job)), "echo", "args")?;
    Ok(())
});

jobhost::entry!(inbox, |job: &Job| Ok(job.inbox()?.next()?));

jobhost::entry!(draw, |job: &Job| Ok(format!("{:016x}", u64::from_le_bytes(job.random()))));

static SEEN: AtomicU32 = AtomicU32::new(0);

jobhost::entry!(fresh, |_: &Job| Ok((SEEN.fetch_add(1, Ordering::Relaxed) + 1).to_string()));

fn text(job: &Job) -> String {
    String::from_utf8_lossy(job.input()).into_owned()
}
