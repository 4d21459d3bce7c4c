//! The smallest useful worker: it greets whoever the payload names.

use jobhost::{Failure, Job, Result};

jobhost::worker!(hello);

/// Greets. An empty payload can't be cured by another attempt.
fn hello(job: &Job) -> Result<String> {
    let name = std::str::from_utf8(job.input()).map_err(jobhost::permanent)?.trim();
    if name.is_empty() {
        return Err(Failure::new("nobody to greet: the payload is empty").permanent());
    }
    Ok(format!("hello, {}", name))
}

#[cfg(test)]
mod tests {
    use jobhost::testing::{run, Attempt};

    #[test]
    fn greets() {
        let got = run(super::hello, Attempt { input: b"Ada\n".to_vec(), ..Attempt::default() });
        assert_eq!(got.output, b"hello, Ada");
        let got = run(super::hello, Attempt::default());
        assert_eq!(got.failure.unwrap().0, 2);
    }
}
