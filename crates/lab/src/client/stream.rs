//! A socket to a server: TCP, TLS or Unix. It is blocking at first and can later be handed over to
//! epoll.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use crate::LabError;
use crate::dsn::Dsn;
use crate::tls::Tls;

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Unix(UnixStream),
}

impl Stream {
    /// Connects within `timeout`. Reads and writes that take longer than `silence` fail with a
    /// timeout.
    pub fn connect(
        dsn: &Dsn,
        timeout: Duration,
        silence: Option<Duration>,
    ) -> Result<Stream, LabError> {
        let cannot = || LabError::io(format!("cannot connect to {dsn}"));
        let stream = match &dsn.socket {
            None => {
                let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
                let mut found = None;
                for address in (dsn.host.as_str(), dsn.port)
                    .to_socket_addrs()
                    .map_err(cannot())?
                {
                    match TcpStream::connect_timeout(&address, timeout) {
                        Ok(stream) => {
                            found = Some(stream);
                            break;
                        }
                        Err(e) => last = e,
                    }
                }
                let stream = found.ok_or(last).map_err(cannot())?;
                stream.set_nodelay(true).map_err(cannot())?;
                Stream::Tcp(stream)
            }
            Some(path) => Stream::Unix(UnixStream::connect(path).map_err(cannot())?),
        };
        stream.set_timeouts(silence).map_err(cannot())?;
        Ok(stream)
    }

    /// Starts TLS; all later bytes are encrypted. Also an error if the server's certificate is not
    /// trusted.
    pub(super) fn secured(self, tls: &Tls, host: &str) -> Result<Stream, LabError> {
        let Stream::Tcp(mut socket) = self else {
            return Ok(self);
        };
        let mut session = tls.session(host)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket).map_err(|e| {
                LabError::usage(format!(
                    "TLS with {host}: {e}; ssl-mode=DISABLED does without"
                ))
            })?;
        }
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, socket))))
    }

    /// Whether the connection is a Unix socket or uses TLS, so that a password may be sent as
    /// plaintext.
    pub fn is_private(&self) -> bool {
        !matches!(self, Stream::Tcp(_))
    }

    pub(super) fn set_timeouts(&self, silence: Option<Duration>) -> io::Result<()> {
        let tcp = match self {
            Stream::Tcp(s) => s,
            Stream::Tls(s) => &s.sock,
            Stream::Unix(s) => {
                return s
                    .set_read_timeout(silence)
                    .and_then(|()| s.set_write_timeout(silence));
            }
        };
        tcp.set_read_timeout(silence)
            .and_then(|()| tcp.set_write_timeout(silence))
    }

    /// Converts the socket for use with epoll.
    pub(super) fn into_evented(self) -> io::Result<Evented> {
        Ok(match self {
            Stream::Tcp(s) => {
                s.set_nonblocking(true)?;
                Evented::Tcp(mio::net::TcpStream::from_std(s))
            }
            Stream::Tls(s) => {
                s.sock.set_nonblocking(true)?;
                let (session, socket) = (s.conn, s.sock);
                Evented::Tls(Box::new(Secured {
                    session,
                    socket: mio::net::TcpStream::from_std(socket),
                }))
            }
            Stream::Unix(s) => {
                s.set_nonblocking(true)?;
                Evented::Unix(mio::net::UnixStream::from_std(s))
            }
        })
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.read(buf),
            Stream::Tls(s) => s.read(buf),
            Stream::Unix(s) => s.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.write(buf),
            Stream::Tls(s) => s.write(buf),
            Stream::Unix(s) => s.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tls(s) => s.flush(),
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
        }
    }
}

/// A non-blocking socket, registered with an event loop.
#[derive(Debug)]
pub(super) enum Evented {
    Tcp(mio::net::TcpStream),
    Tls(Box<Secured>),
    Unix(mio::net::UnixStream),
}

/// A TLS session over a non-blocking socket.
#[derive(Debug)]
pub(super) struct Secured {
    session: ClientConnection,
    socket: mio::net::TcpStream,
}

impl Evented {
    /// Registers the socket for edge-triggered events in both directions, once for the life of the
    /// connection.
    pub fn register(&mut self, registry: &mio::Registry, token: mio::Token) -> io::Result<()> {
        let both = mio::Interest::READABLE | mio::Interest::WRITABLE;
        match self {
            Evented::Tcp(s) => registry.register(s, token, both),
            Evented::Tls(s) => registry.register(&mut s.socket, token, both),
            Evented::Unix(s) => registry.register(s, token, both),
        }
    }

    #[inline]
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Evented::Tcp(s) => s.read(buf),
            Evented::Tls(s) => s.read(buf),
            Evented::Unix(s) => s.read(buf),
        }
    }

    #[inline]
    pub fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Evented::Tcp(s) => s.write(buf),
            Evented::Tls(s) => s.write(buf),
            Evented::Unix(s) => s.write(buf),
        }
    }

    /// Sends bytes that were written but are still buffered, as far as the socket accepts them.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Evented::Tls(s) => s.drain(),
            Evented::Tcp(_) | Evented::Unix(_) => Ok(()),
        }
    }

    /// The socket's descriptor, if bytes are written to it directly.
    #[inline]
    pub fn plain(&self) -> Option<RawFd> {
        match self {
            Evented::Tcp(s) => Some(s.as_raw_fd()),
            Evented::Tls(_) => None,
            Evented::Unix(s) => Some(s.as_raw_fd()),
        }
    }

    /// Whether a read that does not fill its buffer means that the socket is empty.
    #[inline]
    pub fn short_read_is_all(&self) -> bool {
        !matches!(self, Evented::Tls(_))
    }
}

impl Secured {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buf) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.session.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            self.session
                .process_new_packets()
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            // The TLS session has a message of its own to send, such as a key update.
            self.drain()?;
        }
    }

    /// Returns `WouldBlock` if the session's buffer is full and the socket accepts no more. The
    /// socket then becomes writable later.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        loop {
            let n = self.session.writer().write(buf)?;
            self.drain()?;
            if n > 0 || buf.is_empty() {
                return Ok(n);
            }
            if self.session.wants_write() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    fn drain(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
