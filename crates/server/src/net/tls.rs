//! The server's TLS configuration. Its certificate is created at the first start, unless options
//! name one. With `ssl_ca` a client may present a certificate of these authorities.
//!
//! # Failure
//! `server-key.pem` (mode 0600) is written before `server-cert.pem`, both by rename. A start that
//! finds only one of them creates both anew.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::config::{ServerOptions, write_private};

/// Why TLS is not available, as one line for the log.
#[derive(Debug)]
pub struct TlsError(pub String);

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// The configuration with the certificate of the options `ssl_cert` and `ssl_key`, or else that of
/// the data directory.
pub fn server_config(options: &ServerOptions) -> Result<Arc<ServerConfig>, TlsError> {
    let ca = options.ssl_ca.as_deref();
    match (&options.ssl_cert, &options.ssl_key) {
        (Some(cert), Some(key)) => load(cert, key, ca),
        (None, None) => {
            let cert = options.datadir.join("server-cert.pem");
            let key = options.datadir.join("server-key.pem");
            if !cert.exists() || !key.exists() {
                generate(&cert, &key)?;
            }
            load(&cert, &key, ca)
        }
        _ => Err(TlsError(
            "ssl_cert and ssl_key must be given together".into(),
        )),
    }
}

fn generate(cert: &Path, key: &Path) -> Result<(), TlsError> {
    let names = vec!["localhost".to_string(), "127.0.0.1".into(), "::1".into()];
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|e| TlsError(format!("cannot make a certificate: {e}")))?;
    let write = |path: &Path, text: String| {
        write_private(path, text.as_bytes())
            .map_err(|e| TlsError(format!("cannot write {}: {e}", path.display())))
    };
    write(key, made.signing_key.serialize_pem())?;
    write(cert, made.cert.pem())?;
    tracing::info!("made a self-signed certificate, {}", cert.display());
    Ok(())
}

/// Checks the certificates of clients that have one.
fn client_verifier(
    ca: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let wrong = |e: &dyn std::fmt::Display| {
        TlsError(format!("cannot use the authorities {}: {e}", ca.display()))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(|e| wrong(&e))? {
        roots
            .add(certificate.map_err(|e| wrong(&e))?)
            .map_err(|e| wrong(&e))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|e| wrong(&e))
}

fn load(cert: &Path, key: &Path, ca: Option<&Path>) -> Result<Arc<ServerConfig>, TlsError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|e| {
            TlsError(format!(
                "cannot read the certificate {}: {e}",
                cert.display()
            ))
        })?;
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|e| TlsError(format!("cannot read the key {}: {e}", key.display())))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = match ca {
        Some(ca) => client_verifier(ca, provider.clone())?,
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|b| {
            b.with_client_cert_verifier(verifier)
                .with_single_cert(chain, private)
        })
        .map_err(|e| {
            TlsError(format!(
                "cannot use the certificate {}: {e}",
                cert.display()
            ))
        })?;
    Ok(Arc::new(config))
}
