//! TLS to a source: which certificates count.

use std::io;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

/// The certificates of a connection. All names are of files in the PEM format; empty: none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsFiles {
    /// SOURCE_SSL_CA: the authorities, one of which must have signed the source's certificate.
    /// Without them every certificate counts: the connection is encrypted, but the source is not
    /// authenticated.
    pub ca: String,
    /// SOURCE_SSL_CERT: the certificate that this server presents.
    pub cert: String,
    /// SOURCE_SSL_KEY: its private key.
    pub key: String,
    /// SOURCE_SSL_VERIFY_SERVER_CERT: the source's certificate must be for its host.
    pub verify_name: bool,
}

impl TlsFiles {
    /// The settings of a connection.
    ///
    /// # Errors
    /// A file cannot be read, or does not have what it should have.
    pub(crate) fn client_config(&self) -> io::Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.ca.is_empty() {
            true if self.verify_name => {
                let text = "SOURCE_SSL_VERIFY_SERVER_CERT = 1 needs SOURCE_SSL_CA";
                return Err(io::Error::other(text));
            }
            true => Arc::new(AcceptAny(provider.clone())),
            false => Arc::new(self.authorities(provider.clone())?),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        if self.cert.is_empty() {
            return Ok(config.with_no_client_auth());
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|e| unreadable(&self.key, e))?;
        let config = config.with_client_auth_cert(certificates(&self.cert)?, key);
        config.map_err(|e| unreadable(&self.cert, e))
    }

    fn authorities(&self, provider: Arc<CryptoProvider>) -> io::Result<Signed> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.ca)? {
            let added = roots.add(certificate);
            added.map_err(|e| unreadable(&self.ca, e))?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Signed {
            by: verifier.build().map_err(|e| unreadable(&self.ca, e))?,
            verify_name: self.verify_name,
        })
    }
}

fn unreadable(file: &str, e: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("cannot use the file '{file}' for TLS: {e}"))
}

/// The certificates of a file.
fn certificates(file: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(list) if list.is_empty() => Err(unreadable(file, "it has no certificate")),
        read => read.map_err(|e| unreadable(file, e)),
    }
}

/// Accepts certificates that the authorities have signed.
#[derive(Debug)]
struct Signed {
    by: Arc<WebPkiServerVerifier>,
    verify_name: bool,
}

impl ServerCertVerifier for Signed {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = (self.by).verify_server_cert(certificate, between, name, ocsp, now);
        match verified {
            // The name is compared last, when the signatures are good.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verify_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by.supported_verify_schemes()
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
