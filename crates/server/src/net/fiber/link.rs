//! The part of a connection that the code on its fiber uses.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

use super::handler::Limits;
use super::slot::ConnSlot;

/// The address of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    /// The unix socket.
    Local,
}

impl Peer {
    /// Whether the client came through the Unix socket.
    pub fn is_local(&self) -> bool {
        *self == Peer::Local
    }

    /// The host name that accounts are matched against: `localhost` for this machine, otherwise the
    /// address. No name service is used.
    pub fn host_name(&self) -> String {
        match self {
            Peer::Local => "localhost".into(),
            Peer::Tcp(a) if a.ip().to_canonical().is_loopback() => "localhost".into(),
            Peer::Tcp(a) => a.ip().to_canonical().to_string(),
        }
    }

    /// The address, even for this machine; `None` for the unix socket.
    pub fn address(&self) -> Option<String> {
        match self {
            Peer::Local => None,
            Peer::Tcp(a) => Some(a.ip().to_canonical().to_string()),
        }
    }

    /// The host as PROCESSLIST shows it: `host:port`.
    pub fn process_host(&self) -> String {
        match self {
            Peer::Local => "localhost".into(),
            Peer::Tcp(a) => format!("{}:{}", self.host_name(), a.port()),
        }
    }
}

/// The state that a fiber uses while the `Conn` is borrowed elsewhere. In an `Rc`: all of it stays
/// on one thread.
pub(crate) struct Link {
    pub slot: Arc<ConnSlot>,
    pub waker: Waker,
    pub limits: Cell<Limits>,
}
