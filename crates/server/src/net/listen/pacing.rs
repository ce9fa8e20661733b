//! Connections from this machine are not paced.
//!
//! On some systems the congestion control is BBR, which spreads sent data over time: the kernel
//! sets a timer for each piece. Loopback traffic cannot be congested, so the timers are pure cost:
//! a tenth of the time for an answer of 150 KB.
//!
//! A socket keeps the pacing that it starts with, and it starts before it is accepted. So the
//! listener gets an algorithm without pacing. Accepted connections from other machines get the
//! system's algorithm back, which then paces as usual.

use std::io;
use std::net::SocketAddr;

use mio::net::TcpStream;
use socket2::{SockRef, Socket};

/// Part of every Linux, and allowed for every process.
const UNPACED: &[u8] = b"reno";

/// The congestion control for connections from other machines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Elsewhere(Vec<u8>);

impl Elsewhere {
    /// Makes the connections that `listener` accepts start without pacing. `None`: they do so
    /// already.
    ///
    /// # Errors
    /// The system's error for a socket without congestion control.
    pub fn of(listener: &Socket, paces: impl Fn(&[u8]) -> bool) -> io::Result<Option<Elsewhere>> {
        let system = listener.tcp_congestion()?;
        if !paces(&system) {
            return Ok(None);
        }
        listener.set_tcp_congestion(UNPACED)?;
        Ok(Some(Elsewhere(system)))
    }

    /// Restores the system's congestion control on an accepted connection from another machine.
    pub fn welcome(&self, socket: &TcpStream, peer: SocketAddr) {
        let here = || socket.local_addr().is_ok_and(|a| a.ip() == peer.ip());
        if peer.ip().to_canonical().is_loopback() || here() {
            return;
        }
        self.give_back(socket);
    }

    fn give_back(&self, socket: &TcpStream) {
        if let Err(e) = SockRef::from(socket).set_tcp_congestion(&self.0) {
            tracing::debug!("TCP_CONGESTION: {e}");
        }
    }
}

/// Whether an algorithm of this name paces: any version of BBR.
pub(super) fn paces(name: &[u8]) -> bool {
    name.starts_with(b"bbr")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(socket: &TcpStream) -> Vec<u8> {
        let mut name = SockRef::from(socket).tcp_congestion().expect("a name");
        name.retain(|&b| b != 0);
        name
    }

    #[test]
    fn only_bbr_paces() {
        assert!(paces(b"bbr\0\0") && paces(b"bbr2"));
        assert!(!paces(b"cubic\0") && !paces(b"reno"));
    }

    #[test]
    fn connections_from_here_begin_without_pacing() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let socket = Socket::from(listener);
        let before = socket.tcp_congestion().expect("a name");
        assert_eq!(Elsewhere::of(&socket, |_| false).expect("a look"), None);
        let elsewhere = Elsewhere::of(&socket, |_| true)
            .expect("an algorithm")
            .expect("another one");
        assert_eq!(elsewhere, Elsewhere(before.clone()));
        let listener = std::net::TcpListener::from(socket);
        let client = std::net::TcpStream::connect(address).expect("a connection");
        let (accepted, peer) = listener.accept().expect("a connection");
        let accepted = TcpStream::from_std(accepted);
        elsewhere.welcome(&accepted, peer);
        assert_eq!(name(&accepted), UNPACED);
        // Simulates a connection from another machine.
        elsewhere.give_back(&accepted);
        assert!(before.starts_with(&name(&accepted)));
        drop(client);
    }
}
