//! What a connection is to the code that runs on its fiber.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

use super::handler::Limits;
use super::slot::ConnSlot;

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

/// What a fiber borrows while its `Conn` is in other hands. Counted without atomics: all of it
/// stays on one thread.
pub(crate) struct Link {
    pub slot: Arc<ConnSlot>,
    pub waker: Waker,
    pub limits: Cell<Limits>,
}
