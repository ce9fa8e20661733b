//! The client's side of TLS: which certificates of a server count.

#![forbid(unsafe_code)]

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};

/// Which certificates of a server count.
#[derive(Debug, Clone, Copy)]
pub enum Trust<'a> {
    /// Every one: the connection is encrypted, but the server is not authenticated.
    Any,
    /// Those that one of the certificates in this file (PEM) has signed, for any host. Those that
    /// MySQL makes at its first start name no host.
    SignedBy(&'a Path),
    /// Of those the ones for the host that the client connects to.
    SignedForHostBy(&'a Path),
}

/// Why TLS cannot be set up.
#[derive(Debug)]
pub struct TlsError {
    /// The file that cannot be used, if there is one.
    pub file: Option<PathBuf>,
    pub reason: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(
                f,
                "cannot use the file '{}' for TLS: {}",
                file.display(),
                self.reason
            ),
            None => write!(f, "TLS: {}", self.reason),
        }
    }
}

impl std::error::Error for TlsError {}

impl TlsError {
    /// `file` cannot be used.
    pub fn in_file(file: &Path, reason: impl fmt::Display) -> TlsError {
        TlsError {
            file: Some(file.to_path_buf()),
            reason: reason.to_string(),
        }
    }
}

/// The configuration of connections with that trust, which still lacks the client's certificate.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn client_config(
    trust: Trust<'_>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, TlsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Any => Arc::new(AcceptAny(provider.clone())),
        Trust::SignedBy(ca) => Arc::new(ForAnyHost(authorities(ca, &provider)?)),
        Trust::SignedForHostBy(ca) => authorities(ca, &provider)?,
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| TlsError {
            file: None,
            reason: e.to_string(),
        })?;
    Ok(config
        .dangerous()
        .with_custom_certificate_verifier(verifier))
}

/// The certificates of a file; at least one.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(list) if list.is_empty() => Err(TlsError::in_file(file, "it has no certificate")),
        read => read.map_err(|e| TlsError::in_file(file, e)),
    }
}

fn authorities(
    ca: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca)? {
        let added = roots.add(certificate);
        added.map_err(|e| TlsError::in_file(ca, e))?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|e| TlsError::in_file(ca, e))
}

/// See [`Trust::Any`].
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

/// See [`Trust::SignedBy`].
#[derive(Debug)]
struct ForAnyHost(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for ForAnyHost {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = (self.0).verify_server_cert(certificate, between, name, ocsp, now);
        match verified {
            // The name is compared last, when the signatures are good.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        (self.0).verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        (self.0).verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_certificates_are_named() {
        assert!(client_config(Trust::Any).is_ok());
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("ca.pem");
        std::fs::write(&file, "no certificate").expect("writes");
        for trust in [Trust::SignedBy, Trust::SignedForHostBy] {
            for ca in [&file, Path::new("/not/there")] {
                let error = client_config(trust(ca)).err().expect("an error");
                let ca = ca.display().to_string();
                assert!(error.to_string().contains(&ca), "{error}");
            }
        }
    }
}
