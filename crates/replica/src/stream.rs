//! The socket to a source, with or without TLS, and its packets.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use nfold_protocol::frame::{HEADER, begin_packet, end_packet};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::tls::TlsFiles;

/// The longest time until a source accepts a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The payload of a packet that another one continues.
const FULL_PACKET: usize = 0xff_ffff;
/// The largest event; it is MySQL's bound of `replica_max_allowed_packet`, in bytes.
const MAX_PAYLOAD: usize = 1 << 30;

/// The most bytes that one system call reads ahead.
const READ_AHEAD: usize = 64 << 10;

enum Socket {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Socket {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(socket) => socket.read(to),
            Socket::Unix(socket) => socket.read(to),
            Socket::Tls(session) => session.read(to),
        }
    }
}

/// A connection that sends and receives packets.
pub(crate) struct Wire {
    socket: Socket,
    pub sequence: u8,
    /// Bytes that were received, and how many of them have been read.
    buffer: Vec<u8>,
    read: usize,
}

impl Wire {
    fn new(socket: Socket) -> Wire {
        Wire {
            socket,
            sequence: 0,
            buffer: Vec::new(),
            read: 0,
        }
    }

    /// Connects to a host. A host that begins with `/` is the path of a Unix socket.
    pub fn connect(host: &str, port: u16) -> io::Result<Wire> {
        if host.starts_with('/') {
            return UnixStream::connect(host).map(|socket| Wire::new(Socket::Unix(socket)));
        }
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    return Ok(Wire::new(Socket::Plain(socket)));
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    /// A second handle of a TCP socket, by which another thread can end a read.
    pub fn handle(&self) -> io::Result<TcpStream> {
        match &self.socket {
            Socket::Plain(socket) => socket.try_clone(),
            Socket::Tls(session) => session.sock.try_clone(),
            Socket::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The longest time without a byte from the source.
    pub fn set_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match &self.socket {
            Socket::Plain(socket) => socket.set_read_timeout(time),
            Socket::Tls(session) => session.sock.set_read_timeout(time),
            Socket::Unix(socket) => socket.set_read_timeout(time),
        }
    }

    /// Whether a password may be sent as it is.
    pub fn is_private(&self) -> bool {
        matches!(self.socket, Socket::Tls(_) | Socket::Unix(_))
    }

    /// Starts TLS.
    pub fn encrypt(self, host: &str, files: &TlsFiles) -> io::Result<Wire> {
        let Socket::Plain(mut socket) = self.socket else {
            return Ok(self);
        };
        let config = files.client_config()?;
        let name = ServerName::try_from(host.to_owned())
            .or_else(|_| ServerName::try_from("unnamed.invalid"))
            .map_err(io::Error::other)?;
        let mut session =
            ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Wire {
            sequence: self.sequence,
            ..Wire::new(Socket::Tls(Box::new(StreamOwned::new(session, socket))))
        })
    }

    /// Reads one payload into `to`, which may come as several packets.
    pub fn receive(&mut self, to: &mut Vec<u8>) -> io::Result<()> {
        to.clear();
        loop {
            let mut header = [0; HEADER];
            self.read_exact(&mut header)?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            self.sequence = header[3].wrapping_add(1);
            let start = to.len();
            if start + length > MAX_PAYLOAD {
                return Err(io::Error::other(
                    "the source sends a packet that is too large",
                ));
            }
            to.resize(start + length, 0);
            self.read_exact(&mut to[start..])?;
            if length < FULL_PACKET {
                return Ok(());
            }
        }
    }

    fn read_exact(&mut self, to: &mut [u8]) -> io::Result<()> {
        let ready = to.len().min(self.buffer.len() - self.read);
        let (buffered, rest) = to.split_at_mut(ready);
        buffered.copy_from_slice(&self.buffer[self.read..self.read + ready]);
        self.read += ready;
        if rest.len() >= READ_AHEAD {
            return self.socket.read_exact(rest);
        }
        let mut filled = 0;
        while filled < rest.len() {
            self.buffer.resize(READ_AHEAD, 0);
            let received = self.socket.read(&mut self.buffer);
            self.buffer.truncate(*received.as_ref().unwrap_or(&0));
            self.read = 0;
            match received {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    let taken = n.min(rest.len() - filled);
                    rest[filled..filled + taken].copy_from_slice(&self.buffer[..taken]);
                    filled += taken;
                    self.read = taken;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sends one payload as an answer to what was received last.
    pub fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut out = Vec::with_capacity(payload.len() + HEADER);
        let start = begin_packet(&mut out);
        out.extend_from_slice(payload);
        end_packet(&mut out, start, &mut self.sequence);
        match &mut self.socket {
            Socket::Plain(socket) => socket.write_all(&out),
            Socket::Unix(socket) => socket.write_all(&out),
            Socket::Tls(session) => session.write_all(&out).and_then(|()| session.flush()),
        }
    }

    /// Sends a command.
    pub fn command(&mut self, payload: &[u8]) -> io::Result<()> {
        self.sequence = 0;
        self.send(payload)
    }
}
