//! One client connection: buffers, transport and what phase it is in. Owned by its worker while
//! idle and by its fiber while it runs.
//!
//! # Picture
//! ```text
//! Login ──(authenticated; fiber opens the session)──▶ Command ──COM_CHANGE_USER──▶ Login (session kept) ──▶ Command
//!   │ refused                                            │ quit, kill, timeout, error
//!   └───────────────▶ Closing: reads on for a moment, so that the client sees the error ◀────────┘
//! ```

mod buffer;
mod dispatch;
mod login;
mod transport;
mod writer;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use nfold_protocol::frame::{begin_packet, end_packet};

pub use writer::{FLUSH_BYTES, ResponseWriter};

pub(crate) use buffer::{Input, Output};
pub(crate) use dispatch::{After, Job, run};
pub(crate) use login::{LoginState, LoginStep, too_many_connections};
pub(crate) use transport::{Received, Socket, Transport};
pub(crate) use writer::send_some;

use crate::handler::{Limits, SessionHandler};
use crate::worker::ConnSlot;

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    /// The unix socket.
    Local,
}

impl Peer {
    /// The name that accounts are matched against: `localhost` for this machine, else the address.
    /// No name service is asked.
    pub fn host_name(&self) -> String {
        match self {
            Peer::Local => "localhost".into(),
            Peer::Tcp(a) if a.ip().to_canonical().is_loopback() => "localhost".into(),
            Peer::Tcp(a) => a.ip().to_canonical().to_string(),
        }
    }

    /// The address, also of this machine; `None` for the unix socket.
    pub fn address(&self) -> Option<String> {
        match self {
            Peer::Local => None,
            Peer::Tcp(a) => Some(a.ip().to_canonical().to_string()),
        }
    }

    /// As in PROCESSLIST: `host:port`.
    pub fn process_host(&self) -> String {
        match self {
            Peer::Local => "localhost".into(),
            Peer::Tcp(a) => format!("{}:{}", self.host_name(), a.port()),
        }
    }
}

pub(crate) enum Phase {
    Login(Box<LoginState>),
    Command,
    /// Nothing is answered any more; what arrives is thrown away until the client closes or
    /// `Conn::deadline`.
    Closing,
}

/// What a fiber borrows while its [`Conn`] is in other hands. Counted without atomics: all of it
/// stays on one thread.
pub(crate) struct Link {
    pub slot: Arc<ConnSlot>,
    pub waker: Waker,
    pub limits: Cell<Limits>,
}

pub(crate) struct Conn {
    pub link: Rc<Link>,
    pub transport: Transport,
    pub input: Input,
    pub output: Output,
    pub peer: Peer,
    pub phase: Phase,
    pub session: Option<Box<dyn SessionHandler>>,
    /// `cap::*`, agreed.
    pub capabilities: u32,
    /// Login phase: the number of the next packet in either direction.
    pub sequence: u8,
    /// First sequence number of the answer to the running command.
    pub answer_sequence: u8,
    /// When it is closed if nothing happens; `None` while it waits for its turn.
    pub deadline: Option<Instant>,
    /// It took a place above `max_connections`, which is reserved for administrators.
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
