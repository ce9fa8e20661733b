//! One client connection: its buffers, its transport and its phase. Its worker owns it while it is
//! idle, its fiber while it runs.
//!
//! # Picture
//! ```text
//! Login ──(authenticated; fiber opens the session)──▶ Command ──COM_CHANGE_USER──▶ Login (session kept) ──▶ Command
//!   │ refused                                            │ quit, kill, timeout, error
//!   └───────────────▶ Closing: reads on for a moment, so that the client sees the error ◀────────┘
//! ```

mod dispatch;
mod login;

use std::rc::Rc;
use std::time::Instant;

use nfold_protocol::frame::{begin_packet, end_packet};

pub use super::fiber::writer::{FLUSH_BYTES, ResponseWriter};

pub(crate) use super::fiber::buffer::{Input, Output};
pub(crate) use super::fiber::transport::{Received, Socket, Transport};
pub(crate) use dispatch::{After, Job, run};
pub(crate) use login::{LoginState, LoginStep, too_many_connections};

use super::fiber::handler::SessionHandler;
pub(crate) use super::fiber::link::Link;
pub use super::fiber::link::Peer;

pub(crate) enum Phase {
    Login(Box<LoginState>),
    Command,
    /// Nothing is answered any more. Input is discarded until the client closes or `Conn::deadline`
    /// passes.
    Closing,
}

pub(crate) struct Conn {
    pub link: Rc<Link>,
    pub transport: Transport,
    pub input: Input,
    pub output: Output,
    pub peer: Peer,
    pub phase: Phase,
    pub session: Option<Box<dyn SessionHandler>>,
    /// The negotiated capabilities (`cap::*`).
    pub capabilities: u32,
    /// Login phase: the sequence number of the next packet in either direction.
    pub sequence: u8,
    /// The first sequence number of the answer to the current command.
    pub answer_sequence: u8,
    /// When the connection is closed if nothing arrives; `None` while it waits in the admission
    /// queue.
    pub deadline: Option<Instant>,
    /// Whether it uses the connection above `max_connections` that is reserved for administrators.
    pub in_reserve: bool,
}

impl Conn {
    /// Appends one packet with the given sequence number.
    pub fn packet(&mut self, mut sequence: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        let at = begin_packet(&mut self.output.bytes);
        fill(&mut self.output.bytes);
        end_packet(&mut self.output.bytes, at, &mut sequence);
        self.sequence = sequence;
    }
}
