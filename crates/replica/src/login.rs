//! The login at a source: `caching_sha2_password` and `mysql_native_password`.
//!
//! Source: MySQL Internals, "Connection Phase" and "Caching_sha2_password information".

use nfold_protocol::consts::{CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, cap};
use nfold_protocol::handshake::{Login, SALT, encode_login};
use nfold_protocol::scramble::{native_answer, sealed_password, sha2_answer};
use nfold_protocol::{Malformed, Reader};

use crate::ChannelConfig;
use crate::source::SourceError;
use crate::stream::Wire;

const WANTED: u32 = cap::LONG_PASSWORD
    | cap::LONG_FLAG
    | cap::PROTOCOL_41
    | cap::TRANSACTIONS
    | cap::SECURE_CONNECTION
    | cap::PLUGIN_AUTH
    | cap::PLUGIN_AUTH_LENENC_DATA;
/// utf8mb4_general_ci, which every server knows.
const COLLATION: u16 = 45;
const MAX_PACKET: u32 = 1 << 30;

struct Greeting {
    version: String,
    capabilities: u32,
    salt: [u8; SALT],
    plugin: String,
}

fn greeting(payload: &[u8]) -> Result<Greeting, Malformed> {
    let mut r = Reader::new(payload);
    if r.u8("version")? != 10 {
        return Err(Malformed("another protocol version"));
    }
    let version = String::from_utf8_lossy(r.nul_bytes("server version")?).into_owned();
    r.u32("connection id")?;
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
    Ok(Greeting {
        version,
        capabilities: u32::from(low) | u32::from(high) << 16,
        salt,
        plugin: String::from_utf8_lossy(r.nul_or_end()).into_owned(),
    })
}

fn answer(plugin: &str, password: &[u8], salt: &[u8]) -> Vec<u8> {
    match plugin {
        _ if password.is_empty() => Vec::new(),
        CACHING_SHA2_PASSWORD => sha2_answer(password, salt).to_vec(),
        _ => native_answer(password, salt).to_vec(),
    }
}

/// Logs in on a new connection. Returns it with the source's version.
pub(crate) fn log_in(
    mut wire: Wire,
    config: &ChannelConfig,
) -> Result<(Wire, String), SourceError> {
    let mut packet = Vec::new();
    wire.receive(&mut packet)?;
    if packet.first() == Some(&0xff) {
        return Err(SourceError::refused(&packet));
    }
    let greeting = greeting(&packet)?;
    let mut capabilities = WANTED & greeting.capabilities;
    if config.ssl {
        if greeting.capabilities & cap::SSL == 0 {
            return Err(SourceError::Protocol(
                "the source does not offer TLS".into(),
            ));
        }
        capabilities |= cap::SSL;
        let mut request = capabilities.to_le_bytes().to_vec();
        request.extend_from_slice(&MAX_PACKET.to_le_bytes());
        request.push(COLLATION as u8);
        request.extend_from_slice(&[0; 23]);
        wire.send(&request)?;
        wire = wire.encrypt(&config.host, &config.tls)?;
    }
    let password = config.password.as_bytes();
    let known = [NATIVE_PASSWORD, CACHING_SHA2_PASSWORD].contains(&greeting.plugin.as_str());
    let mut plugin = if known {
        greeting.plugin
    } else {
        NATIVE_PASSWORD.into()
    };
    let mut salt = greeting.salt;
    let mut payload = Vec::new();
    let login = Login {
        capabilities,
        max_packet: MAX_PACKET,
        collation: COLLATION,
        user: config.user.as_bytes(),
        auth_response: &answer(&plugin, password, &salt),
        database: None,
        plugin: Some(plugin.as_bytes()),
        attributes: &[],
        zstd_level: 0,
    };
    encode_login(&mut payload, &login);
    wire.send(&payload)?;
    loop {
        wire.receive(&mut packet)?;
        match packet.first() {
            Some(0) => return Ok((wire, greeting.version)),
            Some(0xff) => return Err(SourceError::refused(&packet)),
            Some(0xfe) => {
                let mut r = Reader::new(&packet[1..]);
                plugin = String::from_utf8_lossy(r.nul_or_end()).into_owned();
                if ![NATIVE_PASSWORD, CACHING_SHA2_PASSWORD].contains(&plugin.as_str()) {
                    let text = format!("the account uses the plugin '{plugin}'");
                    return Err(SourceError::Protocol(text));
                }
                salt.copy_from_slice(r.take(SALT, "salt")?);
                wire.send(&answer(&plugin, password, &salt))?;
            }
            Some(1) if packet.get(1) == Some(&3) => {}
            Some(1) if packet.get(1) == Some(&4) => full(&mut wire, config, &salt)?,
            _ => return Err(SourceError::Protocol("unknown packet in the login".into())),
        }
    }
}

/// Full authentication, for a password that is not in the source's cache.
fn full(wire: &mut Wire, config: &ChannelConfig, salt: &[u8]) -> Result<(), SourceError> {
    let mut password = config.password.as_bytes().to_vec();
    password.push(0);
    if wire.is_private() {
        return Ok(wire.send(&password)?);
    }
    if !config.get_public_key {
        // MySQL's error 2061 and its text.
        return Err(SourceError::Server {
            code: 2061,
            message: "Authentication plugin 'caching_sha2_password' reported error: \
                      Authentication requires secure connection."
                .into(),
        });
    }
    wire.send(&[2])?;
    let mut packet = Vec::new();
    wire.receive(&mut packet)?;
    if packet.first() == Some(&0xff) {
        return Err(SourceError::refused(&packet));
    }
    let bad = || SourceError::Protocol("the source's public key cannot be read".into());
    let key = packet.get(1..).unwrap_or_default();
    let sealed = sealed_password(key, &password, salt).ok_or_else(bad)?;
    Ok(wire.send(&sealed)?)
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
