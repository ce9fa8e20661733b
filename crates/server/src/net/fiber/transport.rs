//! One non-blocking socket, with or without TLS on it.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, RawFd};

use mio::event::Source;
use mio::{Interest, Registry};
use rustls::ServerConnection;

/// The socket under a connection.
pub(crate) enum Socket {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
    /// Without a socket: sent bytes are collected here ([`crate::embedded`]).
    Memory(Vec<u8>),
}

impl Socket {
    /// The socket to register with epoll, if there is one.
    fn source(&mut self) -> Option<&mut dyn Source> {
        match self {
            Socket::Tcp(s) => Some(s),
            Socket::Unix(s) => Some(s),
            Socket::Memory(_) => None,
        }
    }

    fn recv(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        retry(|| match self {
            Socket::Tcp(s) => s.read(buf),
            Socket::Unix(s) => s.read(buf),
            Socket::Memory(_) => Err(io::ErrorKind::WouldBlock.into()),
        })
    }

    fn send(&mut self, buf: &[u8]) -> io::Result<usize> {
        retry(|| match self {
            Socket::Tcp(s) => s.write(buf),
            Socket::Unix(s) => s.write(buf),
            Socket::Memory(sent) => {
                sent.extend_from_slice(buf);
                Ok(buf.len())
            }
        })
    }
}

/// For rustls: its reads and writes are retried in the same way.
impl Read for Socket {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.recv(buf)
    }
}

impl Write for Socket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.send(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn retry(mut f: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match f() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The result of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// The number of received bytes. `drained`: the socket was empty afterwards, so the next
    /// arrival is an edge.
    Bytes {
        n: usize,
        drained: bool,
    },
    Nothing,
    Closed,
}

pub(crate) struct Transport {
    socket: Socket,
    tls: Option<Box<ServerConnection>>,
    token: mio::Token,
    /// Whether the socket is registered for its writable edge.
    wants_writable: bool,
}

impl Transport {
    /// Registers the socket for reading. The writable edge is requested only while a send is
    /// blocked, because a unix socket would report it after every read of the peer.
    pub fn new(mut socket: Socket, registry: &Registry, token: mio::Token) -> io::Result<Self> {
        if let Some(source) = socket.source() {
            registry.register(source, token, Interest::READABLE)?;
        }
        Ok(Transport {
            socket,
            tls: None,
            token,
            wants_writable: false,
        })
    }

    /// Registers the connection with another worker's epoll.
    pub fn register(&mut self, registry: &Registry, token: mio::Token) -> io::Result<()> {
        (self.token, self.wants_writable) = (token, false);
        match self.socket.source() {
            Some(source) => registry.register(source, token, Interest::READABLE),
            None => Ok(()),
        }
    }

    /// Starts TLS. `early` are bytes of the handshake that have been received already.
    pub fn start_tls(&mut self, tls: ServerConnection, mut early: &[u8]) -> io::Result<()> {
        let mut tls = Box::new(tls);
        while !early.is_empty() {
            tls.read_tls(&mut early)?;
            tls.process_new_packets().map_err(io::Error::other)?;
        }
        self.tls = Some(tls);
        Ok(())
    }

    /// The collected bytes of a connection without a socket; otherwise `None`.
    pub fn sent_to_memory(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.socket {
            Socket::Memory(sent) => Some(sent),
            _ => None,
        }
    }

    /// The file descriptor, if bytes are sent unencrypted.
    pub fn plain_fd(&self) -> Option<RawFd> {
        match &self.socket {
            _ if self.tls.is_some() => None,
            Socket::Tcp(s) => Some(s.as_raw_fd()),
            Socket::Unix(s) => Some(s.as_raw_fd()),
            Socket::Memory(_) => None,
        }
    }

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether no host on a network can read the connection: TLS, or a unix socket.
    pub fn is_secure(&self) -> bool {
        self.tls.is_some() || matches!(self.socket, Socket::Unix(_))
    }

    /// Reads once into `buf`, which must not be empty.
    pub fn recv(&mut self, buf: &mut [u8]) -> io::Result<Received> {
        let Some(tls) = &mut self.tls else {
            return received(self.socket.recv(buf), buf.len());
        };
        loop {
            match tls.reader().read(buf) {
                Ok(0) => return Ok(Received::Closed),
                Ok(n) => return Ok(Received::Bytes { n, drained: false }),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Received::Closed),
                Err(e) => return Err(e),
            }
            match tls.read_tls(&mut self.socket) {
                Ok(0) => return Ok(Received::Closed),
                Ok(_) => {
                    let state = tls.process_new_packets();
                    if tls.wants_write() {
                        // An alert or a handshake message. The part that does not fit is sent by
                        // `flush_tls`.
                        let _ = tls.write_tls(&mut self.socket);
                    }
                    state.map_err(io::Error::other)?;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends as much as the socket accepts. WouldBlock if it accepts nothing.
    #[inline]
    pub fn send(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.send(buf),
            Some(tls) => send_tls(tls, &mut self.socket, buf),
        }
    }

    /// Sends the encrypted bytes that TLS has buffered. True: none is left.
    #[inline]
    pub fn flush_tls(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => drain_tls(tls, &mut self.socket),
        }
    }

    /// Requests the writable edge, or cancels the request.
    #[inline]
    pub fn want_writable(&mut self, registry: &Registry, want: bool) -> io::Result<()> {
        if self.wants_writable == want {
            return Ok(());
        }
        self.register_writable(registry, want)
    }

    #[cold]
    fn register_writable(&mut self, registry: &Registry, want: bool) -> io::Result<()> {
        let interest = if want {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        if let Some(source) = self.socket.source() {
            registry.reregister(source, self.token, interest)?;
        }
        self.wants_writable = want;
        Ok(())
    }

    /// Closes the sending side: the peer reads the end of the stream.
    pub fn shutdown_write(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.socket);
        }
        // Fails if the peer has disconnected already.
        let _ = match &self.socket {
            Socket::Tcp(s) => s.shutdown(Shutdown::Write),
            Socket::Unix(s) => s.shutdown(Shutdown::Write),
            Socket::Memory(_) => Ok(()),
        };
    }

    /// Closes the connection. TLS notifies the peer if the socket accepts the message.
    pub fn close(&mut self, registry: &Registry) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.socket);
        }
        self.deregister(registry);
    }

    /// Removes the socket from epoll, unnoticed by the peer.
    pub fn deregister(&mut self, registry: &Registry) {
        if let Some(source) = self.socket.source()
            && let Err(e) = registry.deregister(source)
        {
            tracing::warn!("cannot take a socket out of epoll: {e}");
        }
    }
}

/// Encrypts and sends as much as the socket accepts. WouldBlock if it accepts nothing.
#[inline(never)]
fn send_tls(tls: &mut ServerConnection, socket: &mut Socket, buf: &[u8]) -> io::Result<usize> {
    // Only a socket that has refused bytes reports that it is writable again. So WouldBlock is
    // returned only if the socket itself has refused.
    if tls.is_handshaking() || !drain_tls(tls, socket)? {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let n = tls.writer().write(buf)?;
    drain_tls(tls, socket)?;
    Ok(n)
}

/// Sends buffered encrypted bytes. False: the socket accepts no more.
fn drain_tls(tls: &mut ServerConnection, socket: &mut Socket) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

fn received(result: io::Result<usize>, asked: usize) -> io::Result<Received> {
    match result {
        Ok(0) => Ok(Received::Closed),
        Ok(n) => Ok(Received::Bytes {
            n,
            drained: n < asked,
        }),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Received::Nothing),
        Err(e) => Err(e),
    }
}
