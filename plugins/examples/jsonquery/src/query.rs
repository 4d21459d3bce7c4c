//! What is asked of the lines: which of them, and what about them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::json::Json;

/// Query is a question.
#[derive(Debug, Default)]
pub struct Query {
    conditions: Vec<Condition>,
    /// The path by whose values lines are counted; `None` = lines are not counted.
    pub by: Option<String>,
    /// The path of the numbers that are summed up.
    pub of: Option<String>,
}

#[derive(Debug)]
struct Condition {
    path: String,
    operator: &'static str,
    value: Json,
}

/// The operators, longer ones first.
const OPERATORS: [&str; 7] = ["==", "!=", "<=", ">=", "<", ">", "~"];

impl Query {
    /// Reads conditions such as `status >= 500 and path ~ "/api/"`.
    pub fn parse(conditions: &str) -> Result<Query, String> {
        let conditions = conditions.split(" and ").filter(|c| !c.trim().is_empty()).map(Condition::parse);
        Ok(Query { conditions: conditions.collect::<Result<_, _>>()?, ..Query::default() })
    }

    /// Reports whether all conditions hold.
    pub fn matches(&self, line: &Json) -> bool {
        self.conditions.iter().all(|c| c.holds(line))
    }
}

impl Condition {
    fn parse(text: &str) -> Result<Condition, String> {
        let text = text.trim();
        // The one that comes first; of those that begin there, the longest.
        let found = OPERATORS.iter().filter_map(|o| text.find(o).map(|at| (at, *o)));
        let (at, operator) = found
            .min_by_key(|(at, o)| (*at, usize::MAX - o.len()))
            .filter(|(at, _)| *at > 0)
            .ok_or_else(|| format!("{:?} is not PATH OPERATOR VALUE, with one of {}", text, OPERATORS.join(" ")))?;
        let value = text[at + operator.len()..].trim();
        Ok(Condition {
            path: text[..at].trim().into(),
            operator,
            // Words need no quotes.
            value: Json::parse(value).unwrap_or_else(|_| Json::Text(value.into())),
        })
    }

    fn holds(&self, line: &Json) -> bool {
        let found = line.at(&self.path);
        let order = match (found, &self.value) {
            (Json::Number(a), Json::Number(b)) => a.partial_cmp(b),
            (Json::Text(a), Json::Text(b)) => Some(a.cmp(b)),
            _ => None, // never less, never greater
        };
        match self.operator {
            "==" => found == &self.value,
            "!=" => found != &self.value,
            "<" => order.map(Ordering::is_lt) == Some(true),
            "<=" => order.map(Ordering::is_le) == Some(true),
            ">" => order.map(Ordering::is_gt) == Some(true),
            ">=" => order.map(Ordering::is_ge) == Some(true),
            _ => matches!((found, &self.value), (Json::Text(a), Json::Text(b)) if a.contains(b.as_str())),
        }
    }
}

/// Summary is what there is to say of lines with the same value.
#[derive(Debug, Default)]
struct Summary {
    count: u64,
    numbers: u64,
    sum: f64,
    least: f64,
    most: f64,
}

/// Groups are summaries by value, as JSON.
#[derive(Debug, Default)]
pub struct Groups(BTreeMap<String, Summary>);

impl Groups {
    /// Counts a line.
    pub fn add(&mut self, query: &Query, line: &Json) {
        let key = query.by.as_ref().map_or(&Json::Null, |by| line.at(by));
        let s = self.0.entry(key.to_string()).or_default();
        s.count += 1;
        if let Some(Json::Number(n)) = query.of.as_ref().map(|of| line.at(of)) {
            s.least = if s.numbers == 0 { *n } else { s.least.min(*n) };
            s.most = if s.numbers == 0 { *n } else { s.most.max(*n) };
            s.numbers += 1;
            s.sum += n;
        }
    }

    /// Writes a line of JSON for each group, the largest first.
    pub fn lines(&self, query: &Query) -> String {
        let mut groups: Vec<_> = self.0.iter().collect();
        groups.sort_by_key(|(_, s)| u64::MAX - s.count);
        let mut out = String::new();
        for (key, s) in groups {
            let mut fields = vec![("count", Json::Number(s.count as f64))];
            if s.numbers > 0 {
                let round = |n: f64| (n * 1000.0).round() / 1000.0;
                let mean = s.sum / s.numbers as f64;
                let numbers = [("sum", round(s.sum)), ("min", s.least), ("mean", round(mean)), ("max", s.most)];
                fields.extend(numbers.map(|(name, n)| (name, Json::Number(n))));
            }
            if let Some(by) = &query.by {
                // The key was written from a value.
                fields.insert(0, (by, Json::parse(key).unwrap_or(Json::Null)));
            }
            let fields = fields.into_iter().map(|(name, value)| (name.to_string(), value));
            out += &format!("{}\n", Json::Object(fields.collect()));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold() {
        let line = Json::parse(r#"{"status":503,"path":"/api/x","user":{"name":"Ada"},"n":null}"#).unwrap();
        for (query, want) in [
            ("", true),
            ("status == 503", true),
            ("status>=500 and status<600", true),
            ("status < 500", false),
            ("status != 503", false),
            ("path ~ /api/", true),
            ("path ~ \"/web/\"", false),
            ("user.name == Ada", true),
            ("user.name > Aa and user.name <= Ada", true),
            ("none == null and n == null", true),
            ("path > 5", false),
        ] {
            assert_eq!(Query::parse(query).unwrap().matches(&line), want, "{}", query);
        }
        assert!(Query::parse("status").unwrap_err().starts_with("\"status\" is not PATH OPERATOR VALUE"));
        assert!(Query::parse("== 5").is_err());
    }
}
