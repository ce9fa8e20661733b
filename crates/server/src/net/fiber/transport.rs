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
    /// No socket: what is sent gathers here ([`crate::embedded`]).
    Memory(Vec<u8>),
}

impl Socket {
    /// What epoll watches, if anything.
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

/// Reads and writes of rustls go through the same retries.
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

/// Result of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes; `drained`: the socket had no more, so the next edge will tell.
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
    /// The writable edge is registered for.
    wants_writable: bool,
}

impl Transport {
    /// Registers the socket for reading. Writability is asked for only while a send is blocked: a unix socket would otherwise
    /// report it after everything the peer reads.
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

    /// The same connection, watched by another worker.
    pub fn register(&mut self, registry: &Registry, token: mio::Token) -> io::Result<()> {
        (self.token, self.wants_writable) = (token, false);
        match self.socket.source() {
            Some(source) => registry.register(source, token, Interest::READABLE),
            None => Ok(()),
        }
    }

    /// TLS starts with the next byte; `early` are bytes of it that have been received already.
    pub fn start_tls(&mut self, tls: ServerConnection, mut early: &[u8]) -> io::Result<()> {
        let mut tls = Box::new(tls);
        while !early.is_empty() {
            tls.read_tls(&mut early)?;
            tls.process_new_packets().map_err(io::Error::other)?;
        }
        self.tls = Some(tls);
        Ok(())
    }

    /// What was sent without a socket; `None` where there is one.
    pub fn sent_to_memory(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.socket {
            Socket::Memory(sent) => Some(sent),
            _ => None,
        }
    }

    /// The socket's descriptor, where bytes go through it as they are.
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

    /// Nobody on a network can listen: TLS, or a unix socket.
    pub fn is_secure(&self) -> bool {
        self.tls.is_some() || matches!(self.socket, Socket::Unix(_))
    }

    /// One read into `buf`, which is not empty.
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
                        // An alert, or a handshake message; what does not fit now goes out with `flush_tls`.
                        let _ = tls.write_tls(&mut self.socket);
                    }
                    state.map_err(io::Error::other)?;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends what fits. WouldBlock if nothing does.
    #[inline]
    pub fn send(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.send(buf),
            Some(tls) => send_tls(tls, &mut self.socket, buf),
        }
    }

    /// Sends what TLS still holds back. True: nothing is left.
    #[inline]
    pub fn flush_tls(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => drain_tls(tls, &mut self.socket),
        }
    }

    /// Asks for, or does without, the writable edge.
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

    /// No more will be sent; the peer sees the end of the stream.
    pub fn shutdown_write(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.socket);
        }
        // Fails where the peer is gone already.
        let _ = match &self.socket {
            Socket::Tcp(s) => s.shutdown(Shutdown::Write),
            Socket::Unix(s) => s.shutdown(Shutdown::Write),
            Socket::Memory(_) => Ok(()),
        };
    }

    /// The connection ends: TLS says so to the peer, as far as the socket takes it.
    pub fn close(&mut self, registry: &Registry) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.socket);
        }
        self.deregister(registry);
    }

    /// Nobody watches the socket any more; the peer notices nothing.
    pub fn deregister(&mut self, registry: &Registry) {
        if let Some(source) = self.socket.source()
            && let Err(e) = registry.deregister(source)
        {
            tracing::warn!("cannot take a socket out of epoll: {e}");
        }
    }
}

/// Encrypts and sends what fits. WouldBlock if nothing does.
#[inline(never)]
fn send_tls(tls: &mut ServerConnection, socket: &mut Socket, buf: &[u8]) -> io::Result<usize> {
    // Only a socket that has refused bytes will report that it takes some again: WouldBlock is never
    // made up here while it still does.
    if tls.is_handshaking() || !drain_tls(tls, socket)? {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let n = tls.writer().write(buf)?;
    drain_tls(tls, socket)?;
    Ok(n)
}

/// Sends encrypted bytes that wait. False: the socket takes no more.
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
