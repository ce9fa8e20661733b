//! Parses the response to one command, from bytes that arrive in pieces of any size.
//!
//! # Picture
//! ```text
//! First ─ OK ──────────────────────────────────────────▶ done   (more results announced: First again)
//!   │ └── ERR ─────────────────────────────────────────▶ done
//!   └─ column count ─▶ Columns ─▶ (EOF) ─▶ Rows ─ EOF/OK/ERR ▶ done
//!   (prepare) OK with counts ─▶ Skip parameters (EOF) ─▶ Skip columns (EOF) ▶ done
//! ```
//!
//! # Cost
//! Unwanted rows are skipped by their length, in place: only five bytes of each are read. A packet
//! that arrives in pieces is assembled in a buffer of the connection.

use nfold_protocol::consts::{cap, status};
use nfold_protocol::frame::{HEADER, MAX_CHUNK};
use nfold_protocol::response::parse_err;
use nfold_protocol::{Malformed, Reader};

/// The contents of an ERR packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// MySQL's error number.
    pub code: u16,
    pub message: String,
}

/// The result of one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub rows: u64,
    /// The bytes received for it, including packet headers.
    pub bytes: u64,
    pub affected_rows: u64,
    /// The sum of the hashes of all rows, which does not depend on their order. 0 unless requested.
    /// Text and binary rows have different bytes, so only answers of the same protocol can be
    /// compared.
    pub checksum: u64,
    /// As `checksum`, but dependent on the order of the rows.
    pub ordered_checksum: u64,
    pub error: Option<ServerError>,
    /// For COM_STMT_PREPARE: the statement's id and its number of parameters.
    pub prepared: Option<(u32, u16)>,
}

/// Receives rows and column definitions.
pub trait RowSink {
    /// If false, rows are skipped without being assembled.
    fn wants_rows(&self) -> bool;
    /// Receives the payload of a column definition.
    fn column(&mut self, _definition: &[u8]) {}
    /// Receives the payload of a row packet. A row larger than 16 MiB arrives in pieces.
    fn row(&mut self, payload: &[u8]);
}

/// Ignores rows and columns.
pub struct NoRows;

impl RowSink for NoRows {
    fn wants_rows(&self) -> bool {
        false
    }
    fn row(&mut self, _payload: &[u8]) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    First,
    /// The packets left before the rows: definitions and their EOF.
    Columns {
        left: u64,
    },
    /// `inside`: the last packet had the maximal size, so the next one continues the same row.
    Rows {
        inside: bool,
    },
    /// The response to COM_STMT_PREPARE, and the packets left after it.
    Prepared,
    Skip {
        left: u64,
    },
    Done,
}

/// The state of one response.
#[derive(Debug)]
pub struct Response {
    phase: Phase,
    deprecate_eof: bool,
    hash_rows: bool,
    /// The bytes of a row packet that are still to be skipped.
    skip: usize,
    /// The beginning of a packet that arrives in pieces, and the number of its bytes that are
    /// needed.
    carry: Vec<u8>,
    want: usize,
    answer: Answer,
}

enum Step {
    /// The number of bytes consumed. The rest of the packet, `skip`, arrives later.
    Took(usize),
    /// The number of bytes needed from the packet's beginning on.
    Need(usize),
}

impl Response {
    /// `capabilities` are those agreed with the server. `hash_rows` enables [`Answer::checksum`].
    pub fn new(capabilities: u32, hash_rows: bool) -> Response {
        Response {
            phase: Phase::Done,
            deprecate_eof: capabilities & cap::DEPRECATE_EOF != 0,
            hash_rows,
            skip: 0,
            carry: Vec::new(),
            want: 0,
            answer: Answer::default(),
        }
    }

    /// Starts a response after a command was sent. `prepare`: the command was COM_STMT_PREPARE.
    pub fn begin(&mut self, prepare: bool) {
        self.phase = if prepare {
            Phase::Prepared
        } else {
            Phase::First
        };
        self.answer = Answer::default();
    }

    /// The answer so far. It is complete once [`Self::feed`] returned true.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Processes received bytes. Returns true when the answer is complete. Bytes after its end
    /// violate the protocol, because no command was sent.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl RowSink) -> Result<bool, Malformed> {
        match self.take(bytes, sink)? {
            (taken, _) if taken < bytes.len() => Err(Malformed("an unexpected answer")),
            (_, whole) => Ok(whole),
        }
    }

    /// Processes received bytes up to the end of the answer, for a connection with several commands
    /// in progress. Returns the number of bytes used, and whether the answer is complete.
    pub fn take(
        &mut self,
        all: &[u8],
        sink: &mut impl RowSink,
    ) -> Result<(usize, bool), Malformed> {
        let mut bytes = all;
        while !bytes.is_empty() {
            if self.skip > 0 {
                let n = self.skip.min(bytes.len());
                self.skip -= n;
                bytes = &bytes[n..];
                continue;
            }
            if self.phase == Phase::Done {
                break;
            }
            if self.carry.is_empty() {
                match self.step(bytes, sink)? {
                    Step::Took(n) => bytes = &bytes[n..],
                    Step::Need(n) => {
                        self.carry.extend_from_slice(bytes);
                        self.want = n;
                        bytes = &[];
                    }
                }
                continue;
            }
            let n = (self.want - self.carry.len()).min(bytes.len());
            self.carry.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.carry.len() < self.want {
                break;
            }
            let mut carry = std::mem::take(&mut self.carry);
            let step = self.step(&carry, sink)?;
            match step {
                Step::Took(_) => carry.clear(),
                Step::Need(n) => self.want = n,
            }
            self.carry = carry;
        }
        let taken = all.len() - bytes.len();
        self.answer.bytes += taken as u64;
        Ok((taken, self.phase == Phase::Done && self.skip == 0))
    }

    /// Processes the packet at the front of `buf`.
    fn step(&mut self, buf: &[u8], sink: &mut impl RowSink) -> Result<Step, Malformed> {
        let Some(header) = buf.get(..HEADER) else {
            return Ok(Step::Need(HEADER));
        };
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let total = HEADER + len;
        if let Phase::Rows { inside } = self.phase {
            if len > 0 && buf.len() == HEADER {
                return Ok(Step::Need(HEADER + 1));
            }
            let first = buf.get(HEADER).copied().unwrap_or(0);
            let ends = !inside && len > 0 && ((first == 0xfe && len < MAX_CHUNK) || first == 0xff);
            if !ends && !self.hash_rows && !sink.wants_rows() {
                let here = total.min(buf.len());
                self.skip = total - here;
                self.row_seen(len, inside);
                return Ok(Step::Took(here));
            }
        }
        if buf.len() < total {
            return Ok(Step::Need(total));
        }
        self.packet(&buf[HEADER..total], sink)?;
        Ok(Step::Took(total))
    }

    fn row_seen(&mut self, len: usize, inside: bool) {
        self.answer.rows += u64::from(!inside);
        self.phase = Phase::Rows {
            inside: len == MAX_CHUNK,
        };
    }

    fn packet(&mut self, payload: &[u8], sink: &mut impl RowSink) -> Result<(), Malformed> {
        match self.phase {
            Phase::First => self.first(payload),
            Phase::Columns { left } => {
                sink.column(payload);
                self.phase = if left > 1 {
                    Phase::Columns { left: left - 1 }
                } else {
                    Phase::Rows { inside: false }
                };
                Ok(())
            }
            Phase::Rows { inside } => self.row(payload, inside, sink),
            Phase::Prepared => self.prepare_ok(payload),
            Phase::Skip { left } => {
                self.phase = if left > 1 {
                    Phase::Skip { left: left - 1 }
                } else {
                    Phase::Done
                };
                Ok(())
            }
            Phase::Done => Err(Malformed("an unexpected answer")),
        }
    }

    fn first(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        match payload.first() {
            None => Err(Malformed("empty answer")),
            Some(0xff) => self.error(payload),
            Some(0) => {
                let mut r = Reader::new(&payload[1..]);
                self.answer.affected_rows += r.lenenc_int("affected rows")?;
                r.lenenc_int("last insert id")?;
                let flags = r.u16("status")?;
                self.end(flags);
                Ok(())
            }
            Some(0xfb) => Err(Malformed(
                "the server requests a local file, which was not offered",
            )),
            Some(_) => {
                let columns = Reader::new(payload).lenenc_int("column count")?;
                let left = columns + u64::from(!self.deprecate_eof);
                self.phase = Phase::Columns { left };
                Ok(())
            }
        }
    }

    fn row(
        &mut self,
        payload: &[u8],
        inside: bool,
        sink: &mut impl RowSink,
    ) -> Result<(), Malformed> {
        match payload.first() {
            Some(0xff) if !inside => self.error(payload),
            Some(0xfe) if !inside && payload.len() < MAX_CHUNK => {
                let mut r = Reader::new(&payload[1..]);
                let flags = if self.deprecate_eof {
                    r.lenenc_int("affected rows")?;
                    r.lenenc_int("last insert id")?;
                    r.u16("status")?
                } else {
                    r.u16("warnings")?;
                    r.u16("status")?
                };
                self.end(flags);
                Ok(())
            }
            _ => {
                if self.hash_rows {
                    let hash = hash(payload);
                    let answer = &mut self.answer;
                    answer.checksum = answer.checksum.wrapping_add(hash);
                    answer.ordered_checksum = answer
                        .ordered_checksum
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        .wrapping_add(hash);
                }
                sink.row(payload);
                self.row_seen(payload.len(), inside);
                Ok(())
            }
        }
    }

    fn prepare_ok(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        if payload.first() == Some(&0xff) {
            return self.error(payload);
        }
        let mut r = Reader::new(payload);
        r.u8("prepare")?;
        let id = r.u32("statement")?;
        let columns = u64::from(r.u16("columns")?);
        let parameters = r.u16("parameters")?;
        self.answer.prepared = Some((id, parameters));
        let eof = u64::from(!self.deprecate_eof);
        let block = |n: u64| if n > 0 { n + eof } else { 0 };
        let left = block(columns) + block(u64::from(parameters));
        self.phase = if left > 0 {
            Phase::Skip { left }
        } else {
            Phase::Done
        };
        Ok(())
    }

    fn error(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let (code, _, message) = parse_err(payload)?;
        self.answer.error = Some(ServerError {
            code,
            message: String::from_utf8_lossy(message).into_owned(),
        });
        self.phase = Phase::Done;
        Ok(())
    }

    fn end(&mut self, flags: u16) {
        self.phase = if flags & status::MORE_RESULTS_EXISTS != 0 {
            Phase::First
        } else {
            Phase::Done
        };
    }
}

/// A 64-bit hash of a row's bytes: words are multiplied and folded, as in wyhash. Not resistant to
/// an adversary.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const A: u64 = 0xa076_1d64_78bd_642f;
    const B: u64 = 0xe703_7ed1_a0b4_28db;
    let mix = |x: u64, y: u64| {
        let wide = u128::from(x) * u128::from(y);
        wide as u64 ^ (wide >> 64) as u64
    };
    let mut h = mix(bytes.len() as u64 ^ A, B);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        h = mix(h ^ u64::from_le_bytes(word) ^ A, B);
    }
    h
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
