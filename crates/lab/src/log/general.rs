//! General logs. They contain the commands sent to a server, but not their durations.
//!
//! ```text
//!  2024-03-01T12:34:56.123456Z⇥    8 Query⇥SELECT 1      MySQL since 5.7
//!  240301 12:34:56⇥    8 Query⇥SELECT 1                  before, and MariaDB …
//!  ⇥⇥    8 Query⇥SELECT 2                                … in the same second
//! ```
//! Lines that do not begin an entry continue the previous one, so statements of several lines stay
//! complete.

use std::io::Read;

use jiff::tz::TimeZone;
use rustc_hash::FxHashMap;

use super::lines::Lines;
use super::time::{self, Stamp};
use super::{Event, MAX_TEXT, Skipped, is_banner};

/// The most connections that are remembered. Beyond that, all are dropped, which happens only if
/// the log lacks Quit lines.
const MAX_CONNECTIONS: usize = 200_000;

/// The state kept from entry to entry.
pub struct General {
    zone: TimeZone,
    stamp: Option<Stamp>,
    connections: FxHashMap<u64, Connection>,
    pub skipped: Skipped,
}

#[derive(Default)]
struct Connection {
    user: Vec<u8>,
    host: Vec<u8>,
    db: Vec<u8>,
}

/// The beginning of an entry.
pub(super) struct Head<'a> {
    /// `None` if the entry has the same second as the previous one.
    pub stamp: Option<Stamp>,
    id: u64,
    command: &'a [u8],
    argument: &'a [u8],
}

/// The values of the column Command, of all servers and versions.
const COMMANDS: [&[u8]; 33] = [
    b"Query",
    b"Execute",
    b"Prepare",
    b"Close stmt",
    b"Reset stmt",
    b"Connect",
    b"Quit",
    b"Init DB",
    b"Ping",
    b"Field List",
    b"Fetch",
    b"Change user",
    b"Statistics",
    b"Long Data",
    b"Set option",
    b"Sleep",
    b"Create DB",
    b"Drop DB",
    b"Refresh",
    b"Shutdown",
    b"Processlist",
    b"Connect Out",
    b"Kill",
    b"Debug",
    b"Time",
    b"Delayed insert",
    b"Binlog Dump",
    b"Table Dump",
    b"Register Slave",
    b"Daemon",
    b"Binlog Dump GTID",
    b"Reset Connection",
    b"Bulk_execute",
];

/// Parses the beginning of an entry. `None` if the line does not begin one.
pub(super) fn head(line: &[u8]) -> Option<Head<'_>> {
    let (stamp, rest) = match line.strip_prefix(b"\t\t") {
        Some(rest) => (None, rest),
        None => {
            if !line.first()?.is_ascii_digit() {
                return None;
            }
            let (stamp, rest) = time::read(line)?;
            (Some(stamp), rest.strip_prefix(b"\t")?)
        }
    };
    let rest = rest.trim_ascii_start();
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 19 {
        return None;
    }
    let id = rest[..digits]
        .iter()
        .fold(0, |n, b| n * 10 + u64::from(b - b'0'));
    let rest = rest[digits..].strip_prefix(b" ")?;
    let tab = memchr::memchr(b'\t', rest).unwrap_or(rest.len());
    let command = rest[..tab].trim_ascii_end();
    COMMANDS.contains(&command).then(|| Head {
        stamp,
        id,
        command,
        argument: rest.get(tab + 1..).unwrap_or_default(),
    })
}

impl General {
    pub fn new(zone: TimeZone) -> Self {
        General {
            zone,
            stamp: None,
            connections: FxHashMap::default(),
            skipped: Skipped::default(),
        }
    }

    /// Reads the next statement or command. Returns false at the end.
    pub fn next<R: Read>(&mut self, lines: &mut Lines<R>, event: &mut Event) -> bool {
        loop {
            let Some(line) = lines.peek() else {
                return false;
            };
            let (bytes, cut) = (line.bytes, line.cut);
            let Some(head) = head(bytes) else {
                if !is_banner(bytes) && !bytes.trim_ascii().is_empty() {
                    self.skipped.lines += 1;
                }
                lines.consume();
                continue;
            };
            if let Some(stamp) = head.stamp {
                self.stamp = Some(stamp);
            }
            let statement = matches!(head.command, b"Query" | b"Execute");
            event.command = !statement;
            event.connection = Some(head.id);
            event.time_us = self.stamp.map(|stamp| stamp.in_utc(&self.zone));
            event.text.extend_from_slice(if statement {
                head.argument
            } else {
                head.command
            });
            event.cut = cut;
            let argument = if statement {
                Vec::new()
            } else {
                head.argument.to_vec()
            };
            let id = head.id;
            lines.consume();
            self.rest(lines, event, statement);
            self.follow(id, &argument, event);
            if event.cut {
                self.skipped.cut += 1;
            }
            if !event.text.trim_ascii().is_empty() {
                return true;
            }
            self.skipped.entries += 1;
            event.clear();
        }
    }

    /// Appends the lines that continue the entry.
    fn rest<R: Read>(&mut self, lines: &mut Lines<R>, event: &mut Event, statement: bool) {
        while let Some(line) = lines.peek() {
            let (bytes, cut) = (line.bytes, line.cut);
            if head(bytes).is_some() || is_banner(bytes) {
                return;
            }
            if statement {
                let room = MAX_TEXT.saturating_sub(event.text.len() + 1);
                event.text.push(b'\n');
                event
                    .text
                    .extend_from_slice(&bytes[..bytes.len().min(room)]);
                event.cut |= cut || bytes.len() > room;
            }
            lines.consume();
        }
    }

    /// Tracks the user and the current database of each connection.
    fn follow(&mut self, id: u64, argument: &[u8], event: &mut Event) {
        if self.connections.len() > MAX_CONNECTIONS {
            self.connections.clear();
        }
        if event.command {
            match event.text.as_slice() {
                b"Connect" | b"Change user" => {
                    self.connections.insert(id, connected(argument));
                }
                b"Init DB" => {
                    let db = &mut self.connections.entry(id).or_default().db;
                    db.clear();
                    db.extend_from_slice(argument.trim_ascii());
                }
                _ => {}
            }
        } else if event.text.len() > 4
            && event.text.len() < 80
            && event.text[..4].eq_ignore_ascii_case(b"use ")
        {
            let db = &mut self.connections.entry(id).or_default().db;
            db.clear();
            let name = event.text[4..].trim_ascii();
            db.extend(name.iter().filter(|&&b| b != b'`' && b != b';'));
        }
        if let Some(known) = self.connections.get(&id) {
            event.user.extend_from_slice(&known.user);
            event.host.extend_from_slice(&known.host);
            event.db.extend_from_slice(&known.db);
        }
        if event.command && event.text == b"Quit" {
            self.connections.remove(&id);
        }
    }
}

/// Parses `app@web1 on shop using TCP/IP`, or MariaDB's `app@web1 as anonymous on shop`.
fn connected(argument: &[u8]) -> Connection {
    let mut words = argument.split(|&b| b == b' ');
    let account = words.next().unwrap_or_default();
    let at = memchr::memrchr(b'@', account).unwrap_or(account.len());
    let db = words
        .skip_while(|word| *word != b"on")
        .nth(1)
        .unwrap_or_default();
    Connection {
        user: account[..at].to_vec(),
        host: account.get(at + 1..).unwrap_or_default().to_vec(),
        db: db.to_vec(),
    }
}
