//! Slow logs of MySQL, MariaDB and Percona Server. Unknown members are ignored.
//!
//! ```text
//!  # Time: 2024-03-01T12:34:56.123456Z               MySQL: each entry; MariaDB: when the second changes
//!  # User@Host: app[app] @ web1 [10.0.0.1]  Id:  8   MariaDB without Id
//!  # Thread_id: 8  Schema: shop  QC_hit: No          MariaDB, Percona
//!  # Query_time: 0.000300  Lock_time: 0.000100 …     and more `Key: value`, and more lines
//!  use shop;                                         where it is not that of the entry before
//!  SET timestamp=1709296496;                         when it began
//!  SELECT …                                          to `;` and a line end
//! ```
//! An entry ends before a line that is completely a `# Time:` line, a `# User@Host:` line or a
//! banner. The text of a statement may contain any other lines, including empty ones and those that
//! begin with `#`.

use std::io::Read;

use jiff::tz::TimeZone;

use super::lines::Lines;
use super::time::{self, Stamp};
use super::{Event, MAX_TEXT, Skipped, is_banner};

/// The state kept from entry to entry.
pub struct Slow {
    zone: TimeZone,
    /// The last `# Time:`. In MariaDB's logs, it applies to all entries until the next one.
    stamp: Option<Stamp>,
    /// The database of the last `use`.
    db: Vec<u8>,
    pub skipped: Skipped,
}

/// The parts of an entry's header that are not in the event itself.
#[derive(Default)]
struct Head {
    /// The entry's own `# Time:`, if it has one.
    stamp: Option<Stamp>,
    user: bool,
    query_time: bool,
    start: Option<Stamp>,
    /// The value of `SET timestamp=` in microseconds.
    set_timestamp: Option<i64>,
    schema: bool,
}

impl Slow {
    pub fn new(zone: TimeZone) -> Self {
        Slow {
            zone,
            stamp: None,
            db: Vec::new(),
            skipped: Skipped::default(),
        }
    }

    /// Reads the next entry that has a statement. Returns false at the end.
    pub fn next<R: Read>(&mut self, lines: &mut Lines<R>, event: &mut Event) -> bool {
        loop {
            if !self.seek(lines) {
                return false;
            }
            let mut head = Head::default();
            let readable = self.head(lines, event, &mut head);
            self.text(lines, event);
            if readable && head.query_time && !event.text.is_empty() {
                self.finish_event(event, &head);
                return true;
            }
            self.skipped.entries += 1;
            event.clear();
        }
    }

    /// Skips to the first line of an entry.
    fn seek<R: Read>(&mut self, lines: &mut Lines<R>) -> bool {
        while let Some(line) = lines.peek() {
            if is_boundary(line.bytes) || line.bytes.starts_with(b"# Query_time: ") {
                return true;
            }
            if !is_banner(line.bytes) && !line.bytes.trim_ascii().is_empty() {
                self.skipped.lines += 1;
            }
            lines.consume();
        }
        false
    }

    /// Reads the lines before the text. Returns false if they are malformed.
    fn head<R: Read>(&mut self, lines: &mut Lines<R>, event: &mut Event, head: &mut Head) -> bool {
        let mut readable = true;
        while let Some(line) = lines.peek() {
            let line = without_return(line.bytes);
            match line.first() {
                Some(b'#') if line.starts_with(b"# administrator command: ") => return readable,
                Some(b'#') => {
                    if let Some(rest) = line.strip_prefix(b"# Time: ") {
                        if head.user || head.query_time {
                            // A header without a statement. The next entry begins here.
                            return false;
                        }
                        if let Some((stamp, _)) = time::read(rest) {
                            head.stamp = Some(stamp);
                            self.stamp = Some(stamp);
                        }
                    } else if let Some(rest) = line.strip_prefix(b"# User@Host: ") {
                        if head.user || head.query_time {
                            return false;
                        }
                        head.user = true;
                        user_and_host(rest, event);
                    } else if !line.starts_with(b"# explain:") {
                        readable &= members(&line[1..], event, head);
                    }
                }
                Some(b'u' | b'U')
                    if line.len() > 5
                        && line[..4].eq_ignore_ascii_case(b"use ")
                        && line.ends_with(b";") =>
                {
                    self.db.clear();
                    unquoted(&line[4..line.len() - 1], &mut self.db);
                }
                Some(b'S') if set_timestamp(line).is_some() => {
                    head.set_timestamp = set_timestamp(line);
                    lines.consume();
                    return readable;
                }
                _ => return readable && !is_banner(line),
            }
            lines.consume();
        }
        readable
    }

    /// Reads the text up to the next entry.
    fn text<R: Read>(&mut self, lines: &mut Lines<R>, event: &mut Event) {
        let mut first = true;
        while let Some(line) = lines.peek() {
            let (bytes, cut) = (line.bytes, line.cut);
            if (bytes.first() == Some(&b'#') && is_boundary(bytes))
                || (!bytes.is_empty() && is_banner(bytes))
            {
                break;
            }
            if first && bytes.starts_with(b"# administrator command: ") {
                event.command = true;
                event.text.extend_from_slice(without_return(&bytes[25..]));
                lines.consume();
                break;
            }
            if !first {
                event.text.push(b'\n');
            }
            first = false;
            let room = MAX_TEXT.saturating_sub(event.text.len());
            event
                .text
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
            event.cut |= cut || bytes.len() > room;
            lines.consume();
        }
        let text = &mut event.text;
        while text.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
            text.pop();
        }
        if text.last() == Some(&b';') {
            text.pop();
        } else {
            event.cut = true;
        }
    }

    /// Derives the fields that depend on several parts of the header.
    fn finish_event(&mut self, event: &mut Event, head: &Head) {
        if event.cut {
            self.skipped.cut += 1;
        }
        if !head.schema {
            event.db.clear();
            event.db.extend_from_slice(&self.db);
        }
        let zone = &self.zone;
        let duration = event.duration_us.map_or(0, |us| us as i64);
        event.time_us = match (head.start, head.stamp) {
            (Some(start), _) => Some(start.in_utc(zone)),
            // `# Time:` is the time at which the entry was written.
            (None, Some(stamp)) if stamp.is_utc() => {
                Some(stamp.in_utc(zone).saturating_sub(duration))
            }
            _ => head.set_timestamp.or_else(|| {
                self.stamp
                    .map(|stamp| stamp.in_utc(zone).saturating_sub(duration))
            }),
        };
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether a line is completely a `# Time:` or `# User@Host:` line.
pub(super) fn is_boundary(line: &[u8]) -> bool {
    let line = without_return(line);
    if let Some(rest) = line.strip_prefix(b"# Time: ") {
        return time::read(rest).is_some_and(|(_, rest)| rest.trim_ascii().is_empty());
    }
    line.strip_prefix(b"# User@Host: ").is_some_and(|rest| {
        let Some(at) = memchr::memmem::find(rest, b"] @ ") else {
            return false;
        };
        let after = &rest[at + 4..];
        rest[..at].contains(&b'[') && after.contains(&b'[') && after.contains(&b']')
    })
}

/// Parses `app[app] @ web1 [10.0.0.1]  Id:     8`.
fn user_and_host(rest: &[u8], event: &mut Event) {
    let Some(at) = memchr::memmem::find(rest, b"] @ ") else {
        return;
    };
    let (user, after) = (&rest[..at], &rest[at + 4..]);
    let open = memchr::memchr(b'[', user).unwrap_or(user.len());
    event.user.extend_from_slice(&user[..open]);
    let Some(open) = memchr::memchr(b'[', after) else {
        return;
    };
    let close = memchr::memchr(b']', after).unwrap_or(after.len());
    let name = after[..open].trim_ascii();
    let address = after.get(open + 1..close).unwrap_or_default();
    event
        .host
        .extend_from_slice(if name.is_empty() { address } else { name });
    if let Some(id) = memchr::memmem::find(after, b"Id:") {
        event.connection = number(after[id + 3..].trim_ascii());
    }
}

/// Parses `Key: value  Key: value …`. Returns false if the value of a required number is invalid.
fn members(mut rest: &[u8], event: &mut Event, head: &mut Head) -> bool {
    let mut readable = true;
    loop {
        while let [b' ' | b'\t', after @ ..] = rest {
            rest = after;
        }
        let Some(colon) = memchr::memchr(b':', rest) else {
            return readable;
        };
        let key = &rest[..colon];
        let value = &rest[colon + 1..];
        // An empty value (`Schema:   QC_hit: No`) is written as a single blank.
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let end = memchr::memchr(b' ', value).unwrap_or(value.len());
        rest = &value[end..];
        let value = &value[..end];
        match key {
            b"Query_time" => {
                event.duration_us = time::duration_us(value);
                head.query_time = event.duration_us.is_some();
                readable &= head.query_time;
            }
            b"Lock_time" => event.lock_us = time::duration_us(value),
            b"Rows_sent" => event.rows_sent = number(value),
            b"Rows_examined" => event.rows_examined = number(value),
            b"Bytes_sent" => event.bytes_sent = number(value),
            b"Thread_id" => event.connection = number(value),
            b"Errno" | b"Last_errno" => {
                event.error = number(value).and_then(|n| u32::try_from(n).ok())
            }
            b"Schema" => {
                head.schema = true;
                event.db.extend_from_slice(value);
            }
            b"Start" => head.start = time::read(value).map(|(stamp, _)| stamp),
            b"Log_slow_rate_limit" => event.rate = number(value),
            _ => {}
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits.iter().try_fold(0u64, |n, &b| {
        b.is_ascii_digit().then(|| n * 10 + u64::from(b - b'0'))
    })
}

/// Unquotes `` `a``b` `` to `` a`b ``.
fn unquoted(name: &[u8], out: &mut Vec<u8>) {
    match name
        .strip_prefix(b"`")
        .and_then(|name| name.strip_suffix(b"`"))
    {
        Some(inner) => {
            let mut bytes = inner.iter();
            while let Some(&b) = bytes.next() {
                out.push(b);
                if b == b'`' {
                    bytes.next();
                }
            }
        }
        None => out.extend_from_slice(name),
    }
}

/// The microseconds of `SET [last_insert_id=…,][insert_id=…,]timestamp=1709296496[.123456];`, a
/// line that servers write.
fn set_timestamp(line: &[u8]) -> Option<i64> {
    let mut rest = line.strip_prefix(b"SET ")?.strip_suffix(b";")?;
    loop {
        let comma = memchr::memchr(b',', rest).unwrap_or(rest.len());
        let (name, value) = rest[..comma].split_at(memchr::memchr(b'=', &rest[..comma])?);
        match name {
            b"timestamp" if comma == rest.len() => {
                // `duration_us` limits the number of seconds, so the two parts are read separately.
                let dot = memchr::memchr(b'.', value).unwrap_or(value.len());
                let seconds = i64::try_from(number(value.get(1..dot)?)?).ok()?;
                let us = if dot == value.len() {
                    0
                } else {
                    time::duration_us(&[b"0", &value[dot..]].concat())?
                };
                return seconds.checked_mul(1_000_000)?.checked_add(us as i64);
            }
            b"last_insert_id" | b"insert_id" => {
                number(value.get(1..)?)?;
                rest = rest.get(comma + 1..)?;
            }
            _ => return None,
        }
    }
}
