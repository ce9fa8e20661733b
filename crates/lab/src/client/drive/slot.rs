//! The state of one connection of the driver: sent bytes, the response awaited, prepared
//! statements.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::time::Instant;

use nfold_protocol::consts::com;

use super::Source;
use crate::client::command::{Command, packet};
use crate::client::response::{NoRows, Response};
use crate::client::stream::Evented;

/// The most statements that a connection keeps prepared. Beyond that, the oldest is closed.
const PREPARED: usize = 256;

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A command is in progress.
    Busy,
    /// The command's template is being prepared.
    Preparing,
    /// Waiting until the source should be asked again, or until the connection should be reopened.
    Waiting,
    Lost {
        since: Instant,
    },
    Ended,
}

/// The result of processing received bytes.
pub enum ReceiveOutcome {
    /// There is nothing more to read, and the answer is incomplete.
    Nothing,
    Answer,
    Lost,
}

pub struct Slot {
    pub socket: Option<Evented>,
    pub response: Response,
    pub source: Box<dyn Source>,
    pub command: Command,
    pub state: State,
    /// When the current command was sent, and the first one of its event.
    pub began: Instant,
    pub event_began: Instant,
    pub inside_event: bool,
    /// Whether the command was sent again after the connection broke.
    pub retried: bool,
    /// Whether its last answer was longer than the buffer for receiving from several connections at
    /// once.
    pub long: bool,
    out: Vec<u8>,
    sent: usize,
    prepared: VecDeque<(u32, u32)>,
}

impl Slot {
    pub fn new(
        socket: Evented,
        capabilities: u32,
        hash_rows: bool,
        source: Box<dyn Source>,
    ) -> Slot {
        let now = Instant::now();
        Slot {
            socket: Some(socket),
            response: Response::new(capabilities, hash_rows),
            source,
            command: Command::default(),
            state: State::Waiting,
            began: now,
            event_began: now,
            inside_event: false,
            retried: false,
            long: false,
            out: Vec::new(),
            sent: 0,
            prepared: VecDeque::new(),
        }
    }

    /// Replaces a lost connection by a new one, on which nothing is prepared.
    pub fn replace(&mut self, socket: Evented, capabilities: u32, hash_rows: bool) {
        self.socket = Some(socket);
        self.response = Response::new(capabilities, hash_rows);
        self.prepared.clear();
        self.out.clear();
        self.sent = 0;
    }

    /// Encodes the command, or the prepare of its template, as the next bytes to send.
    pub fn encode(&mut self, now: Instant) {
        self.out.clear();
        self.sent = 0;
        self.state = State::Busy;
        self.began = now;
        match self.command.template() {
            None => self.command.encode_text(&mut self.out),
            Some(template) => match self.prepared.iter().find(|(t, _)| *t == template) {
                Some((_, id)) => self.command.encode_execute(*id, &mut self.out),
                None => {
                    if self.prepared.len() >= PREPARED
                        && let Some((_, oldest)) = self.prepared.pop_front()
                    {
                        packet(&mut self.out, com::STMT_CLOSE, |out| {
                            out.extend_from_slice(&oldest.to_le_bytes())
                        });
                    }
                    let text = self.source.template(template);
                    packet(&mut self.out, com::STMT_PREPARE, |out| {
                        out.extend_from_slice(text.as_bytes())
                    });
                    self.state = State::Preparing;
                }
            },
        }
        self.response.begin(self.state == State::Preparing);
    }

    /// Encodes the execution of the template that was just prepared. Returns false if the server
    /// rejected the prepare, which then is the command's answer.
    pub fn prepared(&mut self, now: Instant) -> bool {
        let (Some((id, _)), Some(template)) =
            (self.response.answer().prepared, self.command.template())
        else {
            return false;
        };
        self.prepared.push_back((template, id));
        self.encode(now);
        true
    }

    /// The socket's descriptor, if bytes are written to it directly.
    pub fn plain(&self) -> Option<RawFd> {
        self.socket.as_ref()?.plain()
    }

    /// The bytes still to be sent.
    pub fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Processes the result of sending [`Self::unsent`] outside this object: the bytes sent, or a
    /// negative error number.
    pub fn was_sent(&mut self, result: i32) -> io::Result<()> {
        match result {
            n if n > 0 => self.sent += n as usize,
            n if -n == libc::EAGAIN || -n == libc::EINTR => {}
            n => return Err(io::Error::from_raw_os_error(-n)),
        }
        // Usually the socket does not accept the rest yet, and becomes writable later.
        self.flush()
    }

    /// Writes the bytes that the socket accepts.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(socket) = &mut self.socket else {
            return Ok(());
        };
        while self.sent < self.out.len() {
            match socket.write(&self.out[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        socket.flush()
    }

    /// As [`Self::receive`], for bytes that were received into `piece` outside this object: their
    /// number, or a negative error number.
    pub fn was_received(&mut self, result: i32, piece: &[u8], buffer: &mut [u8]) -> ReceiveOutcome {
        let n = match result {
            0 => return ReceiveOutcome::Lost,
            n if n > 0 => n as usize,
            n if -n == libc::EAGAIN => return ReceiveOutcome::Nothing,
            n if -n == libc::EINTR => return self.receive(buffer),
            _ => return ReceiveOutcome::Lost,
        };
        match self.response.feed(&piece[..n], &mut NoRows) {
            Ok(true) => ReceiveOutcome::Answer,
            Ok(false) if n < piece.len() => ReceiveOutcome::Nothing,
            Ok(false) => self.receive(buffer),
            Err(_) => ReceiveOutcome::Lost,
        }
    }

    /// Reads until the answer is complete, or until nothing is left to read.
    pub fn receive(&mut self, buffer: &mut [u8]) -> ReceiveOutcome {
        loop {
            let Some(socket) = &mut self.socket else {
                return ReceiveOutcome::Nothing;
            };
            let n = match socket.read(buffer) {
                Ok(0) => return ReceiveOutcome::Lost,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return ReceiveOutcome::Nothing,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return ReceiveOutcome::Lost,
            };
            let all = socket.short_read_is_all();
            match self.response.feed(&buffer[..n], &mut NoRows) {
                Ok(true) => return ReceiveOutcome::Answer,
                Ok(false) if n < buffer.len() && all => return ReceiveOutcome::Nothing,
                Ok(false) => {}
                Err(_) => return ReceiveOutcome::Lost,
            }
        }
    }

    /// Sends COM_QUIT and closes the connection.
    pub fn close(&mut self) {
        if let Some(mut socket) = self.socket.take()
            && self.state != State::Busy
        {
            let _ = socket.write(&[1, 0, 0, 0, com::QUIT]);
            let _ = socket.flush();
        }
        self.state = State::Ended;
    }
}
