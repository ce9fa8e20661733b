//! Text to tree, with RapidJSON's messages and places, which MySQL shows.

use nfold_types::{ErrorCode, SqlError};

use super::number::{self, Number, NumberError};
use crate::tree::{Json, MAX_DEPTH, Work, too_deep};

/// Why a text is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseError {
    /// RapidJSON's message, and the offset of the error in bytes: errors 3140 and 3141.
    Syntax(&'static str, usize),
    /// Any other error: too deep (3157), or a statement that must end.
    Other(SqlError),
}

impl From<SqlError> for ParseError {
    fn from(e: SqlError) -> ParseError {
        ParseError::Other(e)
    }
}

type Parsed<T> = Result<T, ParseError>;

/// Parses a text.
///
/// # Errors
/// See [`ParseError`].
pub fn parse(text: &[u8], work: &Work<'_>) -> Parsed<Json> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        work,
    };
    parser.space();
    if parser.at == text.len() {
        return parser.fail("The document is empty.");
    }
    let value = parser.value()?;
    parser.space();
    if parser.at < text.len() {
        return parser.fail("The document root must not be followed by other values.");
    }
    Ok(value)
}

/// Whether a text is a document.
///
/// # Errors
/// 3157; a statement that must end.
pub fn is_valid(text: &[u8], work: &Work<'_>) -> Result<bool, SqlError> {
    match parse(text, work) {
        Ok(_) => Ok(true),
        Err(ParseError::Syntax(..)) => Ok(false),
        Err(ParseError::Other(e)) => Err(e),
    }
}

/// The text of a quoted string; other texts stay as they are.
///
/// # Errors
/// See [`ParseError`].
pub fn unquote(text: &[u8], work: &Work<'_>) -> Parsed<Option<String>> {
    if text.len() < 2 || text[0] != b'"' || text[text.len() - 1] != b'"' {
        return Ok(None);
    }
    match parse(text, work)? {
        Json::String(text) => Ok(Some(text)),
        _ => Ok(None),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    work: &'a Work<'a>,
}

impl Parser<'_> {
    fn fail<T>(&self, message: &'static str) -> Parsed<T> {
        Err(ParseError::Syntax(message, self.at))
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == wanted && self.at < self.text.len();
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Parsed<Json> {
        self.work.add(20)?;
        match self.peek() {
            b'n' => self.word(b"null", Json::Null),
            b't' => self.word(b"true", Json::Bool(true)),
            b'f' => self.word(b"false", Json::Bool(false)),
            b'"' => self.string().map(Json::String),
            b'[' => self.array(),
            b'{' => self.object(),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8], value: Json) -> Parsed<Json> {
        for byte in word {
            if !self.take(*byte) {
                return self.fail("Invalid value.");
            }
        }
        Ok(value)
    }

    fn number(&mut self) -> Parsed<Json> {
        match number::parse(&self.text[self.at..]) {
            Ok((number, length)) => {
                self.at += length;
                Ok(match number {
                    Number::Int(v) => Json::Int(v),
                    Number::UInt(v) => Json::UInt(v),
                    Number::Double(v) => Json::Double(v),
                })
            }
            Err((error, offset)) => {
                self.at += offset;
                self.fail(match error {
                    NumberError::Invalid => "Invalid value.",
                    NumberError::TooBig => "Number too big to be stored in double.",
                    NumberError::NoFraction => "Miss fraction part in number.",
                    NumberError::NoExponent => "Miss exponent in number.",
                })
            }
        }
    }

    fn deeper(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ParseError::Other(too_deep()));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn array(&mut self) -> Parsed<Json> {
        self.deeper()?;
        let mut elements = Vec::new();
        if !self.take(b']') {
            loop {
                elements.push(self.value()?);
                self.space();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return self.fail("Missing a comma or ']' after an array element.");
                }
                self.space();
            }
        }
        self.depth -= 1;
        Ok(Json::Array(elements))
    }

    fn object(&mut self) -> Parsed<Json> {
        self.deeper()?;
        let mut members = Vec::new();
        if !self.take(b'}') {
            loop {
                members.push(self.member()?);
                self.space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return self.fail("Missing a comma or '}' after an object member.");
                }
                self.space();
            }
        }
        self.depth -= 1;
        self.work.add(10 * members.len())?;
        Ok(Json::object(members))
    }

    fn member(&mut self) -> Parsed<(String, Json)> {
        if self.peek() != b'"' {
            return self.fail("Missing a name for object member.");
        }
        let name = self.string()?;
        self.space();
        if !self.take(b':') {
            return self.fail("Missing a colon after a name of object member.");
        }
        self.space();
        if name.len() > usize::from(u16::MAX) {
            let error = SqlError::new(ErrorCode::ER_JSON_KEY_TOO_BIG, &[]);
            return Err(ParseError::Other(error));
        }
        Ok((name, self.value()?))
    }

    /// Parses a string, which starts with the quotation mark at the current offset.
    fn string(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let special = |b: &u8| *b == b'"' || *b == b'\\' || *b < 0x20;
            let length = rest.iter().position(special).unwrap_or(rest.len());
            out.extend_from_slice(&rest[..length]);
            self.at += length;
            self.work.add(length)?;
            match self.peek() {
                b'"' => break,
                b'\\' => self.escape(&mut out)?,
                0 => return self.fail("Missing a closing quotation mark in string."),
                _ => return self.fail("Invalid encoding in string."),
            }
        }
        let text = String::from_utf8(out);
        let Ok(text) = text else {
            return self.fail("Invalid encoding in string.");
        };
        self.at += 1;
        Ok(text)
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Parsed<()> {
        let byte = match self.text.get(self.at + 1) {
            Some(b'u') => return self.unicode_escape(out),
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(&b @ (b'"' | b'\\' | b'/')) => b,
            _ => return self.fail("Invalid escape character in string."),
        };
        out.push(byte);
        self.at += 2;
        Ok(())
    }

    /// Four hexadecimal digits at `at`.
    fn hex(&self, at: usize) -> Parsed<u32> {
        let digits = self.text.get(at..at + 4);
        let valid = digits.filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let text = valid.and_then(|d| std::str::from_utf8(d).ok());
        match text.and_then(|t| u32::from_str_radix(t, 16).ok()) {
            Some(code) => Ok(code),
            None => self.fail("Incorrect hex digit after \\u escape in string."),
        }
    }

    fn unicode_escape(&mut self, out: &mut Vec<u8>) -> Parsed<()> {
        const WRONG_PAIR: &str = "The surrogate pair in string is invalid.";
        let mut code = self.hex(self.at + 2)?;
        let mut length = 6;
        if (0xD800..0xE000).contains(&code) {
            let second = &self.text[self.at + 6..];
            if code >= 0xDC00 || !second.starts_with(b"\\u") {
                return self.fail(WRONG_PAIR);
            }
            let low = self.hex(self.at + 8)?;
            if !(0xDC00..0xE000).contains(&low) {
                return self.fail(WRONG_PAIR);
            }
            code = 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            length = 12;
        }
        let Some(c) = char::from_u32(code) else {
            return self.fail(WRONG_PAIR);
        };
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += length;
        Ok(())
    }
}
