use std::sync::Arc;

use super::*;
use crate::net::auth::{AccountSource, RsaKeys, hash_password};

struct Accounts(Vec<Account>);

impl AccountSource for Accounts {
    fn find(&self, user: &str, _: Peer) -> Option<Account> {
        self.0.iter().find(|a| a.user == user).cloned()
    }
}

fn account(user: &str, plugin: &str, password: &str) -> Account {
    Account {
        user: user.into(),
        host: "%".into(),
        plugin: plugin.into(),
        auth_string: hash_password(plugin, password).unwrap().into_bytes(),
        ..Account::default()
    }
}

fn auth(keys: Option<RsaKeys>) -> Authenticator {
    let locked = Account {
        locked: true,
        ..account("locked", NATIVE_PASSWORD, "pw")
    };
    let odd = Account {
        plugin: "auth_socket".into(),
        ..account("odd", NATIVE_PASSWORD, "")
    };
    let accounts = vec![
        account("nat", NATIVE_PASSWORD, "pw"),
        account("sha", CACHING_SHA2_PASSWORD, "pw"),
        account("free", CACHING_SHA2_PASSWORD, ""),
        account("nfree", NATIVE_PASSWORD, ""),
        locked,
        odd,
    ];
    Authenticator::new("x".into(), Arc::new(Accounts(accounts)), None, keys)
}

const SALT_1: [u8; SALT] = [7; SALT];

fn begin(auth: &Authenticator, user: &str, plugin: &str, answer: &[u8]) -> (Exchange, Outcome) {
    Exchange::begin(
        auth,
        user,
        Peer::Local,
        Some(plugin.as_bytes()),
        answer,
        SALT_1,
    )
}

fn accepted(o: &Outcome) -> bool {
    matches!(o, Outcome::Accepted { .. })
}

fn denied(o: &Outcome) -> bool {
    matches!(o, Outcome::Denied { .. })
}

#[test]
fn native_checks_directly_and_after_a_switch() {
    let auth = auth(None);
    let answer = scramble::native_answer(b"pw", &SALT_1);
    assert!(accepted(&begin(&auth, "nat", NATIVE_PASSWORD, &answer).1));
    assert!(denied(&begin(&auth, "nat", NATIVE_PASSWORD, &[1; 20]).1));
    assert!(accepted(&begin(&auth, "nfree", NATIVE_PASSWORD, b"").1));
    assert!(matches!(
        begin(&auth, "locked", NATIVE_PASSWORD, &answer).1,
        Outcome::Locked
    ));
    let (mut e, o) = begin(&auth, "nat", CACHING_SHA2_PASSWORD, &[0; 32]);
    let Outcome::Switch { plugin, salt } = o else {
        panic!("{o:?}")
    };
    assert_eq!(plugin, NATIVE_PASSWORD);
    assert_ne!(salt, SALT_1, "a new challenge");
    let answer = scramble::native_answer(b"pw", &salt);
    assert!(accepted(&e.answer(&auth, &answer, false)));
}

#[test]
fn native_challenges_a_client_without_an_answer() {
    let auth = auth(None);
    let (mut e, o) = begin(&auth, "nat", NATIVE_PASSWORD, b"");
    let Outcome::Switch { plugin, salt } = o else {
        panic!("{o:?}")
    };
    assert_eq!(plugin, NATIVE_PASSWORD);
    let answer = scramble::native_answer(b"pw", &salt);
    assert!(accepted(&e.answer(&auth, &answer, false)));
    let (mut e, _) = begin(&auth, "nat", NATIVE_PASSWORD, b"");
    assert!(denied(&e.answer(&auth, b"", false)));
}

#[test]
fn sha2_full_then_fast() {
    let auth = auth(None);
    let answer = scramble::sha2_answer(b"pw", &SALT_1);
    let (mut e, o) = begin(&auth, "sha", CACHING_SHA2_PASSWORD, &answer);
    assert!(matches!(o, Outcome::More(m) if m == [FULL_AUTH]));
    assert!(accepted(&e.answer(&auth, b"pw\0", true)));
    // Now cached: one round.
    let (_, o) = begin(&auth, "sha", CACHING_SHA2_PASSWORD, &answer);
    assert!(matches!(o, Outcome::Accepted { more: Some(m), .. } if m == [FAST_AUTH_OK]));
    // After a wrong answer the full password is requested, and it is rejected.
    let wrong = scramble::sha2_answer(b"no", &SALT_1);
    let (mut e, o) = begin(&auth, "sha", CACHING_SHA2_PASSWORD, &wrong);
    assert!(matches!(o, Outcome::More(_)));
    assert!(denied(&e.answer(&auth, b"no\0", true)));
}

#[test]
fn empty_passwords_are_their_own_case() {
    let auth = auth(None);
    assert!(accepted(
        &begin(&auth, "free", CACHING_SHA2_PASSWORD, b"").1
    ));
    assert!(accepted(
        &begin(&auth, "free", CACHING_SHA2_PASSWORD, &[0]).1
    ));
    assert!(denied(&begin(&auth, "sha", CACHING_SHA2_PASSWORD, b"").1));
    // A password where there is none does not let in.
    let (mut e, _) = begin(&auth, "free", CACHING_SHA2_PASSWORD, &[3; 32]);
    assert!(denied(&e.answer(&auth, b"pw\0", true)));
}

#[test]
fn unknown_users_take_the_same_steps() {
    let auth = auth(None);
    for user in ["stranger", "odd", "sha"] {
        let (mut e, o) = begin(&auth, user, CACHING_SHA2_PASSWORD, &[3; 32]);
        assert!(matches!(o, Outcome::More(m) if m == [FULL_AUTH]), "{user}");
        assert!(denied(&e.answer(&auth, b"wrong\0", true)), "{user}");
        assert!(denied(&begin(&auth, user, CACHING_SHA2_PASSWORD, b"").1));
    }
}

#[test]
fn in_the_open_only_the_key_helps() {
    let dir = tempfile::tempdir().unwrap();
    let with_key = auth(Some(RsaKeys::load_or_generate(dir.path()).unwrap()));
    for (user, right) in [("sha", true), ("stranger", false)] {
        let (mut e, _) = begin(&with_key, user, CACHING_SHA2_PASSWORD, &[3; 32]);
        let Outcome::More(pem) = e.answer(&with_key, &[REQUEST_KEY], false) else {
            panic!("no key")
        };
        let mut password = *b"pw\0";
        password.iter_mut().zip(SALT_1).for_each(|(b, s)| *b ^= s);
        let encrypted = crate::net::auth::keys::encrypt_for_test(&pem, &password);
        let o = e.answer(&with_key, &encrypted, false);
        assert_eq!(accepted(&o), right, "{user}");
    }
    // Readable, or without a key on the server: refused.
    let (mut e, _) = begin(&with_key, "sha", CACHING_SHA2_PASSWORD, &[3; 32]);
    assert!(denied(&e.answer(&with_key, b"pw\0", false)));
    let without = auth(None);
    let (mut e, _) = begin(&without, "sha", CACHING_SHA2_PASSWORD, &[3; 32]);
    assert!(denied(&e.answer(&without, &[REQUEST_KEY], false)));
}
