//! The client's side of the connection phase: greeting, login, authentication plugins.
//!
//! # Picture
//! ```text
//! greeting ▶ (request for TLS, by ssl-mode) ▶ login ─┬─ OK
//!                                                    ├─ switch to another plugin ▶ response ─┐
//!                                                    └─ more data (caching_sha2_password)    │
//!                                                         fast: OK                          ◀┘
//!                                                         full: plaintext password over TLS or a
//!                                                         Unix socket, else RSA-encrypted
//! ```
//! Source: page_protocol_connection_phase, page_caching_sha2_authentication_exchanges.

use std::io::{Read, Write};

use nfold_protocol::consts::{CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, cap};
use nfold_protocol::frame::{HEADER, begin_packet, end_packet};
use nfold_protocol::handshake::{Login, SALT, encode_login};
use nfold_protocol::response::parse_err;
use nfold_protocol::scramble::{native_answer, sealed_password, sha2_answer};
use nfold_protocol::{Malformed, Reader};

use super::stream::Stream;
use crate::LabError;
use crate::dsn::Dsn;
use crate::tls::{SslMode, Tls};

/// The capabilities that the client requests, if the server offers them.
const WANTED: u32 = cap::LONG_PASSWORD
    | cap::LONG_FLAG
    | cap::PROTOCOL_41
    | cap::TRANSACTIONS
    | cap::SECURE_CONNECTION
    | cap::MULTI_RESULTS
    | cap::PS_MULTI_RESULTS
    | cap::PLUGIN_AUTH
    | cap::PLUGIN_AUTH_LENENC_DATA
    | cap::DEPRECATE_EOF;
/// utf8mb4_general_ci, which every server knows.
const COLLATION: u16 = 45;
const MAX_PACKET: usize = 1 << 20;

/// The result of the login.
#[derive(Debug, Clone)]
pub(super) struct Agreed {
    pub capabilities: u32,
    pub server_version: String,
    pub connection_id: u32,
}

struct Greeting {
    version: String,
    connection_id: u32,
    salt: [u8; SALT],
    capabilities: u32,
    plugin: String,
}

/// Logs in on a new connection, over TLS if both sides want it.
pub(super) fn log_in(stream: Stream, dsn: &Dsn) -> Result<(Stream, Agreed), LabError> {
    let mut wire = Wire {
        stream,
        sequence: 0,
        doing: format!("logging in at {dsn}"),
    };
    let first = wire.receive()?;
    if first.first() == Some(&0xff) {
        return Err(refusal(&first));
    }
    let greeting = greeting(&first)
        .map_err(|e| LabError::malformed(format!("{dsn} is no MySQL server: {e}")))?;
    if greeting.capabilities & cap::PROTOCOL_41 == 0 {
        return Err(LabError::usage(format!(
            "{dsn} speaks a protocol from before MySQL 4.1"
        )));
    }
    let mut capabilities = WANTED & greeting.capabilities;
    if dsn.db.is_some() {
        capabilities |= cap::CONNECT_WITH_DB;
    }
    if let Some(tls) = &dsn.tls {
        if greeting.capabilities & cap::SSL != 0 {
            capabilities |= cap::SSL;
            wire = wire.secured(capabilities, tls, &dsn.host)?;
        } else if dsn.ssl_mode() > SslMode::Preferred {
            return Err(LabError::usage(format!(
                "{dsn} offers no TLS, which ssl-mode={} requires",
                dsn.ssl_mode()
            )));
        }
    }
    let known = [NATIVE_PASSWORD, CACHING_SHA2_PASSWORD].contains(&greeting.plugin.as_str());
    let mut plugin = if known {
        greeting.plugin.clone()
    } else {
        NATIVE_PASSWORD.to_owned()
    };
    let mut salt = greeting.salt;
    let mut payload = Vec::new();
    let login = Login {
        capabilities,
        max_packet: 1 << 30,
        collation: COLLATION,
        user: dsn.user.as_bytes(),
        auth_response: &answer(&plugin, dsn, &salt),
        database: dsn.db.as_deref().map(str::as_bytes),
        plugin: Some(plugin.as_bytes()),
        attributes: &[],
        zstd_level: 0,
    };
    encode_login(&mut payload, &login);
    wire.send(&payload)?;
    loop {
        let packet = wire.receive()?;
        match packet.first() {
            Some(0) => break,
            Some(0xff) => return Err(refusal(&packet)),
            Some(0xfe) => {
                (plugin, salt) = switch(&packet[1..])?;
                let answer = answer(&plugin, dsn, &salt);
                wire.send(&answer)?;
            }
            Some(1) if plugin == CACHING_SHA2_PASSWORD => match &packet[1..] {
                [3] => {}
                [4] => full(&mut wire, dsn, &salt)?,
                _ => {
                    return Err(LabError::malformed(
                        "caching_sha2_password sends an unknown message",
                    ));
                }
            },
            _ => {
                return Err(LabError::malformed(format!(
                    "{dsn}: login ends in an unknown packet"
                )));
            }
        }
    }
    let agreed = Agreed {
        capabilities,
        server_version: greeting.version,
        connection_id: greeting.connection_id,
    };
    Ok((wire.stream, agreed))
}

fn greeting(payload: &[u8]) -> Result<Greeting, Malformed> {
    let mut r = Reader::new(payload);
    if r.u8("version")? != 10 {
        return Err(Malformed("another protocol version"));
    }
    let version = String::from_utf8_lossy(r.nul_bytes("server version")?).into_owned();
    let connection_id = r.u32("connection id")?;
    let mut salt = [0; SALT];
    salt[..8].copy_from_slice(r.take(8, "salt")?);
    r.take(1, "filler")?;
    let low = r.u16("capabilities")?;
    r.take(3, "collation and status")?;
    let high = r.u16("capabilities")?;
    r.take(11, "filler")?;
    salt[8..].copy_from_slice(r.take(12, "salt")?);
    if !r.is_empty() {
        r.take(1, "filler")?;
    }
    let plugin = String::from_utf8_lossy(r.nul_or_end()).into_owned();
    Ok(Greeting {
        version,
        connection_id,
        salt,
        capabilities: u32::from(low) | u32::from(high) << 16,
        plugin,
    })
}

fn switch(body: &[u8]) -> Result<(String, [u8; SALT]), LabError> {
    let mut r = Reader::new(body);
    let plugin = String::from_utf8_lossy(r.nul_or_end()).into_owned();
    if ![NATIVE_PASSWORD, CACHING_SHA2_PASSWORD].contains(&plugin.as_str()) {
        return Err(LabError::usage(format!(
            "the account logs in by {plugin:?}; the lab knows {NATIVE_PASSWORD} and {CACHING_SHA2_PASSWORD}"
        )));
    }
    let mut salt = [0; SALT];
    match r.rest().get(..SALT) {
        Some(bytes) => salt.copy_from_slice(bytes),
        None => return Err(LabError::malformed("a plugin without a challenge")),
    }
    Ok((plugin, salt))
}

fn answer(plugin: &str, dsn: &Dsn, salt: &[u8; SALT]) -> Vec<u8> {
    let password = dsn.password.reveal().as_bytes();
    match plugin {
        _ if password.is_empty() => Vec::new(),
        CACHING_SHA2_PASSWORD => sha2_answer(password, salt).to_vec(),
        _ => native_answer(password, salt).to_vec(),
    }
}

/// Full authentication, because the server's cache does not contain the password.
fn full(wire: &mut Wire, dsn: &Dsn, salt: &[u8; SALT]) -> Result<(), LabError> {
    let mut password = dsn.password.reveal().as_bytes().to_vec();
    password.push(0);
    if wire.stream.is_private() {
        return wire.send(&password);
    }
    wire.send(&[2])?;
    let packet = wire.receive()?;
    if packet.first() == Some(&0xff) {
        return Err(refusal(&packet));
    }
    let no_key = || {
        LabError::malformed(
            "the server's RSA key cannot be read; log in once over TLS or a Unix socket, then it is cached",
        )
    };
    let key = packet.get(1..).unwrap_or_default();
    let sealed = sealed_password(key, &password, salt).ok_or_else(no_key)?;
    wire.send(&sealed)
}

fn refusal(packet: &[u8]) -> LabError {
    match parse_err(packet) {
        Ok((code, _, message)) => LabError::Server {
            code,
            message: String::from_utf8_lossy(message).into_owned(),
        },
        Err(e) => LabError::malformed(e.to_string()),
    }
}

/// Sends and receives whole packets on the blocking socket.
struct Wire {
    stream: Stream,
    sequence: u8,
    doing: String,
}

impl Wire {
    /// Requests TLS (Protocol::SSLRequest) and continues inside it.
    fn secured(mut self, capabilities: u32, tls: &Tls, host: &str) -> Result<Wire, LabError> {
        let mut request = capabilities.to_le_bytes().to_vec();
        request.extend_from_slice(&(1u32 << 30).to_le_bytes());
        request.push(COLLATION as u8);
        request.extend_from_slice(&[0; 23]);
        self.send(&request)?;
        let stream = self.stream.secured(tls, host)?;
        Ok(Wire { stream, ..self })
    }

    fn receive(&mut self) -> Result<Vec<u8>, LabError> {
        let mut header = [0; HEADER];
        self.stream
            .read_exact(&mut header)
            .map_err(LabError::io(&self.doing))?;
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if len > MAX_PACKET {
            return Err(LabError::malformed(format!(
                "{}: what answers is no MySQL server",
                self.doing
            )));
        }
        let mut payload = vec![0; len];
        self.stream
            .read_exact(&mut payload)
            .map_err(LabError::io(&self.doing))?;
        self.sequence = header[3].wrapping_add(1);
        Ok(payload)
    }

    fn send(&mut self, payload: &[u8]) -> Result<(), LabError> {
        let mut out = Vec::with_capacity(payload.len() + HEADER);
        let start = begin_packet(&mut out);
        out.extend_from_slice(payload);
        end_packet(&mut out, start, &mut self.sequence);
        self.stream
            .write_all(&out)
            .and_then(|()| self.stream.flush())
            .map_err(LabError::io(&self.doing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_greeting_is_rejected() {
        for bytes in [&b""[..], b"HTTP/1.1 400", b"\x0a8.0\0", &[10; 20]] {
            assert!(greeting(bytes).is_err(), "{bytes:?}");
        }
    }
}
