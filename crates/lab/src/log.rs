//! Readers of server logs: slow logs of MySQL, MariaDB and Percona Server, and general logs; plain
//! or compressed, from files or standard input.
//!
//! ```text
//!  input::Input (bytes, decompressed) ─▶ lines::Lines ─▶ slow::Slow | general::General ─▶ Event,
//!  ...
//! ```
//! A single [`Event`] is filled again and again, so memory does not grow with the log. Unreadable
//! parts are skipped and counted ([`Skipped`]). Only a failed read ends a log early, and that is
//! counted, too.

pub mod general;
pub mod input;
pub mod lines;
pub mod slow;
pub mod time;

#[cfg(test)]
mod tests;

use crate::LabError;
use input::Input;
use lines::Lines;

/// The longest text of a statement that is kept, in bytes. The rest of a longer one is dropped, and
/// the statement is counted as cut.
pub const MAX_TEXT: usize = 64 << 20;

/// The information that a log contains about one statement. `None` means that the log does not
/// contain it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The statement without its closing semicolon.
    pub text: Vec<u8>,
    /// Whether this is a command and not a statement (`administrator command: Ping`). Then its name
    /// is the text.
    pub command: bool,
    /// The start time in microseconds since 1970, UTC.
    pub time_us: Option<i64>,
    pub duration_us: Option<u64>,
    pub lock_us: Option<u64>,
    pub rows_sent: Option<u64>,
    pub rows_examined: Option<u64>,
    pub bytes_sent: Option<u64>,
    /// MySQL's error number; 0 if the log shows that there was no error.
    pub error: Option<u32>,
    /// The sampling rate: the server logs one in this number of statements.
    pub rate: Option<u64>,
    pub db: Vec<u8>,
    pub user: Vec<u8>,
    pub host: Vec<u8>,
    pub connection: Option<u64>,
    /// Whether the end of the text is missing, because the server or the end of the file cut it
    /// off.
    pub cut: bool,
}

impl Event {
    /// Clears all fields, but keeps the buffers.
    fn clear(&mut self) {
        let (mut text, mut db) = (std::mem::take(&mut self.text), std::mem::take(&mut self.db));
        let (mut user, mut host) = (
            std::mem::take(&mut self.user),
            std::mem::take(&mut self.host),
        );
        for buffer in [&mut text, &mut db, &mut user, &mut host] {
            buffer.clear();
        }
        *self = Event {
            text,
            db,
            user,
            host,
            ..Event::default()
        };
    }
}

/// The numbers of skipped parts of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Lines outside any entry.
    pub lines: u64,
    /// Entries without a statement, or with an unreadable header.
    pub entries: u64,
    /// Statements without their end. They still count for their pattern.
    pub cut: u64,
}

impl Skipped {
    pub fn add(&mut self, other: Skipped) {
        self.lines += other.lines;
        self.entries += other.entries;
        self.cut += other.cut;
    }

    pub fn any(&self) -> bool {
        *self != Skipped::default()
    }
}

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Slow,
    General,
}

enum Parser {
    Slow(slow::Slow),
    General(general::General),
}

/// One log.
pub struct Log {
    lines: Lines<Input>,
    parser: Parser,
}

/// The bytes at the beginning of a log that are searched for its format.
const SNIFFED: usize = 256 << 10;

impl Log {
    /// `format` `None`: detect it. An empty input counts as a slow log. Any other input without a
    /// recognizable format is rejected.
    pub fn new(
        input: Input,
        format: Option<Format>,
        zone: &jiff::tz::TimeZone,
    ) -> Result<Log, LabError> {
        let name = input.name().to_owned();
        let mut lines = Lines::new(input);
        let format = match format {
            Some(format) => format,
            None => {
                let head = lines.look_ahead(SNIFFED);
                match sniff(head) {
                    Some(format) => format,
                    None if head.is_empty() => Format::Slow,
                    None => {
                        return Err(LabError::Malformed(format!(
                            "{name}: neither a slow log nor a general log by its first {} bytes (--format says which, if it is one)",
                            head.len()
                        )));
                    }
                }
            }
        };
        let parser = match format {
            Format::Slow => Parser::Slow(slow::Slow::new(zone.clone())),
            Format::General => Parser::General(general::General::new(zone.clone())),
        };
        Ok(Log { lines, parser })
    }

    pub fn format(&self) -> Format {
        match self.parser {
            Parser::Slow(_) => Format::Slow,
            Parser::General(_) => Format::General,
        }
    }

    /// Fills `event` with the next statement or command. Returns false at the end.
    pub fn next(&mut self, event: &mut Event) -> bool {
        event.clear();
        match &mut self.parser {
            Parser::Slow(parser) => parser.next(&mut self.lines, event),
            Parser::General(parser) => parser.next(&mut self.lines, event),
        }
    }

    pub fn skipped(&self) -> Skipped {
        match &self.parser {
            Parser::Slow(parser) => parser.skipped,
            Parser::General(parser) => parser.skipped,
        }
    }

    /// The error that ended reading early, if any.
    pub fn failure(&self) -> Option<&std::io::Error> {
        self.lines.failure()
    }

    /// The number of bytes of the file (compressed) read so far.
    pub fn position(&self) -> u64 {
        self.lines.source().position()
    }
}

/// Detects the format by the first line that shows one.
fn sniff(head: &[u8]) -> Option<Format> {
    for line in head.split(|&b| b == b'\n') {
        if slow::is_boundary(line) || line.starts_with(b"# Query_time: ") {
            return Some(Format::Slow);
        }
        if general::head(line).is_some_and(|head| head.stamp.is_some()) {
            return Some(Format::General);
        }
    }
    // A server that has just started has written only its banner. In any format, that is no
    // statement.
    let mut lines = head.split(|&b| b == b'\n');
    lines.any(is_banner).then_some(Format::Slow)
}

/// Whether a line belongs to the banner that is written at each start and each FLUSH LOGS:
/// `…/mysqld, Version: 8.0.36 (…). started with:`, `Tcp port: …`, `Time                 Id Command
/// Argument`.
pub(crate) fn is_banner(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.first() {
        Some(b'T') => {
            line.starts_with(b"Tcp port: ") && memchr::memmem::find(line, b"nix socket: ").is_some()
                || line.starts_with(b"Time")
                    && line.ends_with(b"Argument")
                    && memchr::memmem::find(line, b" Id Command").is_some()
        }
        _ => {
            line.ends_with(b". started with:")
                && memchr::memmem::find(line, b", Version: ").is_some()
        }
    }
}
