//! The socket to a source, with or without TLS, and its packets.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use nfold_protocol::frame::{HEADER, begin_packet, end_packet};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

/// The longest time until a source accepts a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The payload of a packet that another one continues.
const FULL_PACKET: usize = 0xff_ffff;
/// The largest event; it is MySQL's bound of `replica_max_allowed_packet`, in bytes.
const MAX_PAYLOAD: usize = 1 << 30;

enum Socket {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A connection that sends and receives packets.
pub(crate) struct Wire {
    socket: Socket,
    pub sequence: u8,
}

impl Wire {
    pub fn connect(host: &str, port: u16) -> io::Result<Wire> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    return Ok(Wire {
                        socket: Socket::Plain(socket),
                        sequence: 0,
                    });
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    fn tcp(&self) -> &TcpStream {
        match &self.socket {
            Socket::Plain(socket) => socket,
            Socket::Tls(session) => &session.sock,
        }
    }

    /// A second handle of the socket, by which another thread can end a read.
    pub fn handle(&self) -> io::Result<TcpStream> {
        self.tcp().try_clone()
    }

    /// The longest time without a byte from the source.
    pub fn set_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.tcp().set_read_timeout(time)
    }

    pub fn is_encrypted(&self) -> bool {
        matches!(self.socket, Socket::Tls(_))
    }

    /// Starts TLS. The certificate is not verified, as in MySQL without SOURCE_SSL_CA.
    pub fn encrypt(self, host: &str) -> io::Result<Wire> {
        let Socket::Plain(mut socket) = self.socket else {
            return Ok(self);
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned())
            .or_else(|_| ServerName::try_from("unnamed.invalid"))
            .map_err(io::Error::other)?;
        let mut session =
            ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Wire {
            socket: Socket::Tls(Box::new(StreamOwned::new(session, socket))),
            sequence: self.sequence,
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
        match &mut self.socket {
            Socket::Plain(socket) => socket.read_exact(to),
            Socket::Tls(session) => session.read_exact(to),
        }
    }

    /// Sends one payload as an answer to what was received last.
    pub fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut out = Vec::with_capacity(payload.len() + HEADER);
        let start = begin_packet(&mut out);
        out.extend_from_slice(payload);
        end_packet(&mut out, start, &mut self.sequence);
        match &mut self.socket {
            Socket::Plain(socket) => socket.write_all(&out),
            Socket::Tls(session) => session.write_all(&out).and_then(|()| session.flush()),
        }
    }

    /// Sends a command.
    pub fn command(&mut self, payload: &[u8]) -> io::Result<()> {
        self.sequence = 0;
        self.send(payload)
    }
}

/// Accepts every certificate: the connection is encrypted, but the source is not authenticated.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
