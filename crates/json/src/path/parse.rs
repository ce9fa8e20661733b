//! Text to path. Errors stand at the byte that MySQL reports.

use nfold_types::NoCheckpoint;

use super::{Index, Leg, Path};
use crate::text;
use crate::tree::{Json, Work};

/// A text that is no path, and how many of its bytes were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathError {
    /// Bytes read before the error was found.
    pub position: usize,
}

type Parsed<T> = Result<T, PathError>;

pub(super) fn parse(text: &str) -> Parsed<Path> {
    let mut parser = Parser {
        text: text.as_bytes(),
        at: 0,
    };
    parser.space();
    parser.expect(b'$')?;
    parser.space();
    let mut legs = Vec::new();
    while parser.at < text.len() {
        legs.push(parser.leg()?);
        parser.space();
    }
    if legs.last() == Some(&Leg::Descendants) {
        return parser.fail();
    }
    Ok(Path { legs })
}

/// Whether a name needs no quotation marks: an identifier of ECMAScript.
pub(super) fn is_identifier(name: &str) -> bool {
    let starts = |c: char| {
        c == '$' || c == '_' || c.is_alphabetic() || ('\u{20A0}'..='\u{20CF}').contains(&c)
    };
    let continues = |c: char| {
        let joiner = matches!(c, '\u{200C}' | '\u{200D}' | '\u{203F}' | '\u{2040}');
        let combining = ('\u{300}'..='\u{36F}').contains(&c);
        starts(c) || c.is_numeric() || joiner || combining
    };
    let mut chars = name.chars();
    chars.next().is_some_and(starts) && chars.all(continues)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn fail<T>(&self) -> Parsed<T> {
        Err(PathError { position: self.at })
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// Takes the next byte, which must be this one.
    fn expect(&mut self, wanted: u8) -> Parsed<()> {
        let found = self.peek();
        self.at += usize::from(found.is_some());
        if found == Some(wanted) {
            Ok(())
        } else {
            self.fail()
        }
    }

    fn leg(&mut self) -> Parsed<Leg> {
        match self.peek() {
            Some(b'.') => self.member(),
            Some(b'[') => self.cells(),
            Some(b'*') => {
                self.at += 1;
                self.expect(b'*')?;
                if self.peek() == Some(b'*') {
                    return self.fail();
                }
                Ok(Leg::Descendants)
            }
            _ => self.fail(),
        }
    }

    fn member(&mut self) -> Parsed<Leg> {
        self.at += 1;
        self.space();
        match self.peek() {
            None => self.fail(),
            Some(b'*') => {
                self.at += 1;
                Ok(Leg::AnyMember)
            }
            Some(b'"') => {
                let start = self.at;
                self.at = self.quoted_end();
                let name = &self.text[start..self.at];
                self.name_of(name.to_vec()).map(Leg::Member)
            }
            Some(_) => {
                let ends = |b: &u8| is_space(*b) || matches!(b, b'.' | b'[' | b'*');
                let rest = self.rest();
                let length = rest.iter().position(ends).unwrap_or(rest.len());
                let quoted = [b"\"", &rest[..length], b"\""].concat();
                self.at += length;
                let name = self.name_of(quoted)?;
                if is_identifier(&name) {
                    Ok(Leg::Member(name))
                } else {
                    self.fail()
                }
            }
        }
    }

    /// Place behind the quotation mark that ends the name that begins here.
    fn quoted_end(&self) -> usize {
        let mut at = self.at + 1;
        while let Some(byte) = self.text.get(at) {
            match byte {
                b'"' => return at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.text.len()
    }

    /// The name in quotation marks; its escapes are those of JSON.
    fn name_of(&self, quoted: Vec<u8>) -> Parsed<String> {
        match text::parse(&quoted, &Work::new(&NoCheckpoint)) {
            Ok(Json::String(name)) => Ok(name),
            _ => self.fail(),
        }
    }

    fn cells(&mut self) -> Parsed<Leg> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b'*') {
            self.at += 1;
            self.space();
            self.expect(b']')?;
            return Ok(Leg::AnyCell);
        }
        let from = self.index()?;
        let spaced = self.peek().is_some_and(is_space);
        self.space();
        let rest = self.rest();
        if spaced && rest.len() > 3 && rest.starts_with(b"to") && is_space(rest[2]) {
            self.at += 3;
            self.space();
            let to = self.index()?;
            let backwards = match (from.from_end, to.from_end) {
                (false, false) => from.offset > to.offset,
                (true, true) => from.offset < to.offset,
                _ => false,
            };
            if backwards {
                return self.fail();
            }
            self.space();
            self.expect(b']')?;
            return Ok(Leg::Range(from, to));
        }
        self.expect(b']')?;
        Ok(Leg::Cell(from))
    }

    fn index(&mut self) -> Parsed<Index> {
        if !self.rest().starts_with(b"last") {
            let offset = self.number()?;
            return Ok(Index {
                offset,
                from_end: false,
            });
        }
        self.at += 4;
        let behind = self.at;
        self.space();
        let mut offset = 0;
        if self.peek() == Some(b'-') {
            self.at += 1;
            self.space();
            offset = self.number()?;
        } else {
            self.at = behind;
        }
        Ok(Index {
            offset,
            from_end: true,
        })
    }

    fn number(&mut self) -> Parsed<u32> {
        let rest = self.rest();
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(&rest[..digits]).unwrap_or("");
        match text.parse() {
            Ok(number) => {
                self.at += digits;
                Ok(number)
            }
            Err(_) => self.fail(),
        }
    }
}
