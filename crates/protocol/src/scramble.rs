//! The computations of the two authentication plugins: responses to the challenge, stored formats,
//! hashing of new passwords. Pure functions.
//!
//! # Picture
//! ```text
//! mysql_native_password    stored          "*" + 40 hex digits of SHA1(SHA1(pw))
//!                          response        SHA1(pw) xor SHA1(salt ‖ SHA1(SHA1(pw)))
//! caching_sha2_password    stored          "$A$" + 3 hex digits (rounds / 1000) + "$"
//!                                          + 20 bytes of salt + 43 characters of digest
//!                          fast response   SHA256(pw) xor SHA256(SHA256(SHA256(pw)) ‖ salt)
//! ```
//! The digest of caching_sha2_password is Ulrich Drepper's SHA-crypt (SHA-256), but with a salt of
//! 20 bytes instead of at most 16. The plugin's cache contains SHA256(SHA256(pw)). That suffices to
//! check a fast response, but not to log in.
//!
//! Comparisons take constant time.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};

/// SHA256(SHA256(password)), as stored in the cache of caching_sha2_password.
pub type FastDigest = [u8; 32];

/// The longest password that is hashed with sha256-crypt, in bytes (MySQL's MAX_PLAINTEXT_LENGTH).
pub const MAX_PASSWORD: usize = 256;
/// The bytes of salt in a stored caching_sha2_password string.
pub const STORED_SALT: usize = 20;
const DIGEST_CHARS: usize = 43;
const DEFAULT_ROUNDS: u32 = 5000;

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut c = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    parts.iter().for_each(|p| c.update(p));
    let mut out = [0; 20];
    out.copy_from_slice(c.finish().as_ref());
    out
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut c = Context::new(&SHA256);
    parts.iter().for_each(|p| c.update(p));
    let mut out = [0; 32];
    out.copy_from_slice(c.finish().as_ref());
    out
}

fn xor<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// The client's response under mysql_native_password.
pub fn native_answer(password: &[u8], salt: &[u8]) -> [u8; 20] {
    let stage1 = sha1(&[password]);
    xor(stage1, sha1(&[salt, &sha1(&[&stage1])]))
}

/// Checks a mysql_native_password response against `stored` (`*HEX`, or empty for no password).
pub fn native_check(stored: &[u8], salt: &[u8], answer: &[u8]) -> bool {
    if stored.is_empty() {
        return answer.is_empty();
    }
    let (Some(stage2), Ok(answer)) = (native_stored(stored), <[u8; 20]>::try_from(answer)) else {
        return false;
    };
    let stage1 = xor(answer, sha1(&[salt, &stage2]));
    verify_slices_are_equal(&sha1(&[&stage1]), &stage2).is_ok()
}

fn native_stored(stored: &[u8]) -> Option<[u8; 20]> {
    let hex = stored.strip_prefix(b"*").filter(|h| h.len() == 40)?;
    let mut out = [0; 20];
    for (o, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
        let digit = |b: u8| (b as char).to_digit(16);
        *o = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(out)
}

/// The stored form of a new password under mysql_native_password. An empty password is stored as an
/// empty string.
pub fn native_store(password: &[u8]) -> String {
    if password.is_empty() {
        return String::new();
    }
    let mut out = String::from("*");
    for b in sha1(&[&sha1(&[password])]) {
        out.push_str(&format!("{b:02X}"));
    }
    out
}

/// Whether `stored` has the format of mysql_native_password.
pub fn native_valid(stored: &[u8]) -> bool {
    stored.is_empty() || native_stored(stored).is_some()
}

/// The digest of a password for the cache.
pub fn sha2_fast_digest(password: &[u8]) -> FastDigest {
    sha256(&[&sha256(&[password])])
}

/// The client's fast response under caching_sha2_password.
pub fn sha2_answer(password: &[u8], salt: &[u8]) -> [u8; 32] {
    xor(
        sha256(&[password]),
        sha256(&[&sha2_fast_digest(password), salt]),
    )
}

/// Checks a fast response of caching_sha2_password against the cached digest.
pub fn sha2_fast_check(cached: &FastDigest, salt: &[u8], answer: &[u8]) -> bool {
    let Ok(answer) = <[u8; 32]>::try_from(answer) else {
        return false;
    };
    let stage1 = xor(answer, sha256(&[cached, salt]));
    verify_slices_are_equal(&sha256(&[&stage1]), cached).is_ok()
}

/// Checks a plaintext password against `stored` (`$A$...`, or empty for no password). Takes
/// milliseconds by design.
pub fn sha2_full_check(stored: &[u8], password: &[u8]) -> bool {
    if stored.is_empty() {
        return password.is_empty();
    }
    let Some((rounds, salt, digest)) = sha2_stored(stored) else {
        return false;
    };
    if password.len() > MAX_PASSWORD {
        return false;
    }
    verify_slices_are_equal(&sha256_crypt(password, salt, rounds), digest).is_ok()
}

fn sha2_stored(stored: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let rest = stored.strip_prefix(b"$A$")?;
    let (count, rest) = rest.split_at_checked(3)?;
    let rounds = u32::from_str_radix(std::str::from_utf8(count).ok()?, 16).ok()? * 1000;
    let rest = rest.strip_prefix(b"$")?;
    let (salt, digest) = rest.split_at_checked(STORED_SALT)?;
    (digest.len() == DIGEST_CHARS && rounds >= DEFAULT_ROUNDS).then_some((rounds, salt, digest))
}

/// Whether `stored` has the format of caching_sha2_password.
pub fn sha2_valid(stored: &[u8]) -> bool {
    stored.is_empty() || sha2_stored(stored).is_some()
}

/// The stored form of a new password under caching_sha2_password. An empty password is stored as an
/// empty string. The salt is derived from `random`: as in MySQL, each byte becomes a 7-bit
/// character other than NUL and `$`, so the result is ASCII.
pub fn sha2_store(password: &[u8], random: [u8; STORED_SALT]) -> String {
    if password.is_empty() {
        return String::new();
    }
    let salt = random.map(|b| match b & 0x7f {
        0 | b'$' => 1 + (b >> 7),
        c => c,
    });
    let digest = sha256_crypt(password, &salt, DEFAULT_ROUNDS);
    let text = |b: &[u8]| b.iter().map(|&b| b as char).collect::<String>();
    format!(
        "$A${:03X}${}{}",
        DEFAULT_ROUNDS / 1000,
        text(&salt),
        text(&digest)
    )
}

/// SHA-crypt with SHA-256 (<https://www.akkadia.org/drepper/SHA-crypt.txt>). The numbers below are
/// the steps there.
fn sha256_crypt(password: &[u8], salt: &[u8], rounds: u32) -> [u8; DIGEST_CHARS] {
    // 4-8: B
    let b = sha256(&[password, salt, password]);
    // 1-3, 9-12: A
    let mut ctx = Context::new(&SHA256);
    ctx.update(password);
    ctx.update(salt);
    repeat(&mut ctx, &b, password.len());
    let mut n = password.len();
    while n > 0 {
        ctx.update(if n & 1 == 1 { &b } else { password });
        n >>= 1;
    }
    let a = ctx.finish();
    // 13-16: P
    let mut ctx = Context::new(&SHA256);
    (0..password.len()).for_each(|_| ctx.update(password));
    let p = stretched(ctx.finish().as_ref(), password.len());
    // 17-20: S
    let mut ctx = Context::new(&SHA256);
    (0..16 + usize::from(a.as_ref()[0])).for_each(|_| ctx.update(salt));
    let s = stretched(ctx.finish().as_ref(), salt.len());
    // 21: rounds
    let mut last = [0; 32];
    last.copy_from_slice(a.as_ref());
    let mut line = Vec::with_capacity(2 * p.len() + s.len() + 32);
    for i in 0..rounds {
        line.clear();
        line.extend_from_slice(if i & 1 == 1 { &p } else { &last });
        if i % 3 != 0 {
            line.extend_from_slice(&s);
        }
        if i % 7 != 0 {
            line.extend_from_slice(&p);
        }
        line.extend_from_slice(if i & 1 == 1 { &last } else { &p });
        last.copy_from_slice(digest(&SHA256, &line).as_ref());
    }
    crypt_base64(&last)
}

fn repeat(ctx: &mut Context, block: &[u8; 32], mut n: usize) {
    while n > 0 {
        let k = n.min(32);
        ctx.update(&block[..k]);
        n -= k;
    }
}

fn stretched(block: &[u8], len: usize) -> Vec<u8> {
    block.iter().copied().cycle().take(len).collect()
}

/// Step 22: base64 with the alphabet and byte order of crypt.
fn crypt_base64(d: &[u8; 32]) -> [u8; DIGEST_CHARS] {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut out = [0; DIGEST_CHARS];
    let mut at = 0;
    let mut put = |mut w: u32, n: usize| {
        for _ in 0..n {
            out[at] = ALPHABET[(w & 63) as usize];
            at += 1;
            w >>= 6;
        }
    };
    let word = |a: usize, b: usize, c: usize| {
        u32::from(d[a]) << 16 | u32::from(d[b]) << 8 | u32::from(d[c])
    };
    let (mut a, mut b, mut c) = (0, 10, 20);
    for _ in 0..10 {
        put(word(a, b, c), 4);
        (a, b, c) = (c + 1, a + 1, b + 1);
    }
    put(u32::from(d[31]) << 8 | u32::from(d[30]), 3);
    out
}

/// The password of a full authentication over a connection without TLS: `password`, which ends with
/// a zero byte, xor the salt, encrypted by the server's RSA key. `key` is the PEM text that the
/// server sends. `None` if it is no such key.
pub fn sealed_password(key: &[u8], password: &[u8], salt: &[u8]) -> Option<Vec<u8>> {
    let key = PublicEncryptingKey::from_der(&contents_of_pem(key)?).ok()?;
    let key = OaepPublicEncryptingKey::new(key).ok()?;
    let pairs = password.iter().zip(salt.iter().cycle());
    let masked: Vec<u8> = pairs.map(|(byte, salt)| byte ^ salt).collect();
    let mut sealed = vec![0; key.ciphertext_size()];
    let used = key.encrypt(&OAEP_SHA1_MGF1SHA1, &masked, &mut sealed, None);
    let length = used.ok()?.len();
    sealed.truncate(length);
    Some(sealed)
}

/// The contents of a PEM text.
fn contents_of_pem(text: &[u8]) -> Option<Vec<u8>> {
    Some(pem::parse(text).ok()?.into_contents())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pem_is_base64_between_its_lines() {
        let text = b"-----BEGIN PUBLIC KEY-----\nAAEC\n/w==\n-----END PUBLIC KEY-----\n";
        assert_eq!(contents_of_pem(text), Some(vec![0, 1, 2, 255]));
        assert_eq!(contents_of_pem(b"no key at all"), None);
        assert_eq!(
            contents_of_pem(b"-----BEGIN-----\n!!!!\n-----END-----"),
            None
        );
        assert_eq!(sealed_password(text, b"secret\0", &[1; 20]), None);
    }

    fn unhex(s: &str) -> Vec<u8> {
        (0..s.len() / 2)
            .map(|i| u8::from_str_radix(&s[2 * i..2 * i + 2], 16).unwrap())
            .collect()
    }

    /// Recorded from MySQL 9.7: `SELECT HEX(authentication_string) FROM mysql.user`.
    #[test]
    fn stored_strings_of_mysql_are_accepted() {
        let short = unhex(
            "244124303041246F1A58515743762A4077091C710B03155E4828257559464A41614E4C7166516147624B57544C722E46756F554A786E596C67474170507646666C4678333644",
        );
        assert!(sha2_full_check(&short, b"secret"));
        assert!(!sha2_full_check(&short, b"Secret"));
        // The string contains the number of rounds. MySQL 9.7 wrote 00A (10,000); with 005, the
        // digest does not match.
        let mut other = short.clone();
        other[5] = b'5';
        assert!(!sha2_full_check(&other, b"secret"));
        let long = unhex(
            "24412430304124226E61694F716D446906091747234E4A74502E6C4B44775851377A6F3145743332454768514C34724D66413874436F3079706254412F37755044684B662E38",
        );
        assert!(sha2_full_check(
            &long,
            "a much longer password, more than thirty-two bytes, und Ünïcode".as_bytes()
        ));
    }

    #[test]
    fn native_hash_equals_mysql() {
        // SELECT PASSWORD('password') of MySQL 5.7
        assert_eq!(
            native_store(b"password"),
            "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
        );
        assert_eq!(native_store(b""), "");
    }

    #[test]
    fn empty_passwords_match_only_empty_responses() {
        assert!(native_check(b"", b"salt", b""));
        assert!(!native_check(b"", b"salt", &[0; 20]));
        assert!(sha2_full_check(b"", b""));
        assert!(!sha2_full_check(b"", b"x"));
        let stored = native_store(b"pw");
        assert!(!native_check(stored.as_bytes(), b"salt", b""));
    }

    #[test]
    fn invalid_stored_strings_are_rejected() {
        for stored in [
            &b"*12"[..],
            b"*ZZ70C0C06DEE42FD1618BB99005ADCA2EC9D1E19",
            b"$A$005$short",
            b"$A$zzz$",
            b"plain",
            b"$A$000$1234567890123456789012345678901234567890123456789012345678901234567890",
        ] {
            assert!(!native_check(stored, b"12345678901234567890", &[1; 20]));
            assert!(!sha2_full_check(stored, b"x"));
            assert!(!native_valid(stored) && !sha2_valid(stored));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn stored_string_accepts_only_its_password(pw in proptest::collection::vec(any::<u8>(), 1..80), other in proptest::collection::vec(any::<u8>(), 0..80), salt in any::<[u8; 20]>()) {
            let native = native_store(&pw);
            prop_assert!(native_check(native.as_bytes(), &salt, &native_answer(&pw, &salt)));
            prop_assert_eq!(native_check(native.as_bytes(), &salt, &native_answer(&other, &salt)), pw == other);
            let sha2 = sha2_store(&pw, salt);
            prop_assert!(sha2.is_ascii() && sha2_valid(sha2.as_bytes()) && sha2.len() == 70);
            prop_assert!(sha2_full_check(sha2.as_bytes(), &pw));
            prop_assert_eq!(sha2_full_check(sha2.as_bytes(), &other), pw == other);
            let fast = sha2_fast_digest(&pw);
            prop_assert!(sha2_fast_check(&fast, &salt, &sha2_answer(&pw, &salt)));
            prop_assert_eq!(sha2_fast_check(&fast, &salt, &sha2_answer(&other, &salt)), pw == other);
            prop_assert!(!sha2_fast_check(&fast, &salt, &pw));
        }
    }
}
