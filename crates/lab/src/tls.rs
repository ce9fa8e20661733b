//! TLS with the options of MySQL's clients: `ssl-mode` and `ssl-ca` of a DSN.
//!
//! # Not here
//! Client certificates. Server certificates without host names, such as those that MySQL generates
//! at its first start, pass VERIFY_CA but never VERIFY_IDENTITY.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme,
};

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
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match (mode >= SslMode::VerifyCa, ca) {
            (false, _) => Arc::new(AcceptAny(provider.clone())),
            (true, None) => {
                return Err(LabError::usage(format!(
                    "ssl-mode={mode} needs ssl-ca=FILE, the certificates to trust"
                )));
            }
            (true, Some(ca)) => {
                let chain = trusted(ca, &provider)?;
                match mode {
                    SslMode::VerifyCa => Arc::new(AnyName(chain)),
                    _ => chain,
                }
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| LabError::usage(format!("TLS: {e}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
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

fn trusted(
    ca: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, LabError> {
    let bad =
        |e: &dyn fmt::Display| LabError::usage(format!("cannot use ssl-ca={}: {e}", ca.display()));
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(|e| bad(&e))? {
        let certificate = certificate.map_err(|e| bad(&e))?;
        roots.add(certificate).map_err(|e| bad(&e))?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|e| bad(&e))
}

/// Accepts every certificate: the connection is encrypted, but the server is not authenticated
/// (PREFERRED, REQUIRED).
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

    // The key is not authenticated, so its signature proves nothing.
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

/// Verifies everything but the host name (VERIFY_CA).
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // The name is checked last, after the chain was found valid.
        match self
            .0
            .verify_server_cert(end_entity, intermediates, name, ocsp, now)
        {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
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
        assert!(said(SslMode::VerifyIdentity, Some("/not/there")).contains("/not/there"));
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("ca.pem");
        std::fs::write(&file, "no certificate").expect("writes");
        assert!(said(SslMode::VerifyCa, file.to_str()).contains("cannot use ssl-ca"));
        let tls = Tls::new(SslMode::Preferred, None).expect("no files needed");
        for host in ["localhost", "127.0.0.1", "::1", "a_b"] {
            assert!(tls.session(host).is_ok(), "{host}");
        }
    }
}
