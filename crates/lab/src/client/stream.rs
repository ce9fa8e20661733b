//! A socket to a server: TCP or a Unix socket, blocking first and given over to epoll later.

use std::io::{self, Read, Write};
use std::net::ToSocketAddrs;
use std::time::Duration;

use crate::LabError;
use crate::dsn::Dsn;

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Stream {
    /// Connects, waiting at most `patience`; reads and writes that hang longer than `silence` fail with a time-out.
    pub fn connect(
        dsn: &Dsn,
        patience: Duration,
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
                    match std::net::TcpStream::connect_timeout(&address, patience) {
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
            Some(path) => {
                Stream::Unix(std::os::unix::net::UnixStream::connect(path).map_err(cannot())?)
            }
        };
        stream.set_timeouts(silence).map_err(cannot())?;
        Ok(stream)
    }

    /// A Unix socket: nobody listens in, so a password may travel in clear.
    pub fn is_private(&self) -> bool {
        matches!(self, Stream::Unix(_))
    }

    pub(super) fn set_timeouts(&self, silence: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(s) => s
                .set_read_timeout(silence)
                .and_then(|()| s.set_write_timeout(silence)),
            Stream::Unix(s) => s
                .set_read_timeout(silence)
                .and_then(|()| s.set_write_timeout(silence)),
        }
    }

    /// The same socket for epoll.
    pub(super) fn into_evented(self) -> io::Result<Evented> {
        Ok(match self {
            Stream::Tcp(s) => {
                s.set_nonblocking(true)?;
                Evented::Tcp(mio::net::TcpStream::from_std(s))
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
            Stream::Unix(s) => s.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.write(buf),
            Stream::Unix(s) => s.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket that never blocks, known to an event loop.
#[derive(Debug)]
pub(super) enum Evented {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
}

impl Evented {
    /// Edge-triggered, both directions, once for the life of the connection.
    pub fn register(&mut self, registry: &mio::Registry, token: mio::Token) -> io::Result<()> {
        let both = mio::Interest::READABLE | mio::Interest::WRITABLE;
        match self {
            Evented::Tcp(s) => registry.register(s, token, both),
            Evented::Unix(s) => registry.register(s, token, both),
        }
    }

    #[inline]
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Evented::Tcp(s) => s.read(buf),
            Evented::Unix(s) => s.read(buf),
        }
    }

    #[inline]
    pub fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Evented::Tcp(s) => s.write(buf),
            Evented::Unix(s) => s.write(buf),
        }
    }
}
