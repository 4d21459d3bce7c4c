//! What handlers do arrives at the host, the one for tests.

use std::time::Duration;

use crate::testing::{run, Attempt, Outcome};
use crate::*;

fn given(input: &str) -> Attempt {
    Attempt { input: input.into(), ..Attempt::default() }
}

fn failure(handler: impl FnOnce(&Job) -> Result<()>) -> (i32, String) {
    run(handler, given("")).failure.unwrap()
}

#[test]
fn results_and_reports() {
    let got = run(
        |job| {
            job.write("one ")?;
            job.emit("news")?;
            job.log(Level::Warn, "careful");
            job.progress(1, 2);
            job.counter("seen", &[("a", "\"\\\n"), ("b", "")]).add(2.0)?;
            job.gauge("depth", &[]).set(0.5)?;
            job.set_started("in")?;
            assert_eq!((job.logs(Level::Debug), job.remaining()), (true, None));
            assert_eq!(job.get_state(&Select::tag("in"))?.message, "🟢 Started");
            Ok("two")
        },
        given(""),
    );
    assert_eq!((&got.output[..], &got.emitted[0][..]), (&b"one two"[..], &b"news"[..]));
    assert_eq!((&got.logs[0], got.progress), (&(4, "careful".to_string()), (1, 2)));
    assert_eq!((got.observed["seen{a=\"\\\"\\\\\\n\",b=\"\"}"], got.observed["depth"]), (2.0, 0.5));
    assert_eq!(got.states["in"].0, STATE_STARTED);
}

#[test]
fn info_is_found() {
    let wide = "wide ".repeat(100);
    let info = [("job.id", "j"), ("job.task", "7"), ("config.wide", &wide), ("label.a", "b"), ("secret.s", "t")];
    let info = info.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    run(
        |job| {
            assert_eq!((job.id().as_str(), job.task(), job.tasks()), ("j", 7, 0));
            assert_eq!((job.config("wide").as_ref(), job.config("none")), (Some(&wide), None));
            assert_eq!((job.label("a").unwrap().as_str(), job.secret("s")?.as_str()), ("b", "t"));
            assert_eq!(job.secret("other").unwrap_err().to_string(), "read secret.other: not granted");
            Ok(())
        },
        Attempt { info, ..given("") },
    );
}

#[test]
fn failures_are_told() {
    let parse = |_: &Job| "x".parse::<u8>().map(|_| ()).map_err(permanent);
    assert_eq!(failure(parse), (2, r#"{"message":"invalid digit found in string"}"#.into()));
    let full = Failure::new("a \"b\"").code("c").category(Category::Business).severity(Severity::Info);
    let full = full.context("n", 7).context("t", "x").context("ok", true).context("f", 0.5);
    let text = r#"{"message":"a \"b\"","code":"c","category":"business","severity":"info","context":{"n":7,"t":"x","ok":true,"f":0.5}}"#;
    assert_eq!(failure(|_| Err(full)), (1, text.into()));
    assert_eq!(failure(|_| Err(snooze(Duration::from_micros(1)))), (3, r#"{"after_ms":1}"#.into()));
    let (_, long) = failure(|_| Err(Failure::new("ä".repeat(5000)).context("x", "y".repeat(20000))));
    let cut = format!("{{\"message\":\"{}\",\"context\":{{\"omitted\":", "ä".repeat(2048));
    assert!(long.starts_with(&cut) && long.len() < 5000, "{}", long);
}

#[test]
fn keys_are_changed() {
    let got = run(
        |job| {
            let kv = job.kv();
            assert_eq!((kv.get("none")?, kv.version("none")?), (None, 0));
            assert_eq!((kv.add("n", 2)?, kv.add("n", -5)?), (2, -3));
            kv.set_for("long", "x".repeat(1000), Duration::from_secs(1))?;
            assert_eq!(kv.get("long")?.unwrap().len(), 1000);
            assert_eq!(kv.add("long", 1).unwrap_err().errno(), Errno::Invalid);
            assert_eq!(kv.compare_and_set("n", 9, "").unwrap_err().errno(), Errno::Conflict);
            kv.delete("long")?;
            Ok(())
        },
        given(""),
    );
    assert_eq!((got.failure, got.keys), (None, [("n".to_string(), b"-3".to_vec())].into()));
}

#[test]
fn jobs_are_submitted() {
    let got = run(
        |job| {
            let spec = Spec::new("other").id("i").delay(Duration::from_millis(1500)).tasks(2).label("l", "");
            assert_eq!(job.submit(&spec.payload("p\n"))?, "id-1");
            assert_eq!(job.submit(&Spec::new("none")).unwrap_err().errno(), Errno::Denied);
            assert_eq!(job.submit(&Spec::new("other").id("a\nb")).unwrap_err().errno(), Errno::Invalid);
            assert_eq!(job.defer(&Request::get("http://a/"), "done", "args")?, "id-2");
            Ok(())
        },
        Attempt { may_submit: vec!["other".into()], ..given("") },
    );
    assert_eq!(got.submitted, ["worker: other\nid: i\ndelay: 1500ms\ntasks: 2\nlabel.l:  \n\np\n"]);
    assert_eq!(got.deferred, [("done".into(), b"args".to_vec(), "GET http://a/\n\n".into())]);
}

fn fetch(answer: impl Fn(&str) -> String + 'static) -> Outcome {
    let handler = |job: &Job| Ok(job.get("http://a/b?secret")?.good()?.body);
    run(handler, Attempt { http: Some(Box::new(answer)), ..given("") })
}

#[test]
fn requests_are_answered() {
    let got = fetch(|request| format!("200\nx-sent: 1\n\n{}", request));
    assert_eq!(got.output, b"GET http://a/b?secret\n\n");
    for (answer, kind, text) in [
        ("404\n\n", 2, r#"{"message":"the server answered 404","code":"http_404","category":"business"}"#),
        (
            "503\nretry-after: 1\n\n",
            1,
            r#"{"message":"the server answered 503","code":"http_503","category":"network"}"#,
        ),
        ("0\nerror: dns\n\nno", 1, r#"{"message":"GET http://a/b: no","code":"dns","category":"network"}"#),
        ("0\nerror: tls\n\nno", 2, r#"{"message":"GET http://a/b: no","code":"tls","category":"network"}"#),
        ("nonsense", 1, r#"{"message":"GET http://a/b: I/O error","code":"unknown","category":"unknown"}"#),
    ] {
        let got = fetch(move |_| answer.into());
        assert_eq!(got.failure, Some((kind, text.into())), "{}", answer);
    }
    let denied = run(|job| Ok(job.get("http://a/")?.body), given("")).failure.unwrap();
    assert_eq!(
        denied,
        (2, r#"{"message":"GET http://a/: not granted","code":"denied","category":"validation"}"#.into())
    );
}

#[test]
fn batches_are_answered() {
    let requests = ["1", "2", "x y", "3"].map(|n| Request::new(&format!("GET{}", n), "http://a/"));
    let site = |request: &str| match &request[..4] {
        "GET1" => "404\n\n".to_string(),
        method => format!("200\n\n{}", method),
    };
    let got = run(
        |job| {
            let mut answers: Vec<_> = job.fetch_all(&requests, 2).collect();
            answers.sort_by_key(|(i, _)| *i);
            let status = |(_, answer): &(usize, Result<Response, HttpError>)| answer.as_ref().map_or(0, |r| r.status);
            assert_eq!(answers.iter().map(status).collect::<Vec<_>>(), [404, 200, 0, 200]);
            assert_eq!(job.race(&requests)?.1.body, b"GET2");
            job.race(&requests[..1]).map(drop)
        },
        Attempt { http: Some(Box::new(site)), ..given("") },
    );
    let text = r#"{"message":"the server answered 404","code":"http_404","category":"business"}"#;
    assert_eq!(got.failure, Some((2, text.into())));
}

#[test]
fn messages_come_in_order() {
    let messages = Some(["one", "", "three"].iter().map(|m| m.as_bytes().to_vec()).collect());
    let got = run(
        |job| {
            let timer = job.after(Duration::from_secs(1))?;
            assert_eq!(job.wait(&[&job.inbox()?, &timer], Some(Duration::ZERO))?, Some(0));
            for message in job.messages()? {
                job.emit(message?)?;
            }
            Ok(())
        },
        Attempt { messages, ..given("") },
    );
    assert_eq!(got.emitted, [&b"one"[..], b"", b"three"]);
    assert_eq!(
        run(|job| Ok(job.messages().map(drop)?), given("")).failure.unwrap().1,
        r#"{"message":"receive: not granted"}"#
    );
}

#[test]
fn random_bytes_differ() {
    run(
        |job| {
            let (a, b): ([u8; 13], [u8; 13]) = (job.random(), job.random());
            assert_ne!(a, b);
            Ok(())
        },
        given(""),
    );
}
