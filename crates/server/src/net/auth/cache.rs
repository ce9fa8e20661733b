//! The fast path of caching_sha2_password: digests of passwords that a client has proved in full.
//!
//! An entry holds the stored authentication string that the password was proved against. After a
//! change of the password the strings differ, so the entry is ignored, and the next full proof
//! overwrites it. No notification is needed.
//!
//! # Concurrency
//! A read-write lock, taken at logins only.

use nfold_protocol::scramble::{FastDigest, sha2_fast_check, sha2_fast_digest};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::Account;

type Key = (String, String);

#[derive(Default)]
pub(crate) struct Cache {
    entries: RwLock<FxHashMap<Key, (Vec<u8>, FastDigest)>>,
}

fn key(account: &Account) -> Key {
    (account.user.clone(), account.host.clone())
}

impl Cache {
    /// Whether the client's answer proves the cached password.
    pub fn check(&self, account: &Account, salt: &[u8], answer: &[u8]) -> bool {
        let entries = self.entries.read();
        entries.get(&key(account)).is_some_and(|(stored, digest)| {
            *stored == account.auth_string && sha2_fast_check(digest, salt, answer)
        })
    }

    /// Records that `password` has been proved in full.
    pub fn remember(&self, account: &Account, password: &[u8]) {
        let entry = (account.auth_string.clone(), sha2_fast_digest(password));
        self.entries.write().insert(key(account), entry);
    }
}
