//! The RSA key pair that clients use to encrypt their password for caching_sha2_password without
//! TLS.
//!
//! # Failure
//! The first start creates `private_key.pem` (PKCS#8, mode 0600) and `public_key.pem` in the data
//! directory. The private key is written under a temporary name and renamed, so after a crash it is
//! complete or missing. The server does not start with an unreadable key.

use std::path::Path;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

use crate::config::{pem_encode, write_private};

/// Why there is no key, as one line for the log.
#[derive(Debug)]
pub struct KeyError(pub String);

impl std::fmt::Display for KeyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyError {}

pub struct RsaKeys {
    private: OaepPrivateDecryptingKey,
    public_pem: String,
}

impl RsaKeys {
    /// Reads the key from a data directory, or creates one.
    pub fn load_or_generate(datadir: &Path) -> Result<Self, KeyError> {
        let path = datadir.join("private_key.pem");
        let error = |what: &str, e: &dyn std::fmt::Display| {
            KeyError(format!("cannot {what} {}: {e}", path.display()))
        };
        let key = if path.exists() {
            let der = PrivatePkcs8KeyDer::from_pem_file(&path).map_err(|e| error("read", &e))?;
            PrivateDecryptingKey::from_pkcs8(der.secret_pkcs8_der())
                .map_err(|e| error("use the RSA key in", &e))?
        } else {
            let key = PrivateDecryptingKey::generate(KeySize::Rsa2048)
                .map_err(|e| error("make an RSA key for", &e))?;
            let der: Pkcs8V1Der<'_> = key.as_der().map_err(|e| error("encode", &e))?;
            let pem = pem_encode("PRIVATE KEY", der.as_ref());
            write_private(&path, pem.as_bytes()).map_err(|e| error("write", &e))?;
            key
        };
        let public: PublicKeyX509Der<'_> =
            key.public_key().as_der().map_err(|e| error("encode", &e))?;
        let public_pem = pem_encode("PUBLIC KEY", public.as_ref());
        let public_path = datadir.join("public_key.pem");
        if !public_path.exists() {
            std::fs::write(&public_path, &public_pem)
                .map_err(|e| KeyError(format!("cannot write {}: {e}", public_path.display())))?;
        }
        let private =
            OaepPrivateDecryptingKey::new(key).map_err(|e| error("use the RSA key in", &e))?;
        Ok(RsaKeys {
            private,
            public_pem,
        })
    }

    /// The public key in PEM format, which clients request to encrypt their password.
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// Decrypts RSA-OAEP (with SHA-1, as clients use it). `None`: not encrypted with this key.
    pub fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        if encrypted.len() != self.private.key_size_bytes() {
            return None;
        }
        let mut out = vec![0; self.private.min_output_size()];
        let plain = self
            .private
            .decrypt(&OAEP_SHA1_MGF1SHA1, encrypted, &mut out, None)
            .ok()?;
        Some(plain.to_vec())
    }
}

#[cfg(test)]
pub(crate) fn encrypt_for_test(pem: &[u8], plain: &[u8]) -> Vec<u8> {
    use aws_lc_rs::rsa::{OaepPublicEncryptingKey, PublicEncryptingKey};
    use rustls::pki_types::SubjectPublicKeyInfoDer;
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).unwrap();
    let key = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&der).unwrap()).unwrap();
    let mut out = vec![0; key.ciphertext_size()];
    key.encrypt(&OAEP_SHA1_MGF1SHA1, plain, &mut out, None)
        .unwrap()
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let first = RsaKeys::load_or_generate(dir.path()).unwrap();
        let again = RsaKeys::load_or_generate(dir.path()).unwrap();
        assert_eq!(first.public_pem(), again.public_pem());
        let encrypted = encrypt_for_test(first.public_pem().as_bytes(), b"hello");
        assert_eq!(again.decrypt(&encrypted).as_deref(), Some(&b"hello"[..]));
        assert_eq!(again.decrypt(&[1; 256]), None);
        assert_eq!(again.decrypt(b"short"), None);
        let mode = std::fs::metadata(dir.path().join("private_key.pem"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(dir.path().join("private_key.pem"), "nonsense").unwrap();
        let e = RsaKeys::load_or_generate(dir.path())
            .map(|_| ())
            .unwrap_err();
        assert!(e.0.contains("private_key.pem"), "{e}");
    }
}
