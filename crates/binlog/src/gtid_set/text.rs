//! The text form of GTID sets, and where a text breaks it, in MySQL's words.
//!
//! # Picture
//! ```text
//! set      = item (',' item)*          an item may be empty
//! item     = uuid (':' (tag | number ['-' number]))* │ domain '-' server '-' sequence
//! uuid     = 32 hex digits, with all four dashes or none; with braces, if it has dashes
//! tag      = up to 32 letters, digits and underscores that begin with no digit
//! ```
//! White space may stand between any two of these.

use super::GtidSet;
use crate::BinlogError;
use crate::gtid::{Gtid, SourceUuid, Tag};

/// Longer excerpts of the text before and behind an error are cut.
const MOST_BEFORE: usize = 14;
const MOST_BEHIND: usize = 28;
const DOTS: &str = "...";

/// Parses a text. `domains`: it may have positions in MariaDB's domains.
///
/// # Errors
/// [`BinlogError::Gtid`].
pub(super) fn parse(text: &str, domains: bool) -> Result<GtidSet, BinlogError> {
    let mut parser = Parser {
        text: text.as_bytes(),
        at: 0,
    };
    let mut set = GtidSet::new();
    loop {
        parser.skip_spaces();
        if parser.at == parser.text.len() {
            return Ok(set);
        }
        if parser.takes(b',') {
            continue;
        }
        let item = text[parser.at..].split(',').next().unwrap_or_default();
        if domains && let Some(position) = domain_position(item) {
            set.add(&position);
            parser.at += item.len();
            continue;
        }
        parser.source(&mut set)?;
        parser.skip_spaces();
        if parser.at < parser.text.len() && !parser.takes(b',') {
            return Err(parser.error("Expected \",\"", parser.at));
        }
    }
}

/// A position in a domain of MariaDB.
fn domain_position(item: &str) -> Option<Gtid> {
    match item.contains(':') {
        true => None,
        false => Gtid::parse(item).ok(),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn skip_spaces(&mut self) {
        let is_space = |b: &&u8| b.is_ascii_whitespace() || **b == 0x0b;
        self.at += self.text[self.at..].iter().take_while(is_space).count();
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), BinlogError> {
        match self.takes(byte) {
            true => Ok(()),
            false => {
                let what = format!("Expected \"{}\"", char::from(byte));
                Err(self.error(&what, self.at))
            }
        }
    }

    /// A server's UUID, and its intervals.
    fn source(&mut self, set: &mut GtidSet) -> Result<(), BinlogError> {
        let uuid = self.uuid()?;
        let mut tag = Tag::default();
        loop {
            self.skip_spaces();
            if !self.takes(b':') {
                return Ok(());
            }
            self.skip_spaces();
            match self.tag() {
                Some(found) => tag = found,
                None => set.add_range((uuid, tag.clone()), self.interval()?),
            }
        }
    }

    fn uuid(&mut self) -> Result<SourceUuid, BinlogError> {
        const DASHES: [usize; 4] = [4, 6, 8, 10];
        let braces = self.takes(b'{');
        let mut dashes = braces;
        let mut uuid = [0; 16];
        for (i, byte) in uuid.iter_mut().enumerate() {
            if i == DASHES[0] {
                dashes |= self.peek() == Some(b'-');
            }
            if dashes && DASHES.contains(&i) {
                self.expect(b'-')?;
            }
            if self.text.len() - self.at < 2 {
                return Err(self.error("Expected at least two hex digits", self.at));
            }
            *byte = self.hex_digit()? << 4 | self.hex_digit()?;
        }
        if braces {
            self.expect(b'}')?;
        }
        Ok(SourceUuid(uuid))
    }

    fn hex_digit(&mut self) -> Result<u8, BinlogError> {
        let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
        let digit = digit.ok_or_else(|| self.error("Expected hex digit", self.at))?;
        self.at += 1;
        Ok(digit as u8)
    }

    /// The tag that stands here, if it is one.
    fn tag(&mut self) -> Option<Tag> {
        let rest = &self.text[self.at..];
        let is_of_tag = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
        let length = rest.iter().take_while(is_of_tag).count();
        let tag = Tag::parse(std::str::from_utf8(&rest[..length]).ok()?);
        let tag = tag.filter(|tag| !tag.as_str().is_empty())?;
        self.at += length;
        Some(tag)
    }

    /// The interval that stands here, without its end. It may be empty.
    fn interval(&mut self) -> Result<(u64, u64), BinlogError> {
        let start = self.at;
        let first = self.number()?;
        if first == 0 || first > Gtid::MAX_NUMBER {
            return Err(self.error("Interval start out of range", start));
        }
        let before = self.at;
        self.skip_spaces();
        if !self.takes(b'-') {
            self.at = before;
            return Ok((first, first + 1));
        }
        self.skip_spaces();
        let last = self.number()?;
        self.skip_spaces();
        match last > Gtid::MAX_NUMBER {
            true => Err(self.error("Interval end out of range", self.at)),
            false => Ok((first, last + 1)),
        }
    }

    fn number(&mut self) -> Result<u64, BinlogError> {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if length == 0 {
            return Err(self.error("Expected number", self.at));
        }
        let digits = std::str::from_utf8(&rest[..length]).unwrap_or_default();
        let number = digits
            .parse()
            .map_err(|_| self.error("Number out of range", self.at))?;
        self.at += length;
        Ok(number)
    }

    /// The error at a position of the text.
    fn error(&self, what: &str, at: usize) -> BinlogError {
        let (before, behind) = self.text.split_at(at);
        let behind = match behind.len() > MOST_BEHIND {
            true => escaped(&behind[..MOST_BEHIND - DOTS.len()]) + DOTS,
            false => escaped(behind),
        };
        if at == 0 {
            let text = format!("{what} at the beginning of the string: \"{behind}\"");
            return BinlogError::Gtid(text);
        }
        let before = match before.len() > MOST_BEFORE {
            true => DOTS.to_owned() + &escaped(&before[at - MOST_BEFORE + DOTS.len()..]),
            false => escaped(before),
        };
        BinlogError::Gtid(format!(
            "{what} after {at} characters, marked by [HERE] in: \"{before}[HERE]{behind}\""
        ))
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out += &format!("\\x{byte:02x}"),
        }
    }
    out
}
