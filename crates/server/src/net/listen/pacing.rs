//! Connections from this machine are not paced.
//!
//! Some systems' congestion control is BBR, which spreads what is sent over time: the kernel sets a
//! timer for each piece. What goes over loopback meets no network that could be congested, and only
//! the timers are left of it: a tenth of what an answer of 150 KB takes.
//!
//! A socket keeps the pacing that it began with, and it begins before it is accepted. So the
//! listener is given an algorithm that does not pace, and connections from elsewhere get the
//! system's back once they are accepted, which then paces as it always does.

use std::io;
use std::net::SocketAddr;

use mio::net::TcpStream;
use socket2::{SockRef, Socket};

/// In every Linux, and allowed to every process.
const UNPACED: &[u8] = b"reno";

/// The congestion control that connections get which are not from this machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Elsewhere(Vec<u8>);

impl Elsewhere {
    /// Sees to it that what `listener` accepts begins without pacing. `None`: it does anyway.
    ///
    /// # Errors
    /// The system's, for a socket that has no congestion control.
    pub fn of(listener: &Socket, paces: impl Fn(&[u8]) -> bool) -> io::Result<Option<Elsewhere>> {
        let system = listener.tcp_congestion()?;
        if !paces(&system) {
            return Ok(None);
        }
        listener.set_tcp_congestion(UNPACED)?;
        Ok(Some(Elsewhere(system)))
    }

    /// Gives an accepted connection back what the system has for it, if it is from another machine.
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

/// Whether an algorithm of this name paces: BBR of any version.
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
        // As for one from another machine.
        elsewhere.give_back(&accepted);
        assert!(before.starts_with(&name(&accepted)));
        drop(client);
    }
}
