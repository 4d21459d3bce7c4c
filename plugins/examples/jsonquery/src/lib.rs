//! A worker that asks questions of JSON lines: which of them, how many, how much.

mod json;
mod query;

use jobhost::{Category, Failure, Job, Level, Result};
use json::Json;
use query::{Groups, Query};

jobhost::worker!(jsonquery);

/// Returns the lines that match, or what there is to say of them.
fn jsonquery(job: &Job) -> Result<String> {
    let invalid = |message: String| Failure::new(message).category(Category::Validation).permanent();
    let text = std::str::from_utf8(job.input()).map_err(|e| invalid(e.to_string()).code("bad_text"))?;
    let mut query = Query::parse(&job.config("where").unwrap_or_default()).map_err(|e| invalid(e).code("bad_query"))?;
    (query.by, query.of) = (job.config("by"), job.config("of"));
    let summing = query.by.is_some() || query.of.is_some();

    let (mut out, mut groups) = (String::new(), Groups::default());
    let (mut lines, mut matched) = (0u64, 0u64);
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let value = Json::parse(line).map_err(|fault| {
            let place = format!("line {}, column {}: expected {}", i + 1, fault.column, fault.expected);
            invalid(place).code("bad_json").context("line", i + 1).context("column", fault.column)
        })?;
        lines += 1;
        if !query.matches(&value) {
            continue;
        }
        matched += 1;
        if summing {
            groups.add(&query, &value);
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    job.log(Level::Info, format!("{} of {} lines", matched, lines));
    Ok(if summing { groups.lines(&query) } else { out })
}

#[cfg(test)]
mod tests {
    use jobhost::testing::{run, Attempt};

    fn ask(input: &str, config: &[(&str, &str)]) -> Result<String, (i32, String)> {
        let info = config.iter().map(|(key, value)| (format!("config.{}", key), value.to_string())).collect();
        let got = run(super::jsonquery, Attempt { input: input.into(), info, ..Attempt::default() });
        got.failure.map_or(Ok(String::from_utf8(got.output).unwrap()), Err)
    }

    #[test]
    fn questions_are_answered() {
        let lines = "{\"a\":1,\"k\":\"x\"}\n\n{\"a\":2,\"k\":\"y\"}\r\n{\"a\":4,\"k\":\"y\"}\n";
        assert_eq!(ask(lines, &[("where", "a < 2")]).unwrap(), "{\"a\":1,\"k\":\"x\"}\n");
        assert_eq!(ask(lines, &[("by", "k")]).unwrap(), "{\"k\":\"y\",\"count\":2}\n{\"k\":\"x\",\"count\":1}\n");
        let sum = ask(lines, &[("of", "a"), ("where", "k == y")]).unwrap();
        assert_eq!(sum, "{\"count\":2,\"sum\":6,\"min\":2,\"mean\":3,\"max\":4}\n");
        let (kind, text) = ask("{}\n[1\n", &[]).unwrap_err();
        assert!(kind == 2 && text.contains("line 2, column 3: expected a comma or the end of the list"), "{}", text);
    }
}
