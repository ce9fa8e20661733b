//! Writes the answer to one command into the connection's send buffer, and sends it when it grows.
//!
//! # Invariants
//! - P1: between calls the buffer holds whole packets, except for a row that
//!   [`ResponseWriter::row_buffer`] has opened.
//! - P2: sequence numbers count on from the command's last packet.
//!
//! # Cost
//! No allocation once the buffer has its size; one `send` for all answers of one batch of pipelined
//! commands that fit [`FLUSH_BYTES`].

use std::borrow::Cow;
use std::time::Instant;

use nfold_protocol::consts::{cap, status};
use nfold_protocol::frame::{HEADER, begin_packet, end_packet};
use nfold_protocol::lenenc::put_int;
use nfold_protocol::response::{self, Column};
use nfold_protocol::stmt::encode_prepare_ok;
use nfold_types::wire::RowFrames;
use nfold_types::{Charset, charset};

use super::buffer::Output;
use super::handler::ClientError;
use super::transport::Transport;
use super::{FiberCx, Interrupt, add as counters_add};

/// Rows are sent when so many bytes are waiting.
pub const FLUSH_BYTES: usize = 256 << 10;

/// Where a session writes its answer.
///
/// A result is [`Self::columns`], then for each row [`Self::row_buffer`] (append the encoded
/// values) and [`Self::end_row`], then [`Self::end_rows`]. [`Self::error`] may end a result at any
/// point.
pub struct ResponseWriter<'a> {
    output: &'a mut Output,
    transport: &'a mut Transport,
    cx: &'a FiberCx<'a>,
    capabilities: u32,
    sequence: u8,
    status: u16,
    /// Start of the open row's packet.
    row: Option<usize>,
    /// Names and messages are converted to it; `None`: UTF-8.
    charset: Option<&'static Charset>,
}

impl<'a> ResponseWriter<'a> {
    pub(crate) fn new(
        output: &'a mut Output,
        transport: &'a mut Transport,
        cx: &'a FiberCx<'a>,
        capabilities: u32,
        sequence: u8,
        status: u16,
    ) -> Self {
        ResponseWriter {
            output,
            transport,
            cx,
            capabilities,
            sequence,
            status,
            row: None,
            charset: None,
        }
    }

    /// The character set that names of columns and messages of errors go out in; `None`: UTF-8, as
    /// they are.
    pub fn set_charset(&mut self, charset: Option<&'static Charset>) {
        self.charset = charset;
    }

    /// `nfold_protocol::consts::cap::*` of the connection.
    pub fn capabilities(&self) -> u32 {
        self.capabilities
    }

    /// Status flags that the next OK or end of rows carries. MORE_RESULTS_EXISTS is kept apart.
    pub fn set_status(&mut self, flags: u16) {
        let more = self.status & status::MORE_RESULTS_EXISTS;
        self.status = flags & !status::MORE_RESULTS_EXISTS | more;
    }

    /// Does another result follow the one being written?
    pub fn set_more_results(&mut self, more: bool) {
        if more {
            self.status |= status::MORE_RESULTS_EXISTS;
        } else {
            self.status &= !status::MORE_RESULTS_EXISTS;
        }
    }

    /// Appends one packet whose payload `fill` writes.
    fn packet(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.row.is_none(), "P1: a row is open");
        let at = begin_packet(&mut self.output.bytes);
        fill(&mut self.output.bytes);
        end_packet(&mut self.output.bytes, at, &mut self.sequence);
    }

    /// OK for a statement without rows. The status flags come from [`Self::set_status`], not from
    /// `ok`.
    pub fn ok(&mut self, ok: &response::Ok<'_>) {
        let ok = response::Ok {
            status: self.status,
            ..*ok
        };
        self.packet(|out| response::encode_ok(out, 0, &ok));
    }

    /// ERR. A row that is open is taken back.
    pub fn error(&mut self, e: &ClientError) {
        if let Some(at) = self.row.take() {
            self.output.bytes.truncate(at);
        }
        let message = match self.charset {
            Some(to) => Cow::Owned(message_in(to, &e.message)),
            None => Cow::Borrowed(e.message.as_bytes()),
        };
        self.packet(|out| response::encode_err(out, e.code, e.sqlstate, &message));
    }

    /// One packet with a column whose names are in the client's character set.
    fn definition(&mut self, c: &Column<'_>, fill: impl FnOnce(&mut Vec<u8>, &Column<'_>)) {
        let Some(to) = self.charset else {
            return self.packet(|out| fill(out, c));
        };
        let names = [c.schema, c.table, c.org_table, c.name, c.org_name].map(|name| {
            let mut out = Vec::with_capacity(name.len());
            charset::convert(&charset::UTF8MB4, to, name, &mut out);
            out
        });
        let [schema, table, org_table, name, org_name] = &names;
        let converted = Column {
            schema,
            table,
            org_table,
            name,
            org_name,
            ..*c
        };
        self.packet(|out| fill(out, &converted));
    }

    /// Column count and definitions of a result.
    pub fn columns<'c>(&mut self, columns: impl ExactSizeIterator<Item = Column<'c>>) {
        self.packet(|out| put_int(out, columns.len() as u64));
        self.definitions(columns);
    }

    /// Column definitions and, for clients without DEPRECATE_EOF, the EOF behind them: parameters
    /// and columns of a prepared statement. Nothing for an empty list.
    pub fn definitions<'c>(&mut self, columns: impl ExactSizeIterator<Item = Column<'c>>) {
        let is_empty = columns.len() == 0;
        for c in columns {
            self.definition(&c, response::encode_column);
        }
        if !is_empty && self.capabilities & cap::DEPRECATE_EOF == 0 {
            let status = self.status;
            self.packet(|out| response::encode_eof(out, 0, status));
        }
    }

    /// Column definitions without a count, and the end of the list: the answer to COM_FIELD_LIST.
    /// Each definition is followed by its default value; none is known here, so NULL is sent.
    pub fn field_list(&mut self, columns: &[Column<'_>]) {
        for c in columns {
            self.definition(c, |out, c| {
                response::encode_column(out, c);
                out.push(0xfb);
            });
        }
        self.end_rows(0);
    }

    /// First packet of a prepare's answer.
    pub fn prepare_ok(&mut self, statement: u32, columns: u16, parameters: u16, warnings: u16) {
        self.packet(|out| encode_prepare_ok(out, statement, columns, parameters, warnings));
    }

    /// Buffer to append the values of the next row to. Only append.
    #[inline]
    pub fn row_buffer(&mut self) -> &mut Vec<u8> {
        if self.row.is_none() {
            self.row = Some(begin_packet(&mut self.output.bytes));
        }
        &mut self.output.bytes
    }

    /// Ends the row, and sends what has gathered if that is much. On an error the result is over;
    /// the session stops.
    #[inline]
    pub fn end_row(&mut self) -> Result<(), Interrupt> {
        self.row_buffer();
        if let Some(at) = self.row.take() {
            end_packet(&mut self.output.bytes, at, &mut self.sequence);
        }
        self.flush_if_much()
    }

    /// Where rows can be put one behind the other, while none is open.
    /// [`flush_if_much`](Self::flush_if_much) comes after them.
    #[inline]
    pub fn frames(&mut self) -> RowFrames<'_> {
        debug_assert!(self.row.is_none(), "P1: a row is open");
        RowFrames {
            out: &mut self.output.bytes,
            sequence: &mut self.sequence,
            enough: FLUSH_BYTES,
            end: end_packet,
        }
    }

    /// Sends what has gathered if that is much. On an error the result is over; the session stops.
    #[inline(always)]
    pub fn flush_if_much(&mut self) -> Result<(), Interrupt> {
        match self.output.bytes.len() >= FLUSH_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Bytes waiting to be sent, the open row included.
    pub fn buffered(&self) -> usize {
        self.output.pending().len()
    }

    /// Length of the open row so far.
    pub fn row_len(&self) -> usize {
        self.row
            .map_or(0, |at| self.output.bytes.len() - at - HEADER)
    }

    /// Takes the open row back.
    pub fn discard_row(&mut self) {
        if let Some(at) = self.row.take() {
            self.output.bytes.truncate(at);
        }
    }

    /// End of the rows.
    pub fn end_rows(&mut self, warnings: u16) {
        let (capabilities, status) = (self.capabilities, self.status);
        self.packet(|out| response::encode_end_of_rows(out, capabilities, warnings, status));
    }

    /// A packet of the session's own making (COM_STATISTICS).
    pub fn raw(&mut self, payload: &[u8]) {
        self.packet(|out| out.extend_from_slice(payload));
    }

    /// Sends everything; suspends while the client does not take it.
    pub fn flush(&mut self) -> Result<(), Interrupt> {
        debug_assert!(self.row.is_none(), "P1: only whole packets are sent");
        flush(self.output, self.transport, self.cx)
    }

    pub(crate) fn set_capabilities(&mut self, capabilities: u32) {
        self.capabilities = capabilities;
    }
}

/// Sends all of `output`, suspending the fiber while the socket is full. Once it has failed, it
/// fails for good: part of a packet may have gone out.
pub(crate) fn flush(
    output: &mut Output,
    transport: &mut Transport,
    cx: &FiberCx<'_>,
) -> Result<(), Interrupt> {
    if let Some(lost) = output.lost {
        return Err(lost);
    }
    if output.is_empty() {
        return Ok(());
    }
    let result = flush_blocking(output, transport, cx);
    output.lost = result.err();
    result
}

fn flush_blocking(
    output: &mut Output,
    transport: &mut Transport,
    cx: &FiberCx<'_>,
) -> Result<(), Interrupt> {
    let lost = |_| Interrupt::ConnectionLost;
    let mut in_time = true;
    loop {
        let before = output.sent;
        if send_some(output, transport, cx.local).map_err(lost)? {
            return Ok(());
        }
        // A timeout without an edge may still have made room for some bytes; only none at all is
        // too slow.
        if !in_time && output.sent == before {
            return Err(Interrupt::ConnectionLost);
        }
        transport
            .want_writable(&cx.local.poll, true)
            .map_err(lost)?;
        in_time = cx.wait_writable(Instant::now() + cx.limits().net_write_timeout)?;
    }
}

/// Sends what the socket takes. True: all has gone out, and the writable edge is not wanted any
/// more.
pub(crate) fn send_some(
    output: &mut Output,
    transport: &mut Transport,
    local: &crate::net::worker::Local,
) -> std::io::Result<bool> {
    while !output.is_empty() {
        match transport.send(output.pending()) {
            Ok(n) => {
                output.sent += n;
                counters_add(&local.counters.bytes_sent, n as u64);
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    if !transport.flush_tls()? {
        return Ok(false);
    }
    output.reset();
    transport.want_writable(&local.poll, false)?;
    Ok(true)
}

/// A message in another character set: what it lacks is shown as `\`, the hexadecimal digits of the
/// code point.
fn message_in(to: &Charset, message: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len());
    for c in message.chars() {
        if !to.encode(c, &mut out) {
            out.extend_from_slice(format!("\\{:04X}", u32::from(c)).as_bytes());
        }
    }
    out
}
