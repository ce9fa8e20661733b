//! A blocking client of raw packets.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nfold_protocol::consts::{CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, cap};
use nfold_protocol::frame::{MAX_CHUNK, begin_packet, end_packet};
use nfold_protocol::handshake::{Login, encode_login};
use nfold_protocol::response::parse_err;
use nfold_protocol::scramble;

pub use tls::TlsStream;

mod tls {
    //! TLS without authentication of the server.

    use std::net::TcpStream;
    use std::sync::Arc;

    use nfold_tls::Trust;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, StreamOwned};

    pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

    pub fn over(stream: TcpStream) -> TlsStream {
        let config = nfold_tls::client_config(Trust::Any)
            .expect("needs no files")
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a client");
        StreamOwned::new(tls, stream)
    }
}

pub struct Client<S = TcpStream> {
    pub stream: S,
    pub sequence: u8,
    pub id: u32,
    caps: u32,
}

const CAPABILITIES: u32 = cap::SERVER & !cap::CONNECT_WITH_DB & !cap::CONNECT_ATTRS;

/// Rows of one result, or an error.
pub type Rows = Result<Vec<Vec<u8>>, (u16, String)>;

impl Client {
    /// Connects and reads the greeting only.
    pub fn greeted(port: u16) -> io::Result<(Client, Vec<u8>)> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_nodelay(true)?;
        Client::over(stream)
    }

    /// Logs in with mysql_native_password, or without a password.
    pub fn login(port: u16, user: &str, password: &str) -> Result<Client, (u16, String)> {
        let (c, greeting) = Client::greeted(port).map_err(|e| (0, e.to_string()))?;
        c.login_with(greeting, user, password, CAPABILITIES)
    }

    /// Logs in over TLS. Accepts any certificate of the server.
    pub fn login_tls(
        port: u16,
        user: &str,
        password: &str,
    ) -> Result<Client<TlsStream>, (u16, String)> {
        let io = |e: io::Error| (0, e.to_string());
        let (mut c, greeting) = Client::greeted(port).map_err(io)?;
        let caps = CAPABILITIES | cap::SSL;
        let mut request = caps.to_le_bytes().to_vec();
        request.extend_from_slice(&(1u32 << 30).to_le_bytes());
        request.push(45);
        request.resize(32, 0);
        c.write(&request).map_err(io)?;
        let c = Client {
            stream: tls::over(c.stream),
            sequence: c.sequence,
            id: c.id,
            caps,
        };
        c.login_with(greeting, user, password, caps)
    }
}

impl Client<UnixStream> {
    /// Logs in through the socket file. It buffers fewer unread bytes than TCP does.
    pub fn login_unix(path: &str, user: &str) -> Result<Client<UnixStream>, (u16, String)> {
        let io = |e: io::Error| (0, e.to_string());
        let stream = UnixStream::connect(path).map_err(io)?;
        let timeout = Some(Duration::from_secs(20));
        stream.set_read_timeout(timeout).map_err(io)?;
        let (c, greeting) = Client::over(stream).map_err(io)?;
        c.login_with(greeting, user, "", CAPABILITIES)
    }
}

impl<S: Read + Write> Client<S> {
    /// Reads the greeting.
    fn over(stream: S) -> io::Result<(Client<S>, Vec<u8>)> {
        let mut c = Client {
            stream,
            sequence: 0,
            id: 0,
            caps: 0,
        };
        let greeting = c.read()?;
        if let Some(end) = greeting.iter().skip(1).position(|b| *b == 0) {
            let id = greeting.get(end + 2..end + 6).unwrap_or(&[0; 4]);
            c.id = u32::from_le_bytes(id.try_into().expect("4 bytes"));
        }
        Ok((c, greeting))
    }

    pub fn login_with(
        mut self,
        greeting: Vec<u8>,
        user: &str,
        password: &str,
        caps: u32,
    ) -> Result<Client<S>, (u16, String)> {
        if greeting[0] == 0xff {
            return Err(error(&greeting));
        }
        self.caps = caps;
        let plugin = if password.is_empty() {
            CACHING_SHA2_PASSWORD
        } else {
            NATIVE_PASSWORD
        };
        let login = Login {
            capabilities: caps,
            max_packet: 1 << 30,
            collation: 45,
            user: user.as_bytes(),
            auth_response: b"",
            database: None,
            plugin: Some(plugin.as_bytes()),
            attributes: b"",
            zstd_level: 0,
        };
        let mut payload = vec![];
        // The first answer is empty: with a password, the server refuses it only after the switch
        // or check below.
        if password.is_empty() {
            encode_login(&mut payload, &login);
        } else {
            // Request a switch by naming no plugin that the server uses.
            encode_login(
                &mut payload,
                &Login {
                    plugin: Some(b"none"),
                    ..login
                },
            );
        }
        self.write(&payload).map_err(|e| (0, e.to_string()))?;
        let mut answer = self.read().map_err(|e| (0, e.to_string()))?;
        if answer[0] == 0xfe {
            let salt = &answer[answer.len() - 21..answer.len() - 1];
            let proof = scramble::native_answer(password.as_bytes(), salt);
            self.write(&proof).map_err(|e| (0, e.to_string()))?;
            answer = self.read().map_err(|e| (0, e.to_string()))?;
        }
        match answer[0] {
            0 => Ok(self),
            _ => Err(error(&answer)),
        }
    }

    /// Sends one payload with the running sequence number.
    pub fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut out = vec![];
        let at = begin_packet(&mut out);
        out.extend_from_slice(payload);
        end_packet(&mut out, at, &mut self.sequence);
        self.stream.write_all(&out)
    }

    /// Reads one payload, joined.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut payload = vec![];
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header)?;
            let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            assert_eq!(header[3], self.sequence, "sequence numbers count up");
            self.sequence = self.sequence.wrapping_add(1);
            let at = payload.len();
            payload.resize(at + len, 0);
            self.stream.read_exact(&mut payload[at..])?;
            if len < MAX_CHUNK {
                return Ok(payload);
            }
        }
    }

    /// Sends a command without reading its answer.
    pub fn send(&mut self, code: u8, body: &[u8]) -> io::Result<()> {
        self.sequence = 0;
        let mut payload = vec![code];
        payload.extend_from_slice(body);
        self.write(&payload)
    }

    /// One COM_QUERY and its (only) result. OK without rows is an empty list.
    pub fn query(&mut self, sql: &str) -> Rows {
        self.send(3, sql.as_bytes())
            .map_err(|e| (0, e.to_string()))?;
        self.result()
    }

    /// Reads one result in the text protocol of one-column rows.
    pub fn result(&mut self) -> Rows {
        let io = |e: io::Error| (0, format!("{:?}", e.kind()));
        let first = self.read().map_err(io)?;
        match first[0] {
            0 => return Ok(vec![]),
            0xff => return Err(error(&first)),
            _ => {}
        }
        for _ in 0..first[0] {
            self.read().map_err(io)?;
        }
        if self.caps & cap::DEPRECATE_EOF == 0 {
            assert_eq!(self.read().map_err(io)?[0], 0xfe);
        }
        let mut rows = vec![];
        loop {
            let row = self.read().map_err(io)?;
            match row[0] {
                0xff => return Err(error(&row)),
                0xfe if row.len() < 9 => return Ok(rows),
                _ => {
                    let mut r = nfold_protocol::Reader::new(&row);
                    rows.push(r.lenenc_bytes("value").expect("one column").to_vec());
                }
            }
        }
    }

    /// The one value of a one-row result.
    pub fn value(&mut self, sql: &str) -> String {
        let rows = self.query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        String::from_utf8(rows.into_iter().next().expect("a row")).expect("text")
    }
}

pub fn error(payload: &[u8]) -> (u16, String) {
    let (code, _, message) = parse_err(payload).expect("an ERR packet");
    (code, String::from_utf8_lossy(message).into_owned())
}
