//! The connection phase: greeting, the client's response, authentication switch, COM_CHANGE_USER.
//!
//! Source: page_protocol_connection_phase_packets. Only protocol 4.1 clients are accepted.

use crate::consts::cap;
use crate::lenenc::{Malformed, Reader, put_bytes};

/// The length of the random challenge in bytes. It must contain no zero byte, because clients read
/// it as a C string.
pub const SALT: usize = 20;

/// The server's first packet (Protocol::HandshakeV10).
#[derive(Debug, Clone, Copy)]
pub struct Greeting<'a> {
    /// `version()`
    pub server_version: &'a str,
    pub connection_id: u32,
    pub salt: &'a [u8; SALT],
    /// `cap::*`
    pub capabilities: u32,
    /// The collation id. Only its low byte is sent.
    pub collation: u16,
    /// `status::*`
    pub status: u16,
    pub plugin: &'a str,
}

impl Greeting<'_> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(10);
        out.extend_from_slice(self.server_version.as_bytes());
        out.push(0);
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        out.extend_from_slice(&self.salt[..8]);
        out.push(0);
        out.extend_from_slice(&(self.capabilities as u16).to_le_bytes());
        out.push(self.collation as u8);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&((self.capabilities >> 16) as u16).to_le_bytes());
        out.push(SALT as u8 + 1);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&self.salt[8..]);
        out.push(0);
        out.extend_from_slice(self.plugin.as_bytes());
        out.push(0);
    }
}

/// The client's first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientHello<'a> {
    /// Protocol::SSLRequest: the TLS handshake starts at the next byte, and the login follows
    /// inside TLS.
    Tls {
        capabilities: u32,
    },
    Login(Login<'a>),
}

/// The client's login (Protocol::HandshakeResponse41). Strings are the bytes as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login<'a> {
    pub capabilities: u32,
    /// The largest packet that the client wants to send; not binding.
    pub max_packet: u32,
    pub collation: u16,
    pub user: &'a [u8],
    pub auth_response: &'a [u8],
    pub database: Option<&'a [u8]>,
    pub plugin: Option<&'a [u8]>,
    /// The connection attributes, still encoded; see [`attributes`].
    pub attributes: &'a [u8],
    /// The level of zstd that the client compresses with, if it has that capability; otherwise 0.
    pub zstd_level: u8,
}

/// Parses the client's response to the greeting. `offered` are the capabilities that the server
/// sent. The result contains only those.
pub fn parse_hello(payload: &[u8], offered: u32) -> Result<ClientHello<'_>, Malformed> {
    let mut r = Reader::new(payload);
    // Before protocol 4.1 there were only two bytes of flags. They contain the bit that shows the
    // version.
    if payload.len() < 2
        || u16::from_le_bytes([payload[0], payload[1]]) & cap::PROTOCOL_41 as u16 == 0
    {
        return Err(Malformed("client does not speak protocol 4.1"));
    }
    let capabilities = r.u32("capabilities")? & offered;
    let max_packet = r.u32("max packet")?;
    let collation = u16::from(r.u8("collation")?);
    r.take(23, "filler")?;
    if r.is_empty() && capabilities & cap::SSL != 0 {
        return Ok(ClientHello::Tls { capabilities });
    }
    let user = r.nul_bytes("user")?;
    let auth_response = if capabilities & cap::PLUGIN_AUTH_LENENC_DATA != 0 {
        r.lenenc_bytes("auth response")?
    } else if capabilities & cap::SECURE_CONNECTION != 0 {
        let n = r.u8("auth response")?;
        r.take(usize::from(n), "auth response")?
    } else {
        r.nul_bytes("auth response")?
    };
    let database = (capabilities & cap::CONNECT_WITH_DB != 0)
        .then(|| r.nul_or_end())
        .filter(|d| !d.is_empty());
    let plugin = (capabilities & cap::PLUGIN_AUTH != 0)
        .then(|| r.nul_or_end())
        .filter(|p| !p.is_empty());
    let attributes = if capabilities & cap::CONNECT_ATTRS != 0 && !r.is_empty() {
        r.lenenc_bytes("connection attributes")?
    } else {
        &[]
    };
    let zstd_level = if capabilities & cap::ZSTD_COMPRESSION_ALGORITHM != 0 {
        r.u8("zstd level").unwrap_or_default()
    } else {
        0
    };
    Ok(ClientHello::Login(Login {
        capabilities,
        max_packet,
        collation,
        user,
        auth_response,
        database,
        plugin,
        attributes,
        zstd_level,
    }))
}

/// Parses the body of COM_CHANGE_USER, without the command byte. `capabilities` are those of the
/// connection.
pub fn parse_change_user(body: &[u8], capabilities: u32) -> Result<Login<'_>, Malformed> {
    let mut r = Reader::new(body);
    let user = r.nul_bytes("user")?;
    let auth_response = if capabilities & cap::SECURE_CONNECTION != 0 {
        let n = r.u8("auth response")?;
        r.take(usize::from(n), "auth response")?
    } else {
        r.nul_bytes("auth response")?
    };
    let database = Some(r.nul_or_end()).filter(|d| !d.is_empty());
    let collation = if r.is_empty() { 0 } else { r.u16("collation")? };
    let plugin = (capabilities & cap::PLUGIN_AUTH != 0)
        .then(|| r.nul_or_end())
        .filter(|p| !p.is_empty());
    let attributes = if capabilities & cap::CONNECT_ATTRS != 0 && !r.is_empty() {
        r.lenenc_bytes("connection attributes")?
    } else {
        &[]
    };
    Ok(Login {
        capabilities,
        max_packet: 0,
        collation,
        user,
        auth_response,
        database,
        plugin,
        attributes,
        zstd_level: 0,
    })
}

/// The name and value of a connection attribute.
pub type Attribute<'a> = (&'a [u8], &'a [u8]);

/// Decodes connection attributes into names and values, in the order sent.
pub fn attributes(encoded: &[u8]) -> Result<Vec<Attribute<'_>>, Malformed> {
    let mut r = Reader::new(encoded);
    let mut out = vec![];
    while !r.is_empty() {
        out.push((
            r.lenenc_bytes("attribute name")?,
            r.lenenc_bytes("attribute value")?,
        ));
    }
    Ok(out)
}

/// Appends the payload that tells the client to use another plugin, with a new challenge
/// (Protocol::AuthSwitchRequest).
pub fn encode_auth_switch(out: &mut Vec<u8>, plugin: &str, salt: &[u8; SALT]) {
    out.push(0xfe);
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    out.extend_from_slice(salt);
    out.push(0);
}

/// Appends a Protocol::AuthMoreData payload.
pub fn encode_auth_more_data(out: &mut Vec<u8>, data: &[u8]) {
    out.push(1);
    out.extend_from_slice(data);
}

/// Appends a Protocol::HandshakeResponse41 payload. For clients and tests.
pub fn encode_login(out: &mut Vec<u8>, login: &Login<'_>) {
    out.extend_from_slice(&login.capabilities.to_le_bytes());
    out.extend_from_slice(&login.max_packet.to_le_bytes());
    out.push(login.collation as u8);
    out.extend_from_slice(&[0; 23]);
    out.extend_from_slice(login.user);
    out.push(0);
    if login.capabilities & cap::PLUGIN_AUTH_LENENC_DATA != 0 {
        put_bytes(out, login.auth_response);
    } else {
        out.push(login.auth_response.len() as u8);
        out.extend_from_slice(login.auth_response);
    }
    if login.capabilities & cap::CONNECT_WITH_DB != 0 {
        out.extend_from_slice(login.database.unwrap_or_default());
        out.push(0);
    }
    if login.capabilities & cap::PLUGIN_AUTH != 0 {
        out.extend_from_slice(login.plugin.unwrap_or_default());
        out.push(0);
    }
    if login.capabilities & cap::CONNECT_ATTRS != 0 {
        put_bytes(out, login.attributes);
    }
    if login.capabilities & cap::ZSTD_COMPRESSION_ALGORITHM != 0 {
        out.push(login.zstd_level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAPS: u32 = cap::SERVER | cap::SSL;

    fn login(auth: &[u8]) -> Login<'_> {
        Login {
            capabilities: CAPS & !cap::SSL,
            max_packet: 1 << 24,
            collation: 45,
            user: b"root",
            auth_response: auth,
            database: Some(b"test"),
            plugin: Some(b"caching_sha2_password"),
            attributes: b"\x03_os\x05linux",
            zstd_level: 0,
        }
    }

    #[test]
    fn greeting_has_the_documented_layout() {
        let mut out = vec![];
        let salt: [u8; SALT] = std::array::from_fn(|i| i as u8 + 1);
        let g = Greeting {
            server_version: "8.4.0-Nfold",
            connection_id: 7,
            salt: &salt,
            capabilities: 0x01ff_0002,
            collation: 255,
            status: 2,
            plugin: "mysql_native_password",
        };
        g.encode(&mut out);
        let mut r = Reader::new(&out);
        assert_eq!(r.u8("v"), Ok(10));
        assert_eq!(r.nul_bytes("s"), Ok(&b"8.4.0-Nfold"[..]));
        assert_eq!(r.u32("id"), Ok(7));
        assert_eq!(r.take(9, "salt"), Ok(&[1, 2, 3, 4, 5, 6, 7, 8, 0][..]));
        assert_eq!(
            (r.u16("lo"), r.u8("coll"), r.u16("st"), r.u16("hi")),
            (Ok(2), Ok(255), Ok(2), Ok(0x1ff))
        );
        assert_eq!(r.u8("len"), Ok(21));
        r.take(10, "filler").unwrap();
        assert_eq!(r.nul_bytes("salt 2"), Ok(&salt[8..]));
        assert_eq!(r.nul_bytes("plugin"), Ok(&b"mysql_native_password"[..]));
        assert!(r.is_empty());
    }

    #[test]
    fn login_round_trips_with_long_and_short_responses() {
        for auth in [&b""[..], &[7; 20], &[9; 250], &[9; 300]] {
            let mut out = vec![];
            encode_login(&mut out, &login(auth));
            assert_eq!(parse_hello(&out, CAPS), Ok(ClientHello::Login(login(auth))));
        }
        assert_eq!(
            attributes(login(b"").attributes),
            Ok(vec![(&b"_os"[..], &b"linux"[..])])
        );
    }

    #[test]
    fn the_level_of_zstd_follows_the_attributes() {
        let mut out = vec![];
        let sent = Login {
            capabilities: CAPS & !cap::SSL | cap::ZSTD_COMPRESSION_ALGORITHM,
            zstd_level: 19,
            ..login(b"")
        };
        encode_login(&mut out, &sent);
        assert_eq!(
            parse_hello(&out, CAPS | cap::ZSTD_COMPRESSION_ALGORITHM),
            Ok(ClientHello::Login(sent))
        );
    }

    #[test]
    fn tls_requests_and_old_clients_are_recognized() {
        let mut out = vec![];
        encode_login(
            &mut out,
            &Login {
                capabilities: CAPS,
                ..login(b"")
            },
        );
        assert_eq!(
            parse_hello(&out[..32], CAPS),
            Ok(ClientHello::Tls { capabilities: CAPS })
        );
        // A server without a certificate did not offer TLS, so this packet is just too short.
        assert!(parse_hello(&out[..32], CAPS & !cap::SSL).is_err());
        assert!(parse_hello(&[0x05, 0x24, 0, 0, 0, b'u', 0], CAPS).is_err());
        assert!(parse_hello(&[], CAPS).is_err());
    }

    #[test]
    fn change_user_parses() {
        let body = b"bob\0\x03abcdb1\0\x2d\x00mysql_native_password\0\x04\x01k\x01v";
        let l = parse_change_user(body, CAPS).unwrap();
        assert_eq!(
            (l.user, l.auth_response, l.database, l.collation),
            (&b"bob"[..], &b"abc"[..], Some(&b"db1"[..]), 45)
        );
        assert_eq!(
            (l.plugin, attributes(l.attributes).unwrap().len()),
            (Some(&b"mysql_native_password"[..]), 1)
        );
        assert_eq!(parse_change_user(b"bob\0\0", CAPS).unwrap().database, None);
    }

    proptest! {
        #[test]
        fn random_and_truncated_packets_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), caps in any::<u32>(), cut in 0usize..120) {
            let _ = parse_hello(&bytes, caps);
            let _ = parse_change_user(&bytes, caps);
            let _ = attributes(&bytes);
            let mut good = vec![];
            encode_login(&mut good, &login(&[1; 20]));
            good.truncate(cut);
            let _ = parse_hello(&good, CAPS);
        }
    }
}
