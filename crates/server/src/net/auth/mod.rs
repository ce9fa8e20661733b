//! Authentication: accounts, the exchange with a client, the password cache, and the RSA key.
//!
//! No I/O here: `conn::login` receives and sends the packets.

mod cache;
mod certificate;
mod exchange;
mod keys;

use std::sync::Arc;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use nfold_catalog::CertificateRule;
use nfold_protocol::consts::{CACHING_SHA2_PASSWORD, NATIVE_PASSWORD};
use nfold_protocol::handshake::SALT;
use nfold_protocol::scramble;

pub(crate) use cache::Cache;
pub(crate) use certificate::satisfies;
pub(crate) use exchange::{Exchange, Outcome};
pub use keys::{KeyError, RsaKeys};

use super::conn::Peer;
use super::fiber::login_failures::FailureLimit;
use super::worker::Registry;

/// An account, as far as authentication needs it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The user name in `mysql.user`; empty for the anonymous account.
    pub user: String,
    /// Host pattern.
    pub host: String,
    /// `mysql_native_password` or `caching_sha2_password`. With another plugin no login succeeds.
    pub plugin: String,
    /// The bytes of `mysql.user.authentication_string`.
    pub auth_string: Vec<u8>,
    /// The stored form of a second password that is valid, too; empty: there is none.
    pub second: Vec<u8>,
    pub locked: bool,
    /// Whether only connections with TLS are accepted.
    pub require_tls: bool,
    /// What the client has to present besides.
    pub certificate: Option<Box<CertificateRule>>,
    pub failure_limit: FailureLimit,
    /// Whether the account may use the reserved connection above `max_connections` (SUPER or
    /// CONNECTION_ADMIN).
    pub connection_admin: bool,
}

/// The source of accounts. The event loop calls it, so it must answer from memory without waiting.
pub trait AccountSource: Send + Sync {
    /// The account for a client: the most specific one among those with its user name (or
    /// anonymous) whose host pattern matches.
    fn find(&self, user: &str, peer: Peer) -> Option<Account>;
}

/// The shared state of authentication.
pub struct Authenticator {
    pub server_version: String,
    pub accounts: Arc<dyn AccountSource>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) keys: Option<RsaKeys>,
    pub(crate) cache: Cache,
    pub(crate) registry: Arc<Registry>,
    /// Whether refused logins are logged (`log_error_verbosity` 3).
    pub(crate) log_denied: bool,
    random: SystemRandom,
}

impl Authenticator {
    pub(crate) fn new(
        server_version: String,
        accounts: Arc<dyn AccountSource>,
        tls: Option<Arc<rustls::ServerConfig>>,
        keys: Option<RsaKeys>,
    ) -> Self {
        Authenticator {
            server_version,
            accounts,
            tls,
            keys,
            cache: Cache::default(),
            registry: Arc::default(),
            log_denied: false,
            random: SystemRandom::new(),
        }
    }

    /// A new challenge: random bytes other than zero and `$`.
    pub(crate) fn new_salt(&self) -> [u8; SALT] {
        let mut salt = [0; SALT];
        self.random
            .fill(&mut salt)
            .expect("the operating system gives random bytes");
        salt.map(|b| match b & 0x7f {
            0 | b'$' => 1 + (b >> 7),
            c => c,
        })
    }
}

/// Hashes a new password for `authentication_string` (CREATE USER, ALTER USER, SET PASSWORD).
/// `None`: an unknown plugin (1524).
pub fn hash_password(plugin: &str, password: &str) -> Option<String> {
    match plugin {
        NATIVE_PASSWORD => Some(scramble::native_store(password.as_bytes())),
        CACHING_SHA2_PASSWORD => {
            let mut salt = [0; scramble::STORED_SALT];
            SystemRandom::new()
                .fill(&mut salt)
                .expect("the operating system gives random bytes");
            Some(scramble::sha2_store(password.as_bytes(), salt))
        }
        _ => None,
    }
}

/// Whether `password` is the one that `stored` belongs to.
pub fn proves_password(plugin: &str, stored: &[u8], password: &[u8]) -> bool {
    match plugin {
        NATIVE_PASSWORD => scramble::native_store(password).as_bytes() == stored,
        CACHING_SHA2_PASSWORD => scramble::sha2_full_check(stored, password),
        _ => false,
    }
}

/// A random password of letters, digits and punctuation, which needs no escapes in SQL.
pub fn random_password(length: usize) -> String {
    const CHARACTERS: &[u8; 64] =
        b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789,.-_:;!";
    let mut bytes = vec![0; length];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the operating system gives random bytes");
    let characters = bytes
        .iter()
        .map(|b| CHARACTERS[usize::from(b % 64)] as char);
    characters.collect()
}

/// Whether `stored` has the form of `plugin`'s stored strings (otherwise `IDENTIFIED WITH plugin AS
/// '...'` is error 1827). `None`: an unknown plugin.
pub fn is_valid_hash(plugin: &str, stored: &[u8]) -> Option<bool> {
    match plugin {
        NATIVE_PASSWORD => Some(scramble::native_valid(stored)),
        CACHING_SHA2_PASSWORD => Some(scramble::sha2_valid(stored)),
        _ => None,
    }
}
