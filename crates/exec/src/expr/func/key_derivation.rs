//! The key derivation functions of AES_ENCRYPT and AES_DECRYPT: HKDF (RFC 5869) and PBKDF2
//! (RFC 8018), both with HMAC-SHA-512.

use std::borrow::Cow;

use aws_lc_rs::hkdf::{self, HKDF_SHA512, Salt};
use aws_lc_rs::hmac::{self, HMAC_SHA512};
use nfold_plan::expr::Expr;
use nfold_types::{ErrorCode, SqlError};

use crate::expr::eval::EvalCx;

/// Longer salts and infos are refused.
const OPTION_BYTES: usize = 256;
/// The same for a number of iterations.
const ITERATIONS_BYTES: usize = 6;
const ITERATIONS: std::ops::RangeInclusive<u32> = 1000..=65_535;
const ITERATIONS_DEFAULT: u32 = 1000;

/// The work of computing one HMAC.
const HMAC_WORK: u64 = 1000;

/// The length of a key, for HKDF.
struct KeyLength(usize);

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        self.0
    }
}

/// Derives a key of `length` bytes. `options`: the name of the function, the salt, and the info of
/// HKDF or the iterations of PBKDF2.
///
/// # Errors
/// 3235 for an unknown function, 3236 for too few or too many iterations, 3238 for an option that
/// is too long or NULL.
pub(super) fn derived<'a>(
    cx: &EvalCx<'a>,
    options: &'a [Expr],
    secret: &[u8],
    length: usize,
) -> Result<Vec<u8>, SqlError> {
    let text = |n: usize, bytes: usize| match options.get(n) {
        None => Ok(None),
        Some(e) => option(cx, e, bytes).map(Some),
    };
    let name = text(0, OPTION_BYTES)?.unwrap_or_default();
    let salt = text(1, OPTION_BYTES)?.unwrap_or_default();
    match &*name {
        b"hkdf" => {
            let info = text(2, OPTION_BYTES)?.unwrap_or_default();
            hkdf_key(&salt, secret, &info, length)
        }
        b"pbkdf2_hmac" => {
            let iterations = text(2, ITERATIONS_BYTES)?;
            pbkdf2_key(cx, &salt, secret, iterations_of(iterations)?, length)
        }
        _ => Err(SqlError::new(ErrorCode::ER_AES_INVALID_KDF_NAME, &[])),
    }
}

fn option<'a>(cx: &EvalCx<'a>, e: &'a Expr, bytes: usize) -> Result<Cow<'a, [u8]>, SqlError> {
    let text = cx.bytes(e)?.filter(|text| text.len() < bytes);
    text.ok_or_else(|| SqlError::new(ErrorCode::ER_AES_INVALID_KDF_OPTION_SIZE, &[&bytes]))
}

fn iterations_of(text: Option<Cow<'_, [u8]>>) -> Result<u32, SqlError> {
    let Some(text) = text else {
        return Ok(ITERATIONS_DEFAULT);
    };
    let number = std::str::from_utf8(&text).ok().and_then(|t| t.parse().ok());
    let allowed = number.filter(|n| ITERATIONS.contains(n));
    allowed.ok_or_else(|| SqlError::new(ErrorCode::ER_AES_INVALID_KDF_ITERATIONS, &[]))
}

fn hkdf_key(salt: &[u8], secret: &[u8], info: &[u8], length: usize) -> Result<Vec<u8>, SqlError> {
    let mut key = vec![0; length];
    let secret = Salt::new(HKDF_SHA512, salt).extract(secret);
    let info = [info];
    let expanded = secret.expand(&info, KeyLength(length));
    let filled = expanded.and_then(|key_material| key_material.fill(&mut key));
    filled
        .map_err(|e| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, format!("hkdf: {e}")))?;
    Ok(key)
}

/// The first block of PBKDF2, of which an AES key is a prefix.
fn pbkdf2_key(
    cx: &EvalCx<'_>,
    salt: &[u8],
    secret: &[u8],
    iterations: u32,
    length: usize,
) -> Result<Vec<u8>, SqlError> {
    let password = hmac::Key::new(HMAC_SHA512, secret);
    let mut last = hmac::sign(&password, &[salt, &1u32.to_be_bytes()].concat());
    let mut key = last.as_ref()[..length].to_vec();
    for _ in 1..iterations {
        cx.checkpoint(HMAC_WORK)?;
        last = hmac::sign(&password, last.as_ref());
        key.iter_mut().zip(last.as_ref()).for_each(|(k, b)| *k ^= b);
    }
    Ok(key)
}
