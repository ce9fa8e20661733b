//! The fields of a text file that LOAD DATA reads, by MySQL's rules (`READ_INFO`, sql_load.cc).
//!
//! The file is read in pieces. Only the current field is held whole.

use std::ops::Range;

use nfold_sql::ast::FileFormat;
use nfold_types::charset::is_ascii;
use nfold_types::{Charset, ErrorCode, SqlError};

use crate::env::FileSource;
use crate::runtime::Runtime;

/// The most bytes of one character.
const MAX_CHAR_BYTES: usize = 4;

/// The end of a field or a line.
#[derive(Clone, Copy)]
enum Delimiter {
    Field,
    Line,
}

/// The plain fields of a line that were found ahead: finding them together costs less.
#[derive(Default)]
struct FieldsAhead {
    /// Where they end in the buffer. The first one begins at the next byte of the buffer.
    ends: Vec<usize>,
    next: usize,
    /// The last one ends with the line.
    ends_line: bool,
    /// None of them has other characters than those of ASCII.
    is_ascii: bool,
}

impl FieldsAhead {
    fn clear(&mut self) {
        self.ends.clear();
        (self.next, self.ends_line) = (0, false);
    }
}

/// Reads the fields of a file one after the other.
pub(super) struct FileReader<'f> {
    source: &'f mut dyn FileSource,
    charset: &'static Charset,
    buffer: Vec<u8>,
    /// The next byte of `buffer`.
    at: usize,
    /// Bytes that are read again before those of `buffer`; the last one is the first.
    pushed: Vec<u8>,
    field: Vec<u8>,
    /// Where the field lies in `buffer`, if that holds all of it as it is meant. Then `field` is
    /// unused.
    in_buffer: Option<Range<usize>>,
    field_end: Vec<u8>,
    line_end: Vec<u8>,
    line_start: Vec<u8>,
    enclosed: Option<u8>,
    escape: Option<u8>,
    /// The only byte of the delimiter of fields, if neither this nor the first byte of the
    /// delimiter of lines escapes or encloses.
    short_end: Option<u8>,
    /// Bytes that are nothing but a part of their field.
    plain: Box<[bool; 256]>,
    /// Fields of the line in `buffer` that were found ahead.
    ahead: FieldsAhead,
    /// The line's start is still to be found.
    seeks_start: bool,
    line_has_ended: bool,
    file_has_ended: bool,
    /// The field was `\N`, or held it.
    has_null: bool,
    was_enclosed: bool,
    /// The last line had more than the fields that were read.
    was_cut: bool,
}

/// A field of the file without its escapes and quotes.
pub(super) struct Field<'r> {
    pub bytes: &'r [u8],
    /// `\N`, or NULL without the quotes that fields have.
    pub is_null: bool,
}

impl<'f> FileReader<'f> {
    /// At the beginning of the file.
    pub fn new(source: &'f mut dyn FileSource, format: &FileFormat) -> FileReader<'f> {
        let charset = source.collation().known().charset;
        let escape = format.escaped.first().copied();
        let enclosed = format.enclosed.first().copied();
        // Of two equal delimiters MySQL uses the one of fields.
        let line_end = match format.line_end == format.field_end {
            true => Vec::new(),
            false => format.line_end.clone(),
        };
        let special = [
            escape,
            enclosed,
            format.field_end.first().copied(),
            line_end.first().copied(),
        ];
        let has_other_use = |b: u8| [escape, enclosed].contains(&Some(b));
        let short_end = match (&format.field_end[..], &line_end[..]) {
            ([field], [line, ..]) if !has_other_use(*field) && !has_other_use(*line) => {
                Some(*field)
            }
            _ => None,
        };
        let is_special = |b: u8| special.contains(&Some(b));
        let high = (0x80..=0xff).any(is_special);
        let opaque = !charset.is_multi_byte() || charset.keeps_ascii_apart() && !high;
        let plain = std::array::from_fn(|b| !is_special(b as u8) && (b < 0x80 || opaque));
        FileReader {
            source,
            charset,
            buffer: Vec::new(),
            at: 0,
            pushed: Vec::new(),
            field: Vec::new(),
            in_buffer: None,
            field_end: format.field_end.clone(),
            line_end,
            line_start: format.line_start.clone(),
            enclosed,
            escape,
            short_end,
            plain: Box::new(plain),
            ahead: FieldsAhead::default(),
            seeks_start: !format.line_start.is_empty(),
            line_has_ended: false,
            file_has_ended: false,
            has_null: false,
            was_enclosed: false,
            was_cut: false,
        }
    }

    /// The field that was read last.
    pub fn field(&self) -> Field<'_> {
        let bytes = &self.bytes()[usize::from(self.was_enclosed)..];
        let word = !self.was_enclosed && self.enclosed.is_some() && bytes == b"NULL";
        Field {
            bytes,
            is_null: word || self.has_null && bytes.len() == 1,
        }
    }

    /// The field that was read last, with its first quote.
    #[inline]
    fn bytes(&self) -> &[u8] {
        match &self.in_buffer {
            Some(at) => &self.buffer[at.clone()],
            None => &self.field,
        }
    }

    /// Whether the last line had more than the fields that were read.
    pub fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// Reads the next field; false: the line, or the file, has no more.
    ///
    /// # Errors
    /// 1300 for bytes that begin no character, and those of the file.
    pub fn read_field(&mut self, rt: &Runtime<'_>) -> Result<bool, SqlError> {
        self.has_null = false;
        if self.line_has_ended || self.seeks_start && !self.start_line(rt)? {
            return Ok(false);
        }
        if self.take_plain_field() {
            if !self.ahead.is_ascii {
                self.check_characters()?;
            }
            return Ok(true);
        }
        let Some(first) = self.get(rt)? else {
            return Ok(self.end_file(false));
        };
        self.field.clear();
        self.in_buffer = None;
        let quote = self.enclosed.filter(|q| *q == first);
        match quote {
            Some(quote) => self.field.push(quote),
            None => self.unget(first),
        }
        let found = self.read_to_delimiter(rt, quote)?;
        self.check_characters()?;
        Ok(found)
    }

    /// Reads the rest of a field that began with `quote`.
    fn read_to_delimiter(&mut self, rt: &Runtime<'_>, quote: Option<u8>) -> Result<bool, SqlError> {
        loop {
            self.take_plain();
            let Some(byte) = self.get(rt)? else {
                return Ok(self.end_file(true));
            };
            if self.escape == Some(byte) {
                let Some(next) = self.get(rt)? else {
                    self.field.push(byte);
                    return Ok(self.end_file(true));
                };
                // A sign that both encloses and escapes is escaped by doubling it.
                if self.escape != self.enclosed || next == byte {
                    self.push_escaped(rt, next)?;
                    continue;
                }
                self.unget(next);
            }
            match quote {
                None if self.at_delimiter(rt, Delimiter::Line, byte)? => {
                    return Ok(self.end_field(false, true));
                }
                None if self.at_delimiter(rt, Delimiter::Field, byte)? => {
                    return Ok(self.end_field(false, false));
                }
                Some(quote) if quote == byte => {
                    let Some(next) = self.get(rt)? else {
                        return Ok(self.end_field(true, true));
                    };
                    if next == quote {
                        self.field.push(quote);
                        continue;
                    }
                    if self.at_delimiter(rt, Delimiter::Line, next)? {
                        return Ok(self.end_field(true, true));
                    }
                    if self.at_delimiter(rt, Delimiter::Field, next)? {
                        return Ok(self.end_field(true, false));
                    }
                    // The quote is part of the field.
                    self.unget(next);
                }
                _ => {}
            }
            self.push_character(rt, byte, false)?;
        }
    }

    /// Reads `len` bytes, or to the end of the line (fields of fixed lengths); false: the file has
    /// no more.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_fixed(&mut self, rt: &Runtime<'_>, len: usize) -> Result<bool, SqlError> {
        self.was_enclosed = false;
        if self.line_has_ended || !self.start_line(rt)? {
            return Ok(false);
        }
        self.field.clear();
        self.in_buffer = None;
        while self.field.len() < len {
            let Some(byte) = self.get(rt)? else {
                self.end_file(false);
                return Ok(!self.field.is_empty());
            };
            if self.escape == Some(byte) {
                match self.get(rt)? {
                    Some(next) => {
                        let meant = self.unescape(next);
                        self.field.push(meant);
                    }
                    None => self.field.push(byte),
                }
                continue;
            }
            if self.at_delimiter(rt, Delimiter::Line, byte)? {
                self.line_has_ended = true;
                break;
            }
            self.field.push(byte);
        }
        Ok(true)
    }

    /// Goes to the beginning of the next line; false: the file has none.
    ///
    /// # Errors
    /// Those of the file.
    pub fn next_line(&mut self, rt: &Runtime<'_>) -> Result<bool, SqlError> {
        self.was_cut = false;
        self.ahead.clear();
        self.seeks_start = !self.line_start.is_empty();
        if self.line_has_ended || self.file_has_ended {
            self.line_has_ended = false;
            return Ok(!self.file_has_ended);
        }
        if self.line_end.is_empty() {
            return Ok(true);
        }
        loop {
            let Some(byte) = self.get(rt)? else {
                self.file_has_ended = true;
                return Ok(false);
            };
            if self.escape == Some(byte) {
                self.was_cut = true;
                if self.get(rt)?.is_none() {
                    return Ok(false);
                }
                continue;
            }
            if self.at_delimiter(rt, Delimiter::Line, byte)? {
                return Ok(true);
            }
            self.was_cut = true;
            if !byte.is_ascii() {
                self.field.clear();
                self.push_character(rt, byte, false)?;
            }
        }
    }

    /// Finds the text of LINES STARTING BY; false: the file has no more of it.
    fn start_line(&mut self, rt: &Runtime<'_>) -> Result<bool, SqlError> {
        if !std::mem::take(&mut self.seeks_start) {
            return Ok(true);
        }
        let mut matched = 0;
        while matched < self.line_start.len() {
            let Some(byte) = self.get(rt)? else {
                return Ok(self.end_file(false));
            };
            if byte == self.line_start[matched] {
                matched += 1;
                continue;
            }
            // The search continues after the first byte that matched.
            if matched > 0 {
                self.pushed.push(byte);
                let again = self.line_start[1..matched].iter().rev();
                self.pushed.extend(again);
            }
            matched = 0;
        }
        Ok(true)
    }

    /// Whether a delimiter begins with `byte`, which has been read; the rest of it is read.
    fn at_delimiter(
        &mut self,
        rt: &Runtime<'_>,
        which: Delimiter,
        byte: u8,
    ) -> Result<bool, SqlError> {
        let bytes = |r: &Self, i: usize| match which {
            Delimiter::Field => r.field_end.get(i).copied(),
            Delimiter::Line => r.line_end.get(i).copied(),
        };
        if bytes(self, 0) != Some(byte) {
            return Ok(false);
        }
        let mut read = 1;
        while let Some(wanted) = bytes(self, read) {
            let next = self.get(rt)?;
            if next == Some(wanted) {
                read += 1;
                continue;
            }
            self.pushed.extend(next);
            let again = (1..read).rev().filter_map(|i| bytes(self, i));
            let again: Vec<u8> = again.collect();
            self.pushed.extend(again);
            return Ok(false);
        }
        Ok(true)
    }

    /// Appends the character that an escaped byte means.
    fn push_escaped(&mut self, rt: &Runtime<'_>, byte: u8) -> Result<(), SqlError> {
        if !byte.is_ascii() {
            return self.push_character(rt, byte, true);
        }
        let meant = self.unescape(byte);
        self.field.push(meant);
        Ok(())
    }

    fn unescape(&mut self, byte: u8) -> u8 {
        match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 0x08,
            b'0' => 0,
            b'Z' => 0x1a,
            b'N' => {
                self.has_null = true;
                byte
            }
            other => other,
        }
    }

    /// Appends the character that begins with `byte`. `escaped`: its later bytes may be escaped,
    /// too.
    fn push_character(
        &mut self,
        rt: &Runtime<'_>,
        byte: u8,
        escaped: bool,
    ) -> Result<(), SqlError> {
        if byte.is_ascii() || !self.charset.is_multi_byte() {
            self.field.push(byte);
            return Ok(());
        }
        let mut bytes = [byte, 0, 0, 0];
        let mut len = 1;
        // As written, for bytes that are no character.
        let mut raw = Vec::new();
        while len < MAX_CHAR_BYTES {
            let Some(mut next) = self.get(rt)? else { break };
            raw.push(next);
            if escaped
                && self.escape == Some(next)
                && let Some(meant) = self.get(rt)?
            {
                raw.push(meant);
                next = self.unescape(meant);
            }
            bytes[len] = next;
            len += 1;
            if self.charset.step(&bytes[..len]) == len {
                self.field.extend_from_slice(&bytes[..len]);
                return Ok(());
            }
        }
        self.field.push(byte);
        self.pushed.extend(raw.iter().rev());
        Ok(())
    }

    /// Error 1300 where a byte of the field cannot begin a character.
    fn check_characters(&self) -> Result<(), SqlError> {
        let field = self.bytes();
        if !self.charset.is_utf8() || is_ascii(field) {
            return Ok(());
        }
        let mut rest = field;
        while let Err(at) = self.charset.is_valid(rest) {
            let begins = match rest[at] {
                0xc2..=0xef => true,
                0xf0..=0xf7 => usize::from(self.charset.max_len) == MAX_CHAR_BYTES,
                _ => false,
            };
            if !begins {
                let good = field.len() - rest.len() + at;
                let text = String::from_utf8_lossy(&field[..good]);
                return Err(SqlError::new(
                    ErrorCode::ER_INVALID_CHARACTER_STRING,
                    &[&self.charset.name, &text],
                ));
            }
            rest = &rest[at + 1..];
        }
        Ok(())
    }

    /// The number of bytes at the front of `rest` that are nothing but a part of their field.
    #[inline]
    fn plain_len(&self, rest: &[u8]) -> usize {
        let special = rest.iter().position(|b| !self.plain[usize::from(*b)]);
        special.unwrap_or(rest.len())
    }

    /// Appends the bytes of the buffer that have no meaning.
    #[inline]
    fn take_plain(&mut self) {
        if !self.pushed.is_empty() {
            return;
        }
        let rest = &self.buffer[self.at..];
        let len = self.plain_len(rest);
        self.field.extend_from_slice(&rest[..len]);
        self.at += len;
    }

    /// Reads a field without quotes and escapes whose end is in the buffer; false: nothing is read.
    #[inline]
    fn take_plain_field(&mut self) -> bool {
        if self.ahead.next == self.ahead.ends.len() && !self.look_ahead() {
            return false;
        }
        let end = self.ahead.ends[self.ahead.next];
        self.ahead.next += 1;
        let is_last = self.ahead.next == self.ahead.ends.len();
        self.line_has_ended = is_last && self.ahead.ends_line;
        self.in_buffer = Some(self.at..end);
        self.at = end
            + match self.line_has_ended {
                true => self.line_end.len(),
                false => 1,
            };
        self.was_enclosed = false;
        true
    }

    /// Finds the fields from here to the end of the line, as far as they are in the buffer and have
    /// no quotes and escapes; false: there is none.
    fn look_ahead(&mut self) -> bool {
        self.ahead.clear();
        let (Some(field_end), true) = (self.short_end, self.pushed.is_empty()) else {
            return false;
        };
        let (mut at, from) = (self.at, self.at);
        loop {
            let rest = &self.buffer[at..];
            let len = self.plain_len(rest);
            let end = &rest[len..];
            // The delimiter of lines comes first, as it may begin with that of fields.
            if end.starts_with(&self.line_end) {
                self.ahead.ends_line = true;
                self.ahead.ends.push(at + len);
                break;
            }
            if end.first() != Some(&field_end) || self.line_end.starts_with(end) {
                break;
            }
            self.ahead.ends.push(at + len);
            at += len + 1;
        }
        let last = self.ahead.ends.last().copied();
        self.ahead.is_ascii = last.is_some_and(|last| is_ascii(&self.buffer[from..last]));
        last.is_some()
    }

    /// The field has ended; `line`: with the line.
    fn end_field(&mut self, enclosed: bool, line: bool) -> bool {
        self.was_enclosed = enclosed;
        self.line_has_ended = line;
        true
    }

    /// The file has ended; `found`: in a field.
    fn end_file(&mut self, found: bool) -> bool {
        self.was_enclosed = false;
        self.line_has_ended = true;
        self.file_has_ended = true;
        found
    }

    fn unget(&mut self, byte: u8) {
        self.pushed.push(byte);
    }

    /// The next byte; `None`: the file has ended.
    #[inline]
    fn get(&mut self, rt: &Runtime<'_>) -> Result<Option<u8>, SqlError> {
        if let Some(byte) = self.pushed.pop() {
            return Ok(Some(byte));
        }
        if self.at == self.buffer.len() && !self.fill(rt)? {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(self.buffer[self.at - 1]))
    }

    /// Reads the next piece of the file; false: there is none.
    #[cold]
    fn fill(&mut self, rt: &Runtime<'_>) -> Result<bool, SqlError> {
        self.buffer.clear();
        self.at = 0;
        while rt.read_file(self.source, &mut self.buffer)? {
            if !self.buffer.is_empty() {
                return Ok(true);
            }
        }
        Ok(!self.buffer.is_empty())
    }
}
