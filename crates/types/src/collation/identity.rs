//! Identity bytes: equal exactly if strings compare as equal. They are cheaper than sort keys, but
//! do not sort. They are never stored.
//!
//! # Picture
//! ```text
//! 01 folded characters   utf8mb4_0900_ai_ci, all of whose weights are those of ASCII characters: one byte each
//! 02 sort key            any other string, any other collation
//! ```
//! A string of visible ASCII characters needs no table: apart from the case of letters, different
//! characters have different weights. For any other string the sort key is built, and converted
//! back to characters if it consists of their codes only.

use super::keys::UcaCodes;
use super::weights::UCA_0900;
use super::{Algorithm, Collation};

const FOLDED: u8 = 1;
const KEY: u8 = 2;

/// In each byte of a word.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

const HIGH: u64 = each(0x80);

/// Converts eight characters from 0x20 to 0x7E to lower case. Other characters set the high bit of
/// a byte in the result.
#[inline(always)]
fn fold(word: u64) -> (u64, u64) {
    let below = word.wrapping_sub(each(0x20)) & !word;
    let above = word.wrapping_add(each(0x01)) | word;
    // No sum reaches beyond its byte: characters are below 0x7F.
    let from_a = word.wrapping_add(each(0x80 - b'A'));
    let behind_z = word.wrapping_add(each(0x7F - b'Z'));
    (
        word | (from_a & !behind_z & HIGH) >> 2,
        (below | above) & HIGH,
    )
}

/// Appends the string in lower case. Returns false, and appends nothing, if it has characters other
/// than visible ASCII.
#[inline]
fn push_folded(s: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + s.len(), 0);
    let (from, from_rest) = s.as_chunks::<8>();
    let (to, to_rest) = out[start..].as_chunks_mut::<8>();
    let mut others = 0;
    for (to, from) in to.iter_mut().zip(from) {
        let (word, other) = fold(u64::from_le_bytes(*from));
        *to = word.to_le_bytes();
        others |= other;
    }
    let mut last = [b' '; 8];
    last[..from_rest.len()].copy_from_slice(from_rest);
    let (word, other) = fold(u64::from_le_bytes(last));
    to_rest.copy_from_slice(&word.to_le_bytes()[..to_rest.len()]);
    let folded = others | other == 0;
    if !folded {
        out.truncate(start);
    }
    folded
}

/// For each code, the last ASCII character that has it (the lower-case letter); 0: none.
const fn characters(codes: &UcaCodes) -> [u8; 256] {
    let (mut of, mut c) = ([0; 256], 0);
    while c < 128 {
        if codes.ascii[c] != 0 {
            of[codes.ascii[c] as usize] = c as u8;
        }
        c += 1;
    }
    of
}

static CHARACTERS: [u8; 256] = characters(&UCA_0900.codes);

impl Collation {
    /// Appends bytes that are equal exactly if strings compare as equal. One may be a prefix of
    /// another.
    pub fn identity(&self, s: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        if !matches!(self.kind, Algorithm::Uca0900(1)) {
            out.push(KEY);
            return self.sort_key(s, out);
        }
        out.push(FOLDED);
        if push_folded(s, out) {
            return;
        }
        out.truncate(start);
        out.push(KEY);
        self.sort_key(s, out);
        let key = &mut out[start..];
        if key[1..]
            .iter()
            .all(|&code| CHARACTERS[usize::from(code)] != 0)
        {
            key[0] = FOLDED;
            for code in &mut key[1..] {
                *code = CHARACTERS[usize::from(*code)];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CollationId;

    #[test]
    fn visible_characters_are_their_own() {
        let c = CollationId::UTF8MB4_0900_AI_CI.known();
        for x in 0x20..0x7F_u8 {
            for len in [1, 8, 9, 15] {
                let s = vec![x; len];
                let mut out = Vec::new();
                assert!(push_folded(&s, &mut out));
                assert_eq!(out, s.to_ascii_lowercase());
                let mut key = Vec::new();
                c.sort_key(&s, &mut key);
                let back: Vec<u8> = key.iter().map(|k| CHARACTERS[usize::from(*k)]).collect();
                assert_eq!(back, out, "{x}");
            }
        }
        for x in (0..0x20).chain(0x7F..=0xFF) {
            for at in 0..11 {
                let mut s = *b"some words.";
                s[at] = x;
                assert!(!push_folded(&s, &mut Vec::new()), "{x} at {at}");
            }
        }
    }
}
