//! Cursors: the result of a prepared statement that its client fetches in parts
//! (CURSOR_TYPE_READ_ONLY).
//!
//! The execution computes the whole result, as in MySQL, and keeps the packets of its answer: in
//! memory if they are short, otherwise in a temporary file without a name. The client gets the
//! descriptions of the columns at once, and the rows by COM_STMT_FETCH. A cursor ends with its last
//! row, with the next execution or reset of its statement, and with the statement.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use nfold_exec::{StatementFiber, nameless_file, temporary_file_error};
use nfold_protocol::consts::cap;
use nfold_protocol::frame::{Frame, HEADER, next_frame};
use nfold_protocol::lenenc::Reader;
use nfold_types::{ErrorCode, SqlError};

use super::cx::{FiberExec, apart};
use super::response::interrupt_error;
use crate::net::conn::ResponseWriter;
use crate::net::fiber::writer::AnswerStore;
use crate::net::worker::{FiberCx, Interrupt};

/// The first byte of OK, of the packet behind the rows, and of ERR. A binary row begins with 0.
const OK: u8 = 0;
const END: u8 = 0xfe;
const ERR: u8 = 0xff;

/// The bytes that are read from the file at once.
const READ_BYTES: usize = 256 << 10;

/// The packets of an answer, and how far the client has fetched them.
pub struct Cursor {
    directory: PathBuf,
    file: Option<Arc<File>>,
    /// The length of the file, and where the bytes behind `buffer` begin in it.
    written: u64,
    read: u64,
    /// Packets that were not fetched yet; those before `at` were.
    buffer: Vec<u8>,
    at: usize,
    /// The number of the next packet.
    sequence: u8,
    error: Option<SqlError>,
}

impl AnswerStore for Cursor {
    fn append(&mut self, cx: &FiberCx<'_>, packets: &mut Vec<u8>) -> Result<(), Interrupt> {
        self.write(&mut FiberExec { fiber: cx }, packets)
            .map_err(|e| {
                self.error = Some(e);
                Interrupt::QueryKilled
            })
    }

    fn clear(&mut self) {
        (self.file, self.written) = (None, 0);
    }

    fn take_error(&mut self) -> Option<SqlError> {
        self.error.take()
    }
}

impl Cursor {
    /// `directory`: of the temporary file.
    pub fn new(directory: PathBuf) -> Self {
        Cursor {
            directory,
            file: None,
            written: 0,
            read: 0,
            buffer: Vec::new(),
            at: 0,
            sequence: 0,
            error: None,
        }
    }

    /// Moves `packets` to the end of the file.
    fn write(
        &mut self,
        fiber: &mut dyn StatementFiber,
        packets: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let (file, directory) = (self.file.clone(), self.directory.clone());
        let (bytes, at) = (std::mem::take(packets), self.written);
        let job = move || -> io::Result<_> {
            let file = match file {
                Some(file) => file,
                None => Arc::new(nameless_file(&directory)?),
            };
            file.write_all_at(&bytes, at)?;
            Ok((file, bytes))
        };
        let (file, bytes) = apart(fiber, job)?.map_err(|e| temporary_file_error(&e))?;
        self.file = Some(file);
        self.written += bytes.len() as u64;
        *packets = bytes;
        packets.clear();
        Ok(())
    }

    /// Adds the last packets of the answer.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub fn finish(
        &mut self,
        fiber: &mut dyn StatementFiber,
        packets: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        match self.file {
            Some(_) => self.write(fiber, packets),
            None => {
                self.buffer = packets.clone();
                Ok(())
            }
        }
    }

    /// Sends the descriptions of the columns; false: the answer has none, and is sent whole.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn send_columns(
        &mut self,
        fiber: &mut dyn StatementFiber,
        out: &mut ResponseWriter<'_>,
    ) -> Result<bool, SqlError> {
        let first = self.packet(fiber)?;
        out.packets(first);
        let payload = &first[HEADER..];
        if matches!(payload.first(), None | Some(&(OK | ERR))) {
            return Ok(false);
        }
        let count = Reader::new(payload).lenenc_int("columns");
        for _ in 0..count.unwrap_or_default() {
            out.packets(self.packet(fiber)?);
        }
        if out.capabilities() & cap::DEPRECATE_EOF == 0 {
            self.packet(fiber)?;
        }
        Ok(true)
    }

    /// Sends at most `rows` rows; false: they were fewer, and the last ones.
    ///
    /// # Errors
    /// The temporary file cannot be read, the statement was killed, the client is gone.
    pub fn send_rows(
        &mut self,
        fiber: &mut dyn StatementFiber,
        rows: u32,
        out: &mut ResponseWriter<'_>,
    ) -> Result<bool, SqlError> {
        for _ in 0..rows {
            let packet = self.packet(fiber)?;
            if packet.get(HEADER) == Some(&END) {
                return Ok(false);
            }
            out.packets(packet);
            out.flush_if_much().map_err(interrupt_error)?;
        }
        Ok(true)
    }

    /// Reads from the file until the buffer has `need` bytes.
    fn fill(&mut self, fiber: &mut dyn StatementFiber, need: usize) -> Result<(), SqlError> {
        self.buffer.drain(..self.at);
        self.at = 0;
        while self.buffer.len() < need {
            fiber.tick().map_err(nfold_exec::Interrupt::to_sql)?;
            let left = usize::try_from(self.written - self.read).unwrap_or(usize::MAX);
            let Some(file) = self.file.clone().filter(|_| left > 0) else {
                let message = "a cursor has lost packets";
                return Err(SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, message));
            };
            let (mut buffer, from) = (std::mem::take(&mut self.buffer), self.read);
            let job = move || -> io::Result<_> {
                let start = buffer.len();
                buffer.resize(start + left.min(READ_BYTES), 0);
                file.read_exact_at(&mut buffer[start..], from)?;
                Ok((buffer.len() - start, buffer))
            };
            let (n, buffer) = apart(fiber, job)?.map_err(|e| temporary_file_error(&e))?;
            self.read += n as u64;
            self.buffer = buffer;
        }
        Ok(())
    }

    /// The next packet, in several frames if it is long.
    fn packet(&mut self, fiber: &mut dyn StatementFiber) -> Result<&[u8], SqlError> {
        loop {
            match next_frame(&self.buffer[self.at..], self.sequence, usize::MAX) {
                Ok(Frame::Whole { len, sequence }) => {
                    return Ok(self.take(HEADER + len, sequence));
                }
                Ok(Frame::Split {
                    total,
                    last_sequence,
                    ..
                }) => return Ok(self.take(total, last_sequence)),
                Ok(Frame::Partial { need }) => self.fill(fiber, need)?,
                Err(_) => {
                    let message = "a cursor has packets that are out of order";
                    return Err(SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, message));
                }
            }
        }
    }

    fn take(&mut self, bytes: usize, last_sequence: u8) -> &[u8] {
        let start = self.at;
        self.at += bytes;
        self.sequence = last_sequence.wrapping_add(1);
        &self.buffer[start..self.at]
    }
}
