//! A reader of JSON: a worker need not bring a library for what takes a page.

use std::fmt;

/// Json is a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Fault is where a text is no JSON, in bytes from 1, and what was expected there.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    pub column: usize,
    pub expected: &'static str,
}

impl Json {
    /// Reads a text that is one value.
    pub fn parse(text: &str) -> Result<Json, Fault> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let value = reader.value()?;
        reader.space();
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.fault("the end")),
        }
    }

    /// Returns what is at a path such as `user.name`; null if there is nothing.
    pub fn at(&self, path: &str) -> &Json {
        path.split('.').fold(self, |value, name| match value {
            Json::Object(fields) => fields.iter().find(|(key, _)| key == name).map_or(&Json::Null, |(_, v)| v),
            Json::List(items) => name.parse().ok().and_then(|i: usize| items.get(i)).unwrap_or(&Json::Null),
            _ => &Json::Null,
        })
    }
}

/// Values are written without spaces; texts as JSON has them.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{}", value),
            Json::Number(value) => write!(f, "{}", value),
            Json::Text(text) => quote(f, text),
            Json::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{}", if i > 0 { "," } else { "" }, item)?;
                }
                f.write_str("]")
            }
            Json::Object(fields) => {
                f.write_str("{")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    quote(f, name)?;
                    write!(f, ":{}", value)?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quote(f: &mut fmt::Formatter, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{}", c)?,
            c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
            c => write!(f, "{}", c)?,
        }
    }
    f.write_str("\"")
}

/// No input may make the reader nest its calls deeper than the stack is.
const MAX_DEPTH: usize = 100;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn fault(&self, expected: &'static str) -> Fault {
        Fault { column: self.at + 1, expected }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Takes a character if it is the next, after space.
    fn take(&mut self, c: u8) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Result<Json, Fault> {
        self.space();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fault("fewer levels"));
        }
        let value = match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        };
        self.depth -= 1;
        value
    }

    fn word(&mut self) -> Result<Json, Fault> {
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.fault("a value"))
    }

    fn number(&mut self) -> Result<Json, Fault> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(rest.len());
        match rest[..end].parse() {
            Ok(number) => {
                self.at += end;
                Ok(Json::Number(number))
            }
            Err(_) => Err(self.fault("a number")),
        }
    }

    fn list(&mut self) -> Result<Json, Fault> {
        let mut items = Vec::new();
        self.at += 1;
        if self.take(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value()?);
            if self.take(b']') {
                return Ok(Json::List(items));
            }
            if !self.take(b',') {
                return Err(self.fault("a comma or the end of the list"));
            }
        }
    }

    fn object(&mut self) -> Result<Json, Fault> {
        let mut fields = Vec::new();
        self.at += 1;
        if self.take(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.fault("a name"));
            }
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.fault("a colon"));
            }
            fields.push((name, self.value()?));
            if self.take(b'}') {
                return Ok(Json::Object(fields));
            }
            if !self.take(b',') {
                return Err(self.fault("a comma or the end of the object"));
            }
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let mut out = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(self.fault("the end of the text")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        self.at += 2;
        Ok(match self.text.as_bytes().get(self.at - 1) {
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(*c),
            Some(b'u') => {
                let mut code = self.hex()?;
                if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    code = 0x10000 + ((code - 0xd800) << 10) + (self.hex()?.wrapping_sub(0xdc00) & 0x3ff);
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => {
                self.at -= 1;
                return Err(self.fault("an escape sequence"));
            }
        })
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|c| c.is_ascii_hexdigit()));
        match digits.and_then(|d| u32::from_str_radix(d, 16).ok()) {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => Err(self.fault("four digits in hex")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        for (text, want) in [
            (" null ", "null"),
            ("[1, -2.5e1,true ,false, []]", "[1,-25,true,false,[]]"),
            (
                r#"{"a": {"b": "\"\\\/\n\u00e4\ud83d\ude00"}, "c":{}}"#,
                "{\"a\":{\"b\":\"\\\"\\\\/\\u000aä😀\"},\"c\":{}}",
            ),
        ] {
            assert_eq!(Json::parse(text).unwrap().to_string(), want);
        }
    }

    #[test]
    fn faults_have_a_place() {
        for (text, column, expected) in [
            ("", 1, "a value"),
            ("[1 2]", 4, "a comma or the end of the list"),
            (r#"{"a":1,}"#, 8, "a name"),
            (r#"{"a" 1}"#, 6, "a colon"),
            ("1 2", 3, "the end"),
            ("-", 1, "a number"),
            (r#""a"#, 3, "the end of the text"),
            (r#""\x""#, 3, "an escape sequence"),
            (r#""\u12ä""#, 4, "four digits in hex"),
        ] {
            assert_eq!(Json::parse(text), Err(Fault { column, expected }), "{}", text);
        }
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn paths_lead_to_values() {
        let value = Json::parse(r#"{"a":{"b":[1,{"c":2}]}}"#).unwrap();
        assert_eq!(value.at("a.b.1.c"), &Json::Number(2.0));
        for none in ["b", "a.x", "a.b.2", "a.b.c", ""] {
            assert_eq!(value.at(none), &Json::Null, "{}", none);
        }
    }
}
