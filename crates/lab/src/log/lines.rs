//! Splits a byte stream into lines, in one buffer that grows with the longest line up to a limit.

use std::io::{self, Read};

use super::MAX_TEXT;

/// The bytes read by one call.
const CHUNK: usize = 1 << 20;

/// A stream split into lines. A failed read ends it; [`Lines::failure`] returns the error.
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The start of the unread bytes in the buffer.
    start: usize,
    end: usize,
    /// The position up to which there is no line end.
    searched: usize,
    finished: bool,
    failure: Option<io::Error>,
    limit: usize,
}

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub bytes: &'a [u8],
    /// The number of bytes to pass to [`Lines::consume`].
    len: usize,
    /// Whether the line is longer than the limit. Then this is its beginning, and the rest is
    /// dropped.
    pub cut: bool,
}

impl<R: Read> Lines<R> {
    pub fn new(source: R) -> Self {
        Self::with_limit(source, MAX_TEXT)
    }

    pub(crate) fn with_limit(source: R, limit: usize) -> Self {
        Lines {
            source,
            buffer: vec![0; CHUNK.min(limit)],
            start: 0,
            end: 0,
            searched: 0,
            finished: false,
            failure: None,
            limit,
        }
    }

    pub fn source(&self) -> &R {
        &self.source
    }

    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Returns up to `len` of the next bytes without consuming them.
    pub fn look_ahead(&mut self, len: usize) -> &[u8] {
        while self.end - self.start < len.min(self.limit) && self.fill() {}
        &self.buffer[self.start..self.end.min(self.start + len)]
    }

    /// Reads more bytes. Returns false if there are none, or if the buffer has reached the limit.
    fn fill(&mut self) -> bool {
        if self.finished {
            return false;
        }
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.searched -= self.start;
                self.start = 0;
            } else if self.buffer.len() < self.limit {
                let len = (self.buffer.len() * 2).min(self.limit);
                self.buffer.resize(len, 0);
            } else {
                return false;
            }
        }
        loop {
            if crate::interrupt::requested() {
                self.finished = true;
                return false;
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.finished = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    self.finished = true;
                    self.failure = Some(e);
                }
            }
            return !self.finished;
        }
    }

    /// Returns the next line without consuming it.
    #[inline]
    pub fn peek(&mut self) -> Option<Line<'_>> {
        loop {
            let from = self.searched.max(self.start);
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[from..self.end]) {
                let end = from + at;
                self.searched = end;
                return Some(Line {
                    bytes: &self.buffer[self.start..end],
                    len: end + 1 - self.start,
                    cut: false,
                });
            }
            self.searched = self.end;
            if self.fill() {
                continue;
            }
            if self.finished {
                let bytes = &self.buffer[self.start..self.end];
                return (!bytes.is_empty()).then_some(Line {
                    bytes,
                    len: bytes.len(),
                    cut: false,
                });
            }
            return Some(Line {
                bytes: &self.buffer[self.start..self.end],
                len: self.limit,
                cut: true,
            });
        }
    }

    /// Consumes the line that [`Lines::peek`] returned.
    #[inline]
    pub fn consume(&mut self) {
        let Some(line) = self.peek() else { return };
        let (len, cut) = (line.len, line.cut);
        self.start += len;
        if cut {
            self.skip_rest();
        }
        if self.start == self.end {
            (self.start, self.end, self.searched) = (0, 0, 0);
        }
    }

    /// Skips the rest of a line that was too long.
    fn skip_rest(&mut self) {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += at + 1;
                self.searched = self.start;
                return;
            }
            (self.start, self.end, self.searched) = (0, 0, 0);
            if !self.fill() {
                return;
            }
        }
    }
}
