//! One authentication, packet by packet, for both plugins.
//!
//! # Picture
//! ```text
//! begin ─ plugin differs ─▶ Switch ─▶ answer ┐
//!   └─────────────────────────────────────────┤
//! native: check ─▶ Accepted / Denied          │
//! sha2:   cached? ─▶ More(3) + Accepted ◀─────┘
//!         else More(4) ─▶ password (TLS, unix socket)            ─▶ full check
//!                     └─▶ 2: More(public key) ─▶ encrypted ──────▶ full check
//! ```
//! An unknown user is treated like one whose password is unknown, and takes the same time for
//! hashing.

use std::time::Instant;

use nfold_protocol::consts::{CACHING_SHA2_PASSWORD, NATIVE_PASSWORD};
use nfold_protocol::handshake::SALT;
use nfold_protocol::scramble;

use super::{Account, Authenticator};
use crate::net::conn::Peer;
use crate::net::fiber::login_failures::Blocked;

const FAST_AUTH_OK: u8 = 3;
const FULL_AUTH: u8 = 4;
const REQUEST_KEY: u8 = 2;

/// The packet to send, or the decision.
#[derive(Debug)]
pub(crate) enum Outcome {
    Switch {
        plugin: &'static str,
        salt: [u8; SALT],
    },
    More(Vec<u8>),
    /// `more` is sent before the OK.
    Accepted {
        account: Account,
        more: Option<Vec<u8>>,
    },
    Denied {
        password_used: bool,
    },
    Locked,
    /// Failed logins have blocked the account.
    Blocked(Blocked),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plugin {
    Native,
    Sha2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The answer to the challenge is expected.
    Answer,
    /// The password is expected, in clear or encrypted.
    Password,
    /// The password is expected, encrypted.
    Encrypted,
}

pub(crate) struct Exchange {
    /// `None`: an unknown user. The exchange continues, so that the client cannot tell.
    account: Option<Account>,
    plugin: Plugin,
    salt: [u8; SALT],
    stage: Stage,
}

impl Exchange {
    /// Starts with the client's first packet. `salt` is the challenge that the client has received.
    pub fn begin(
        auth: &Authenticator,
        user: &str,
        peer: Peer,
        client_plugin: Option<&[u8]>,
        answer: &[u8],
        salt: [u8; SALT],
    ) -> (Self, Outcome) {
        let account = auth
            .accounts
            .find(user, peer)
            .filter(|a| a.plugin == NATIVE_PASSWORD || a.plugin == CACHING_SHA2_PASSWORD);
        let plugin = match &account {
            Some(a) if a.plugin == NATIVE_PASSWORD => Plugin::Native,
            _ => Plugin::Sha2,
        };
        let mut exchange = Exchange {
            account,
            plugin,
            salt,
            stage: Stage::Answer,
        };
        let name = match plugin {
            Plugin::Native => NATIVE_PASSWORD,
            Plugin::Sha2 => CACHING_SHA2_PASSWORD,
        };
        // The server's first packet names the other plugin. A client without that one sends an
        // empty answer and the name of its own plugin, and expects a challenge.
        let without_challenge = plugin == Plugin::Native
            && answer.is_empty()
            && exchange.stored().is_some_and(|s| !s.is_empty());
        if client_plugin != Some(name.as_bytes()) || without_challenge {
            exchange.salt = auth.new_salt();
            let salt = exchange.salt;
            return (exchange, Outcome::Switch { plugin: name, salt });
        }
        let outcome = exchange.check_answer(auth, answer);
        (exchange, outcome)
    }

    /// Handles the client's next packet. `secure`: no third party can read the connection (TLS,
    /// unix socket).
    pub fn answer(&mut self, auth: &Authenticator, payload: &[u8], secure: bool) -> Outcome {
        match self.stage {
            Stage::Answer => self.check_answer(auth, payload),
            Stage::Password if secure => self.check_password(auth, payload),
            Stage::Password if payload == [REQUEST_KEY] => match &auth.keys {
                Some(keys) => {
                    self.stage = Stage::Encrypted;
                    Outcome::More(keys.public_pem().as_bytes().to_vec())
                }
                None => Outcome::Denied {
                    password_used: true,
                },
            },
            Stage::Password | Stage::Encrypted => {
                let decrypted = auth.keys.as_ref().and_then(|k| k.decrypt(payload));
                let Some(mut password) = decrypted else {
                    return Outcome::Denied {
                        password_used: true,
                    };
                };
                for (b, s) in password.iter_mut().zip(self.salt.iter().cycle()) {
                    *b ^= s;
                }
                self.check_password(auth, &password)
            }
        }
    }

    fn stored(&self) -> Option<&[u8]> {
        self.account.as_ref().map(|a| a.auth_string.as_slice())
    }

    /// The stored form of the second password, if there is one.
    fn second(&self) -> Option<&[u8]> {
        let second = self.account.as_ref().map(|a| a.second.as_slice());
        second.filter(|s| !s.is_empty())
    }

    fn check_answer(&mut self, auth: &Authenticator, answer: &[u8]) -> Outcome {
        match self.plugin {
            Plugin::Native => {
                let mut stored = self.stored().into_iter().chain(self.second());
                let proved = stored.any(|s| scramble::native_check(s, &self.salt, answer));
                self.decide(auth, proved, !answer.is_empty(), None)
            }
            Plugin::Sha2 => self.check_sha2_answer(auth, answer),
        }
    }

    fn check_sha2_answer(&mut self, auth: &Authenticator, answer: &[u8]) -> Outcome {
        // An empty password: nothing, or the terminating zero byte.
        if answer.is_empty() || answer == [0] {
            let proved = self.stored().is_some_and(<[u8]>::is_empty);
            return self.decide(auth, proved, false, None);
        }
        let cached = self
            .account
            .as_ref()
            .is_some_and(|a| !a.auth_string.is_empty() && auth.cache.check(a, &self.salt, answer));
        if cached {
            return self.decide(auth, true, true, Some(vec![FAST_AUTH_OK]));
        }
        self.stage = Stage::Password;
        Outcome::More(vec![FULL_AUTH])
    }

    /// Checks `sent`, the password with a terminating zero byte.
    fn check_password(&mut self, auth: &Authenticator, sent: &[u8]) -> Outcome {
        let Some((0, password)) = sent.split_last() else {
            return Outcome::Denied {
                password_used: true,
            };
        };
        /// A stored string that no password matches, so that an unknown user takes as long as a
        /// known one.
        const NO_ACCOUNT: &[u8] =
            b"$A$005$abcdefghijklmnopqrst...........................................";
        let stored = match self.stored() {
            Some(s) if !s.is_empty() => s,
            _ => NO_ACCOUNT,
        };
        let first = scramble::sha2_full_check(stored, password) && self.account.is_some();
        if first && let Some(account) = &self.account {
            auth.cache.remember(account, password);
        }
        // The cache has the first password only, so the second one is always checked in full.
        let mut second = self.second().into_iter();
        let proved = first || second.any(|s| scramble::sha2_full_check(s, password));
        self.decide(auth, proved, true, None)
    }

    fn decide(
        &mut self,
        auth: &Authenticator,
        proved: bool,
        password_used: bool,
        more: Option<Vec<u8>>,
    ) -> Outcome {
        let Some(account) = self.account.take() else {
            return Outcome::Denied { password_used };
        };
        if account.failure_limit.is_set() {
            let failures = auth.registry.login_failures();
            let (id, limit) = ((&*account.user, &*account.host), account.failure_limit);
            if let Some(blocked) = failures.note(id, limit, proved, Instant::now()) {
                return Outcome::Blocked(blocked);
            }
        }
        match proved {
            true if account.locked => Outcome::Locked,
            true => Outcome::Accepted { account, more },
            false => Outcome::Denied { password_used },
        }
    }
}

#[cfg(test)]
mod tests;
