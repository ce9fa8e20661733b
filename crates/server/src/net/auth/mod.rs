//! Authentication: accounts, the exchange with a client, the cache of caching_sha2_password, the
//! RSA key.
//!
//! Everything here is computation: packets come and go through `conn::login`.

mod cache;
mod exchange;
mod keys;

use std::sync::Arc;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use nfold_protocol::consts::{CACHING_SHA2_PASSWORD, NATIVE_PASSWORD};
use nfold_protocol::handshake::SALT;
use nfold_protocol::scramble;

pub(crate) use cache::Cache;
pub(crate) use exchange::{Exchange, Outcome};
pub use keys::{KeyError, RsaKeys};

use super::conn::Peer;
use super::worker::Registry;

/// An account as authentication needs it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// Name in `mysql.user`; empty for the anonymous account.
    pub user: String,
    /// Host pattern.
    pub host: String,
    /// `mysql_native_password` or `caching_sha2_password`; others never let anybody in.
    pub plugin: String,
    /// `mysql.user.authentication_string`, bytes as stored.
    pub auth_string: Vec<u8>,
    pub locked: bool,
    /// May take the one place above `max_connections` (SUPER or CONNECTION_ADMIN).
    pub connection_admin: bool,
}

/// Where accounts are found. Called by the event loop: it answers from memory and does not wait.
pub trait AccountSource: Send + Sync {
    /// The account that a client falls under: of those with its user name (or anonymous) whose host
    /// pattern matches, the most specific.
    fn find(&self, user: &str, peer: Peer) -> Option<Account>;
}

/// What all connections authenticate with.
pub struct Authenticator {
    pub server_version: String,
    pub accounts: Arc<dyn AccountSource>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) keys: Option<RsaKeys>,
    pub(crate) cache: Cache,
    pub(crate) registry: Arc<Registry>,
    /// A refused login is a log line (`log_error_verbosity` 3).
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

    /// A fresh challenge: random bytes, none of them zero or `$`.
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
/// `None`: no such plugin (1524).
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

/// Is `stored` of the form that `plugin` stores (`IDENTIFIED WITH plugin AS '...'`, error 1827
/// otherwise)? `None`: no such plugin.
pub fn is_valid_hash(plugin: &str, stored: &[u8]) -> Option<bool> {
    match plugin {
        NATIVE_PASSWORD => Some(scramble::native_valid(stored)),
        CACHING_SHA2_PASSWORD => Some(scramble::sha2_valid(stored)),
        _ => None,
    }
}
