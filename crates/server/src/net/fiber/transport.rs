//! One non-blocking socket, with or without TLS and compression on it.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, RawFd};

use mio::event::Source;
use mio::{Interest, Registry};
use rustls::ServerConnection;

use super::compression::{Algorithm, Compression};

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

    /// As [`Self::send`], of two buffers by one call.
    fn send_two(&mut self, first: &[u8], second: &[u8]) -> io::Result<usize> {
        let both = [IoSlice::new(first), IoSlice::new(second)];
        retry(|| match self {
            Socket::Tcp(s) => s.write_vectored(&both),
            Socket::Unix(s) => s.write_vectored(&both),
            Socket::Memory(sent) => sent.write_vectored(&both),
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
    /// What encodes the bytes on their way to the socket; `None`: nothing does.
    layers: Option<Box<Layers>>,
    token: mio::Token,
    /// Whether the socket is registered for its writable edge.
    wants_writable: bool,
}

/// TLS, and compression above it.
#[derive(Default)]
struct Layers {
    tls: Option<ServerConnection>,
    compression: Option<Compression>,
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
            layers: None,
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
    pub fn start_tls(&mut self, mut tls: ServerConnection, mut early: &[u8]) -> io::Result<()> {
        while !early.is_empty() {
            tls.read_tls(&mut early)?;
            tls.process_new_packets().map_err(io::Error::other)?;
        }
        self.layers.get_or_insert_default().tls = Some(tls);
        Ok(())
    }

    /// Starts compression. `early` are compressed bytes that have been received already. All
    /// earlier bytes must have been sent.
    pub fn start_compression(&mut self, algorithm: Algorithm, early: &[u8]) {
        let layers = self.layers.get_or_insert_default();
        layers.compression = Some(Compression::new(algorithm, early));
    }

    /// The collected bytes of a connection without a socket; otherwise `None`.
    pub fn sent_to_memory(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.socket {
            Socket::Memory(sent) => Some(sent),
            _ => None,
        }
    }

    /// The file descriptor, if bytes are sent as they are.
    pub fn plain_fd(&self) -> Option<RawFd> {
        match &self.socket {
            _ if self.layers.is_some() => None,
            Socket::Tcp(s) => Some(s.as_raw_fd()),
            Socket::Unix(s) => Some(s.as_raw_fd()),
            Socket::Memory(_) => None,
        }
    }

    pub fn is_tls(&self) -> bool {
        self.tls().is_some()
    }

    /// The TLS session, if there is one.
    pub fn tls(&self) -> Option<&ServerConnection> {
        self.layers.as_ref()?.tls.as_ref()
    }

    /// Whether sent bytes are encrypted or compressed, which takes time of the worker.
    pub fn is_encoded(&self) -> bool {
        self.layers.is_some()
    }

    /// Whether no host on a network can read the connection: TLS, or a unix socket.
    pub fn is_secure(&self) -> bool {
        self.is_tls() || matches!(self.socket, Socket::Unix(_))
    }

    /// Reads once into `buf`, which must not be empty. With compression `n` may be 0: more bytes
    /// follow without an edge.
    pub fn recv(&mut self, buf: &mut [u8]) -> io::Result<Received> {
        match &mut self.layers {
            None => received(self.socket.recv(buf), buf.len()),
            Some(layers) => layers.recv(&mut self.socket, buf),
        }
    }

    /// Sends as much as the socket accepts. WouldBlock if it accepts nothing.
    #[inline]
    pub fn send(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.layers {
            None => self.socket.send(buf),
            Some(layers) => layers.send(&mut self.socket, buf),
        }
    }

    /// As [`Self::send`], of two buffers, of which the second one is not empty.
    pub fn send_two(&mut self, first: &[u8], second: &[u8]) -> io::Result<usize> {
        match &mut self.layers {
            None => self.socket.send_two(first, second),
            Some(layers) if first.is_empty() => layers.send(&mut self.socket, second),
            Some(layers) => layers.send(&mut self.socket, first),
        }
    }

    /// Sends the encoded bytes that TLS and compression have buffered. True: none is left.
    #[inline]
    pub fn flush_layers(&mut self) -> io::Result<bool> {
        match &mut self.layers {
            None => Ok(true),
            Some(layers) => layers.flush(&mut self.socket),
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
        self.notify_close();
        // Fails if the peer has disconnected already.
        let _ = match &self.socket {
            Socket::Tcp(s) => s.shutdown(Shutdown::Write),
            Socket::Unix(s) => s.shutdown(Shutdown::Write),
            Socket::Memory(_) => Ok(()),
        };
    }

    /// Closes the connection. TLS notifies the peer if the socket accepts the message.
    pub fn close(&mut self, registry: &Registry) {
        self.notify_close();
        self.deregister(registry);
    }

    /// Sends TLS's notification that no more bytes follow.
    fn notify_close(&mut self) {
        if let Some(tls) = self.layers.as_mut().and_then(|l| l.tls.as_mut()) {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.socket);
        }
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

impl Layers {
    fn recv(&mut self, socket: &mut Socket, buf: &mut [u8]) -> io::Result<Received> {
        let Some(compression) = &mut self.compression else {
            return recv_below(&mut self.tls, socket, buf);
        };
        loop {
            if let Some(n) = compression.read(buf)? {
                return Ok(Received::Bytes { n, drained: false });
            }
            match recv_below(&mut self.tls, socket, compression.space())? {
                Received::Bytes { n, .. } => compression.received(n),
                other => {
                    compression.release();
                    return Ok(other);
                }
            }
        }
    }

    /// Encodes and sends as much as the socket accepts. WouldBlock if it accepts nothing.
    #[inline(never)]
    fn send(&mut self, socket: &mut Socket, buf: &[u8]) -> io::Result<usize> {
        if self.compression.is_none() {
            return send_below(&mut self.tls, socket, buf);
        }
        // Only a socket that has refused bytes reports that it is writable again. So WouldBlock is
        // returned only if the socket itself has refused.
        if !self.flush(socket)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = self.compression.as_mut().map_or(0, |c| c.write(buf));
        self.flush(socket)?;
        Ok(n)
    }

    /// Sends the buffered encoded bytes. False: the socket accepts no more.
    fn flush(&mut self, socket: &mut Socket) -> io::Result<bool> {
        if let Some(compression) = &mut self.compression {
            while !compression.pending().is_empty() {
                match send_below(&mut self.tls, socket, compression.pending()) {
                    Ok(n) => compression.sent(n),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(e) => return Err(e),
                }
            }
        }
        match &mut self.tls {
            Some(tls) => drain_tls(tls, socket),
            None => Ok(true),
        }
    }
}

/// Reads once from TLS or the socket.
fn recv_below(
    tls: &mut Option<ServerConnection>,
    socket: &mut Socket,
    buf: &mut [u8],
) -> io::Result<Received> {
    let Some(tls) = tls else {
        return received(socket.recv(buf), buf.len());
    };
    loop {
        match tls.reader().read(buf) {
            Ok(0) => return Ok(Received::Closed),
            Ok(n) => return Ok(Received::Bytes { n, drained: false }),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Received::Closed),
            Err(e) => return Err(e),
        }
        match tls.read_tls(socket) {
            Ok(0) => return Ok(Received::Closed),
            Ok(_) => {
                let state = tls.process_new_packets();
                if tls.wants_write() {
                    // An alert or a handshake message. The part that does not fit is sent by
                    // `flush_layers`.
                    let _ = tls.write_tls(socket);
                }
                state.map_err(io::Error::other)?;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(e) => return Err(e),
        }
    }
}

/// Sends by TLS or the socket, as much as the socket accepts. WouldBlock if it accepts nothing.
fn send_below(
    tls: &mut Option<ServerConnection>,
    socket: &mut Socket,
    buf: &[u8],
) -> io::Result<usize> {
    let Some(tls) = tls else {
        return socket.send(buf);
    };
    // WouldBlock only if the socket itself has refused, as in `Layers::send`.
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
