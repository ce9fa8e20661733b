//! TLS with the options of MySQL's clients: `ssl-mode` and `ssl-ca` of a DSN.
//!
//! # Not here
//! Client certificates. Server certificates without host names, such as those that MySQL generates
//! at its first start, pass VERIFY_CA but never VERIFY_IDENTITY.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use nfold_tls::Trust;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::LabError;

/// How a connection is secured, with MySQL's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    Disabled,
    /// Use TLS if the server supports it.
    Preferred,
    Required,
    /// The certificate must be signed by one of `ssl-ca`.
    VerifyCa,
    /// In addition, the certificate must contain the server's name.
    VerifyIdentity,
}

const MODES: [(&str, SslMode); 5] = [
    ("DISABLED", SslMode::Disabled),
    ("PREFERRED", SslMode::Preferred),
    ("REQUIRED", SslMode::Required),
    ("VERIFY_CA", SslMode::VerifyCa),
    ("VERIFY_IDENTITY", SslMode::VerifyIdentity),
];

impl SslMode {
    /// Parses MySQL's name of a mode, in any case. The error lists the names.
    pub fn parse(text: &str) -> Result<SslMode, String> {
        let found = MODES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            let names: Vec<&str> = MODES.iter().map(|(name, _)| *name).collect();
            format!("ssl-mode is one of {}, not {text:?}", names.join(", "))
        })
    }
}

impl fmt::Display for SslMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = MODES.iter().find(|(_, mode)| mode == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// The TLS configuration shared by all connections to one server.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// `ca` is a PEM file with the certificates that VERIFY_CA and VERIFY_IDENTITY trust.
    pub fn new(mode: SslMode, ca: Option<&Path>) -> Result<Tls, LabError> {
        let trust = match (mode, ca) {
            (SslMode::VerifyCa, Some(ca)) => Trust::SignedBy(ca),
            (SslMode::VerifyIdentity, Some(ca)) => Trust::SignedForHostBy(ca),
            (SslMode::VerifyCa | SslMode::VerifyIdentity, None) => {
                return Err(LabError::usage(format!(
                    "ssl-mode={mode} needs ssl-ca=FILE, the certificates to trust"
                )));
            }
            (SslMode::Disabled | SslMode::Preferred | SslMode::Required, _) => Trust::Any,
        };
        let config = nfold_tls::client_config(trust)
            .map_err(|e| LabError::usage(format!("ssl-mode={mode}: {e}")))?
            .with_no_client_auth();
        Ok(Tls {
            config: Arc::new(config),
        })
    }

    /// Starts a session with the server called `host`.
    pub fn session(&self, host: &str) -> Result<ClientConnection, LabError> {
        let bad = |e: &dyn fmt::Display| LabError::usage(format!("TLS with {host}: {e}"));
        // A name that no certificate can contain matters only in the modes that check it.
        let name = ServerName::try_from(host.to_owned())
            .or_else(|_| ServerName::try_from("unnamed.invalid"))
            .map_err(|e| bad(&e))?;
        ClientConnection::new(self.config.clone(), name).map_err(|e| bad(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_names_parse() {
        for (name, mode) in MODES {
            assert_eq!(SslMode::parse(&name.to_lowercase()), Ok(mode));
            assert_eq!(mode.to_string(), name);
        }
        assert!(SslMode::parse("on").is_err_and(|e| e.contains("VERIFY_IDENTITY")));
    }

    #[test]
    fn untrusted_configurations_are_reported() {
        let said = |mode, ca: Option<&str>| {
            let made = Tls::new(mode, ca.map(Path::new));
            made.err().map_or(String::new(), |e| e.to_string())
        };
        assert_eq!(said(SslMode::Required, None), "");
        assert!(said(SslMode::VerifyCa, None).contains("needs ssl-ca"));
        let missing = said(SslMode::VerifyIdentity, Some("/not/there"));
        assert!(missing.contains("ssl-mode=VERIFY_IDENTITY: cannot use the file '/not/there'"));
        let tls = Tls::new(SslMode::Preferred, None).expect("no files needed");
        for host in ["localhost", "127.0.0.1", "::1", "a_b"] {
            assert!(tls.session(host).is_ok(), "{host}");
        }
    }
}
