//! The server's TLS configuration. Its certificate is created at the first start, unless options
//! name one.
//!
//! # Failure
//! `server-key.pem` (mode 0600) is written before `server-cert.pem`, both by rename. A start that
//! finds only one of them creates both anew.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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
    match (&options.ssl_cert, &options.ssl_key) {
        (Some(cert), Some(key)) => load(cert, key),
        (None, None) => {
            let cert = options.datadir.join("server-cert.pem");
            let key = options.datadir.join("server-key.pem");
            if !cert.exists() || !key.exists() {
                generate(&cert, &key)?;
            }
            load(&cert, &key)
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

fn load(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
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
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|b| b.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|e| {
            TlsError(format!(
                "cannot use the certificate {}: {e}",
                cert.display()
            ))
        })?;
    Ok(Arc::new(config))
}
