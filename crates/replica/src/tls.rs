//! TLS to a source: which certificates count.

use std::io;
use std::path::Path;

use nfold_tls::{TlsError, Trust, certificates, client_config};
use rustls::ClientConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

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
        let ca = Path::new(&self.ca);
        let trust = match (self.ca.is_empty(), self.verify_name) {
            (true, true) => {
                let text = "SOURCE_SSL_VERIFY_SERVER_CERT = 1 needs SOURCE_SSL_CA";
                return Err(io::Error::other(text));
            }
            (true, false) => Trust::Any,
            (false, true) => Trust::SignedForHostBy(ca),
            (false, false) => Trust::SignedBy(ca),
        };
        let config = client_config(trust).map_err(io::Error::other)?;
        if self.cert.is_empty() {
            return Ok(config.with_no_client_auth());
        }
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|e| io::Error::other(TlsError::in_file(Path::new(&self.key), e)))?;
        let cert = Path::new(&self.cert);
        config
            .with_client_auth_cert(certificates(cert).map_err(io::Error::other)?, key)
            .map_err(|e| io::Error::other(TlsError::in_file(cert, e)))
    }
}
