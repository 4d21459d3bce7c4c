//! As much of JSON as the host speaks: a worker need not bring a library for it.

use std::fmt::Write;

/// Returns a text as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' || c == '\x7f' => {
                let _ = write!(out, "\\u{:04x}", c as u32); // a string takes everything
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Splits an object into names and values, which stay as they are written.
/// `None` = it is no object.
pub fn fields(text: &str) -> Option<Vec<(String, &str)>> {
    let mut fields = Vec::new();
    let mut rest = text.trim_start().strip_prefix('{')?.trim_start();
    if rest.starts_with('}') {
        return Some(fields);
    }
    loop {
        let (name, after) = cut_value(rest)?;
        rest = after.trim_start().strip_prefix(':')?.trim_start();
        let (value, after) = cut_value(rest)?;
        fields.push((unquote(name)?, value));
        let after = after.trim_start();
        match after.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if after.starts_with('}') => return Some(fields),
            None => return None,
        }
    }
}

/// Cuts a text after the value that it begins with.
fn cut_value(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (i, c) in text.bytes().enumerate() {
        if quoted {
            quoted = escaped || c != b'"';
            escaped = c == b'\\' && !escaped;
        } else {
            match c {
                b'"' => quoted = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                b'}' | b']' | b',' | b':' | b' ' | b'\n' if depth == 0 => return Some(text.split_at(i)),
                _ => continue,
            }
        }
        if depth == 0 && !quoted {
            return Some(text.split_at(i + 1));
        }
    }
    Some((text, "")).filter(|_| depth == 0 && !quoted)
}

/// Returns what a JSON string stands for.
pub fn unquote(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let mut units = vec![hex(chars.as_str())?];
                chars = chars.as_str()[4..].chars();
                if (0xd800..0xdc00).contains(&units[0]) && chars.as_str().starts_with("\\u") {
                    units.push(hex(&chars.as_str()[2..])?);
                    chars = chars.as_str()[6..].chars();
                }
                out.push_str(&String::from_utf16_lossy(&units));
            }
            c => out.push(c),
        }
    }
    Some(out)
}

fn hex(text: &str) -> Option<u16> {
    u16::from_str_radix(text.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_survive() {
        for text in ["", "plain", "\"\\/\n\r\t\x01\x7f", "🟢 Ä", "{}[],:"] {
            assert_eq!(unquote(&quote(text)).as_deref(), Some(text));
        }
        assert_eq!(unquote(r#""\ud83d\ude00\u00e4\b\/""#).unwrap(), "😀ä\x08/");
        for bad in ["", "\"", "x", r#""\u12""#, r#""\"#] {
            assert_eq!(unquote(bad), None, "{}", bad);
        }
    }

    #[test]
    fn objects_are_split() {
        let text = r#" {"a": 1,"b":{"c":[1,"}"],"d":"\"}"} , "e":"x,y","f":true}"#;
        let fields = fields(text).unwrap();
        let want = [("a", "1"), ("b", r#"{"c":[1,"}"],"d":"\"}"}"#), ("e", "\"x,y\""), ("f", "true")];
        assert_eq!(fields, want.map(|(name, value)| (name.to_string(), value)));
        assert_eq!(super::fields("{}"), Some(vec![]));
        for bad in ["", "[]", "{", r#"{"a"}"#, r#"{"a":1"#, r#"{"a":"x}"#, "{a:1}"] {
            assert_eq!(super::fields(bad), None, "{}", bad);
        }
    }
}
