//! Writes the answer to one command into the connection's send buffer, and sends the buffer when it
//! is large.
//!
//! # Invariants
//! - P1: between calls the buffer holds complete packets, except for a row that
//!   [`ResponseWriter::row_buffer`] has opened.
//! - P2: sequence numbers continue from the command's last packet.
//!
//! # Cost
//! No allocation once the buffer has its size. The answers to pipelined commands are sent by one
//! `send` if they fit into [`FLUSH_BYTES`].

use std::borrow::Cow;

use nfold_protocol::consts::{cap, status};
use nfold_protocol::frame::{HEADER, MAX_CHUNK, begin_packet, end_packet, renumber};
use nfold_protocol::lenenc::put_int;
use nfold_protocol::response::{self, Column};
use nfold_protocol::stmt::encode_prepare_ok;
use nfold_types::wire::RowFrames;
use nfold_types::{Charset, SqlError, charset};

use super::buffer::{Input, Output};
use super::handler::ClientError;
use super::transport::Transport;
use super::upload::Upload;
use super::{FiberCx, Interrupt};

/// The number of buffered bytes at which rows are sent.
pub const FLUSH_BYTES: usize = 256 << 10;

/// The first byte of the packet that asks the client for a file.
const LOCAL_INFILE_REQUEST: u8 = 0xfb;
/// The most bytes of column definitions that are copied for the next execution.
const COPIED_COLUMNS_BYTES: usize = 4096;

/// Keeps an answer in place of sending it.
pub trait AnswerStore {
    /// Takes complete packets, and leaves an empty buffer.
    ///
    /// # Errors
    /// The statement must end; [`Self::take_error`] has the reason.
    fn append(&mut self, cx: &FiberCx<'_>, packets: &mut Vec<u8>) -> Result<(), Interrupt>;

    /// Forgets what it has.
    fn clear(&mut self);

    /// Why [`Self::append`] has failed.
    fn take_error(&mut self) -> Option<SqlError>;
}

/// The destination of a session's answer.
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
    /// The start of the open row's packet.
    row: Option<usize>,
    /// The character set of names and messages; `None`: UTF-8.
    charset: Option<&'static Charset>,
    /// What few commands have.
    rare: Option<Box<RareState<'a>>>,
}

#[derive(Default)]
struct RareState<'a> {
    /// A file that the client sends in the middle of the command.
    upload: Option<Upload>,
    /// Takes the answer in place of the client.
    store: Option<&'a mut dyn AnswerStore>,
    /// Encoded changes of the session's state, for the next OK or end of rows.
    state: Option<Box<[u8]>>,
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
            rare: None,
        }
    }

    /// Lets `store` take the packets that would be sent. The last ones, less than [`FLUSH_BYTES`],
    /// stay in the buffer.
    pub fn keep_in(&mut self, store: &'a mut dyn AnswerStore) {
        self.rare.get_or_insert_default().store = Some(store);
    }

    /// Why the answer could not be kept.
    pub fn take_store_error(&mut self) -> Option<SqlError> {
        self.rare.as_mut()?.store.as_mut()?.take_error()
    }

    /// Sets the character set of column names and error messages. `None`: UTF-8, without
    /// conversion.
    pub fn set_charset(&mut self, charset: Option<&'static Charset>) {
        self.charset = charset;
    }

    /// The fiber that the answer is written in.
    pub fn fiber(&self) -> &'a FiberCx<'a> {
        self.cx
    }

    /// The capabilities of the connection, `nfold_protocol::consts::cap::*`.
    pub fn capabilities(&self) -> u32 {
        self.capabilities
    }

    /// Sets the status flags of the next OK or end of rows, except MORE_RESULTS_EXISTS.
    pub fn set_status(&mut self, flags: u16) {
        let more = self.status & status::MORE_RESULTS_EXISTS;
        self.status = flags & !status::MORE_RESULTS_EXISTS | more;
    }

    /// Sets the changes of the session's state that the next OK or end of rows has.
    #[cold]
    pub fn set_state(&mut self, changes: Box<[u8]>) {
        self.rare.get_or_insert_default().state = Some(changes);
    }

    /// Sets whether another result follows the current one.
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

    /// Sends OK for a statement without rows. The status flags come from [`Self::set_status`], not
    /// from `ok`.
    pub fn ok(&mut self, ok: &response::Ok<'_>) {
        let ok = response::Ok {
            status: self.status,
            ..*ok
        };
        if self.rare.is_some() {
            return self.ok_with_state(0, &ok);
        }
        self.packet(|out| response::encode_ok(out, 0, &ok));
    }

    /// Sends OK, with the changes of the session's state if it has some.
    #[cold]
    fn ok_with_state(&mut self, header: u8, ok: &response::Ok<'_>) {
        match self.rare.as_mut().and_then(|rare| rare.state.take()) {
            Some(state) => {
                self.packet(|out| response::encode_ok_with_state(out, header, ok, &state));
            }
            None => self.packet(|out| response::encode_ok(out, header, ok)),
        }
    }

    /// Sends ERR. An open row is discarded.
    pub fn error(&mut self, e: &ClientError) {
        if let Some(at) = self.row.take() {
            self.output.bytes.truncate(at);
        }
        if let Some(store) = self.rare.as_mut().and_then(|rare| rare.store.as_mut()) {
            // Nothing of the answer was sent, so the error is all of it.
            store.clear();
            self.output.reset();
            self.sequence = 0;
        }
        let message = match self.charset {
            Some(to) => Cow::Owned(message_in(to, &e.message)),
            None => Cow::Borrowed(e.message.as_bytes()),
        };
        self.packet(|out| response::encode_err(out, e.code, &e.sqlstate, &message));
    }

    /// Appends a packet with a column whose names are converted to the client's character set.
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

    /// Sends the column count and the column definitions of a result.
    pub fn columns<'c>(&mut self, columns: impl ExactSizeIterator<Item = Column<'c>>) {
        self.begin_result(columns.len());
        self.definitions(columns);
    }

    /// Sends the column count.
    fn begin_result(&mut self, columns: usize) {
        self.packet(|out| put_int(out, columns as u64));
    }

    /// Whether column names are sent without a conversion.
    pub fn sends_names_unchanged(&self) -> bool {
        self.charset.is_none()
    }

    /// As [`columns`](Self::columns). Also copies the packets of the definitions into `copy`, or
    /// nothing if they are long.
    pub fn columns_copied<'c>(
        &mut self,
        columns: impl ExactSizeIterator<Item = Column<'c>>,
        copy: &mut Vec<u8>,
    ) {
        let is_empty = columns.len() == 0;
        self.begin_result(columns.len());
        let start = self.output.bytes.len();
        for c in columns {
            self.definition(&c, response::encode_column);
        }
        copy.clear();
        let packets = &self.output.bytes[start..];
        if packets.len() <= COPIED_COLUMNS_BYTES {
            copy.extend_from_slice(packets);
        }
        self.end_definitions(is_empty);
    }

    /// As [`columns`](Self::columns), with the packets that
    /// [`columns_copied`](Self::columns_copied)
    /// has copied.
    pub fn columns_of_packets(&mut self, columns: usize, packets: &[u8]) {
        self.begin_result(columns);
        self.packets(packets);
        self.end_definitions(columns == 0);
    }

    /// Sends the column definitions for parameters or columns of a prepared statement, followed by
    /// EOF for clients without DEPRECATE_EOF. Sends nothing for an empty list.
    pub fn definitions<'c>(&mut self, columns: impl ExactSizeIterator<Item = Column<'c>>) {
        let is_empty = columns.len() == 0;
        for c in columns {
            self.definition(&c, response::encode_column);
        }
        self.end_definitions(is_empty);
    }

    /// Sends EOF after definitions to clients without DEPRECATE_EOF.
    fn end_definitions(&mut self, is_empty: bool) {
        if !is_empty && self.capabilities & cap::DEPRECATE_EOF == 0 {
            let status = self.status;
            self.packet(|out| response::encode_eof(out, 0, status));
        }
    }

    /// Answers COM_FIELD_LIST: column definitions without a count, and the end of the list. Each
    /// definition is followed by a default value; NULL is sent, because it is not known here.
    pub fn field_list(&mut self, columns: &[Column<'_>]) {
        for c in columns {
            self.definition(c, |out, c| {
                response::encode_column(out, c);
                out.push(0xfb);
            });
        }
        self.end_rows(0);
    }

    /// Sends the first packet of the answer to a prepare.
    pub fn prepare_ok(&mut self, statement: u32, columns: u16, parameters: u16, warnings: u16) {
        self.packet(|out| encode_prepare_ok(out, statement, columns, parameters, warnings));
    }

    /// Opens a row. The caller appends its values to the buffer, and does nothing else with it.
    #[inline]
    pub fn row_buffer(&mut self) -> &mut Vec<u8> {
        if self.row.is_none() {
            self.row = Some(begin_packet(&mut self.output.bytes));
        }
        &mut self.output.bytes
    }

    /// Ends the row, and sends the buffer if it is large. After an error the session must stop: the
    /// result is incomplete.
    #[inline]
    pub fn end_row(&mut self) -> Result<(), Interrupt> {
        self.row_buffer();
        if let Some(at) = self.row.take() {
            end_packet(&mut self.output.bytes, at, &mut self.sequence);
        }
        self.flush_if_much()
    }

    /// As [`end_row`](Self::end_row), with `value` inserted at byte `at` of the buffer. Sends the
    /// buffer and the value, which is not copied.
    pub fn end_row_with(&mut self, at: usize, value: &[u8]) -> Result<(), Interrupt> {
        self.row_buffer();
        let start = self.row.take().unwrap_or(at);
        let out = &mut self.output.bytes;
        let len = out.len() - start - HEADER + value.len();
        if len >= MAX_CHUNK || self.rare.as_ref().is_some_and(|rare| rare.store.is_some()) {
            out.splice(at..at, value.iter().copied());
            end_packet(out, start, &mut self.sequence);
            return self.flush_if_much();
        }
        let header = (len as u32 | u32::from(self.sequence) << 24).to_le_bytes();
        self.sequence = self.sequence.wrapping_add(1);
        out[start..start + HEADER].copy_from_slice(&header);
        let behind = out.split_off(at);
        self.output.send_with(value, self.transport, self.cx)?;
        self.output.bytes.extend_from_slice(&behind);
        Ok(())
    }

    /// Returns a buffer for consecutive rows. No row may be open. The caller calls
    /// [`flush_if_much`](Self::flush_if_much) afterwards.
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

    /// Sends the buffer if it is large. After an error the session must stop: the result is
    /// incomplete.
    #[inline(always)]
    pub fn flush_if_much(&mut self) -> Result<(), Interrupt> {
        match self.output.bytes.len() >= FLUSH_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// The number of bytes to send, including the open row.
    pub fn buffered(&self) -> usize {
        self.output.pending().len()
    }

    /// The length of the open row.
    pub fn row_len(&self) -> usize {
        self.row
            .map_or(0, |at| self.output.bytes.len() - at - HEADER)
    }

    /// Discards the open row.
    pub fn discard_row(&mut self) {
        if let Some(at) = self.row.take() {
            self.output.bytes.truncate(at);
        }
    }

    /// Ends the rows.
    pub fn end_rows(&mut self, warnings: u16) {
        let (capabilities, status) = (self.capabilities, self.status);
        // An EOF packet has no place for changes of the session's state.
        if self.rare.is_some() && capabilities & cap::DEPRECATE_EOF != 0 {
            let ok = response::Ok {
                status,
                warnings,
                ..response::Ok::default()
            };
            return self.ok_with_state(0xfe, &ok);
        }
        self.packet(|out| response::encode_end_of_rows(out, capabilities, warnings, status));
    }

    /// Sends packets, with new numbers.
    pub fn packets(&mut self, packets: &[u8]) {
        debug_assert!(self.row.is_none(), "P1: a row is open");
        let start = self.output.bytes.len();
        self.output.bytes.extend_from_slice(packets);
        renumber(&mut self.output.bytes[start..], &mut self.sequence);
    }

    /// Sends a packet with this payload (COM_STATISTICS).
    pub fn raw(&mut self, payload: &[u8]) {
        self.packet(|out| out.extend_from_slice(payload));
    }

    /// Sends everything. Suspends while the socket is full.
    pub fn flush(&mut self) -> Result<(), Interrupt> {
        debug_assert!(self.row.is_none(), "P1: only whole packets are sent");
        if let Some(store) = self.rare.as_mut().and_then(|rare| rare.store.as_mut()) {
            return store.append(self.cx, &mut self.output.bytes);
        }
        self.output.send(self.transport, self.cx)
    }

    /// Asks the client for a file (LOAD DATA LOCAL). Its bytes come by [`Self::read_file`].
    ///
    /// # Errors
    /// The client is gone.
    pub fn request_file(&mut self, name: &[u8]) -> Result<(), Interrupt> {
        self.packet(|out| {
            out.push(LOCAL_INFILE_REQUEST);
            out.extend_from_slice(name);
        });
        self.rare.get_or_insert_default().upload = Some(Upload::default());
        self.flush()
    }

    /// Appends the next bytes of the requested file to `to`, suspending until some arrive; false:
    /// the file has ended, or none was requested.
    ///
    /// # Errors
    /// The client is gone or too slow, or the statement was killed.
    pub fn read_file(&mut self, to: &mut Vec<u8>) -> Result<bool, Interrupt> {
        self.read_upload(true, to)
    }

    /// Reads the requested file to its end, so that the client reads the answer.
    pub fn skip_file(&mut self) {
        let mut skipped = Vec::new();
        while self.read_upload(false, &mut skipped) == Ok(true) {
            skipped.clear();
        }
    }

    /// Appends the payload of the next packet that the client sends during the command.
    ///
    /// # Errors
    /// The client is gone, or the command was killed.
    pub fn read_packet(&mut self, to: &mut Vec<u8>) -> Result<(), Interrupt> {
        let rare = self.rare.get_or_insert_default();
        let upload = rare.upload.get_or_insert_default();
        upload.read_packet(self.transport, self.cx, &mut self.sequence, to)
    }

    fn read_upload(&mut self, stops: bool, to: &mut Vec<u8>) -> Result<bool, Interrupt> {
        let Some(upload) = self.rare.as_mut().and_then(|rare| rare.upload.as_mut()) else {
            return Ok(false);
        };
        let read = upload.read(self.transport, (self.cx, stops), &mut self.sequence, to);
        if let Err(lost @ (Interrupt::ConnectionLost | Interrupt::Killed)) = read {
            // An answer would arrive in the middle of the file.
            self.output.lost = Some(lost);
        }
        read
    }

    /// Received bytes behind the end of the requested file.
    pub(crate) fn take_unread(&mut self) -> Option<Input> {
        self.rare.take()?.upload.map(Upload::into_unread)
    }

    pub(crate) fn set_capabilities(&mut self, capabilities: u32) {
        self.capabilities = capabilities;
    }
}

/// Converts a message to another character set. A missing character is shown as `\` and the
/// hexadecimal digits of its code point.
fn message_in(to: &Charset, message: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len());
    for c in message.chars() {
        if !to.encode(c, &mut out) {
            out.extend_from_slice(format!("\\{:04X}", u32::from(c)).as_bytes());
        }
    }
    out
}
