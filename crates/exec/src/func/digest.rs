//! MD5 (RFC 1321), SHA-1 and SHA-2 (FIPS 180-4), CRC-32 (ISO 3309). They serve applications' checksums; no secret depends on them.

use std::sync::LazyLock;

use ethnum::U256;
use nfold_plan::expr::{Expr, ExprKind, ExprType};
use nfold_plan::func::{Infer, any_nullable};
use nfold_types::ErrorCode;

use super::codes::hex_of;
use super::{Evaluated, Func, Inferred, arg, func};
use crate::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func(
        "md5",
        (1, 1),
        |cx, _| infer_hex(cx, 32),
        |cx, a, _| {
            let text = arg!(cx.bytes(&a[0]));
            Ok(Val::string(hex_of(&md5(&text), LOWER)))
        },
    ),
    func("sha", (1, 1), |cx, _| infer_hex(cx, 40), eval_sha1),
    func("sha1", (1, 1), |cx, _| infer_hex(cx, 40), eval_sha1),
    func("sha2", (2, 2), infer_sha2, eval_sha2),
    func(
        "crc32",
        (1, 1),
        |_, a| Ok(ExprType::ubigint(any_nullable(a)).with_width(10)),
        |cx, a, _| {
            let text = arg!(cx.bytes(&a[0]));
            Ok(Val::UInt(u64::from(crc32(&text))))
        },
    ),
];

const LOWER: &[u8; 16] = b"0123456789abcdef";

fn infer_hex(cx: &Infer<'_>, chars: u64) -> Inferred {
    Ok(cx.connection_string(chars))
}

fn infer_sha2(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(cx.connection_string(match args[1].kind {
        ExprKind::Const(nfold_types::Value::Int(224)) => 56,
        ExprKind::Const(nfold_types::Value::Int(256 | 0)) => 64,
        ExprKind::Const(nfold_types::Value::Int(384)) => 96,
        _ => 128,
    }))
}

fn eval_sha1<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.bytes(&args[0]));
    Ok(Val::string(hex_of(&sha1(&text), LOWER)))
}

fn eval_sha2<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let (text, bits) = (cx.bytes(&args[0])?, cx.int(&args[1])?);
    let valid = matches!(bits, Some(0 | 224 | 256 | 384 | 512));
    if !valid {
        cx.warn(ErrorCode::ER_WRONG_PARAMETERS_TO_NATIVE_FCT, &[&"sha2"]);
    }
    let (Some(text), Some(bits), true) = (text, bits, valid) else {
        return Ok(Val::Null);
    };
    let digest = match bits {
        224 => sha256(&text, &CONSTANTS.iv224)[..28].to_vec(),
        0 | 256 => sha256(&text, &CONSTANTS.iv256).to_vec(),
        384 => sha512(&text, &CONSTANTS.iv384)[..48].to_vec(),
        _ => sha512(&text, &CONSTANTS.iv512).to_vec(),
    };
    Ok(Val::string(hex_of(&digest, LOWER)))
}

/// The message, a 1 bit, zeros, and its length in bits, filled up to whole blocks.
fn padded(message: &[u8], block: usize, big_endian: bool) -> Vec<u8> {
    let length_bytes = block / 8;
    let mut out = message.to_vec();
    out.push(0x80);
    while out.len() % block != block - length_bytes {
        out.push(0);
    }
    let bits = (message.len() as u64).wrapping_mul(8);
    out.resize(out.len() + length_bytes - 8, 0);
    out.extend_from_slice(&if big_endian {
        bits.to_be_bytes()
    } else {
        bits.to_le_bytes()
    });
    out
}

fn md5(message: &[u8]) -> [u8; 16] {
    const SHIFTS: [[u32; 4]; 4] = [
        [7, 12, 17, 22],
        [5, 9, 14, 20],
        [4, 11, 16, 23],
        [6, 10, 15, 21],
    ];
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded(message, 64, false).chunks_exact(64) {
        let word = |i: usize| {
            u32::from_le_bytes([
                block[4 * i],
                block[4 * i + 1],
                block[4 * i + 2],
                block[4 * i + 3],
            ])
        };
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64 {
            let (f, g) = match i / 16 {
                0 => (b & c | !b & d, i),
                1 => (d & b | !d & c, (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), 7 * i % 16),
            };
            let sum = a
                .wrapping_add(f)
                .wrapping_add(CONSTANTS.md5[i])
                .wrapping_add(word(g));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[i / 16][i % 4]));
        }
        for (s, v) in state.iter_mut().zip([a, b, c, d]) {
            *s = s.wrapping_add(v);
        }
    }
    let mut out = [0; 16];
    for (place, word) in out.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    out
}

fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state = [
        0x6745_2301u32,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    for block in padded(message, 64, true).chunks_exact(64) {
        let mut w = [0u32; 80];
        for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for i in 16..80 {
            w[i] = (w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (i, w) in w.iter().enumerate() {
            let (f, k) = match i / 20 {
                0 => (b & c | !b & d, 0x5a82_7999u32),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let next = a
                .rotate_left(5)
                .wrapping_add(f)
                .wrapping_add(e)
                .wrapping_add(k)
                .wrapping_add(*w);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (s, v) in state.iter_mut().zip([a, b, c, d, e]) {
            *s = s.wrapping_add(v);
        }
    }
    let mut out = [0; 20];
    for (place, word) in out.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    out
}

/// One SHA-2 function: they differ in the word, the number of rounds and the rotations.
macro_rules! sha2_family {
    ($name:ident, $word:ty, $bytes:literal, $rounds:literal, $k:ident, $big0:expr, $big1:expr, $small0:expr, $small1:expr) => {
        fn $name(message: &[u8], iv: &[$word; 8]) -> [u8; $bytes * 8] {
            let mut state = *iv;
            let rotations = |x: $word, r: [u32; 3]| {
                x.rotate_right(r[0]) ^ x.rotate_right(r[1]) ^ x.rotate_right(r[2])
            };
            let shifted =
                |x: $word, r: [u32; 3]| x.rotate_right(r[0]) ^ x.rotate_right(r[1]) ^ (x >> r[2]);
            for block in padded(message, $bytes * 16, true).chunks_exact($bytes * 16) {
                let mut w = [0 as $word; $rounds];
                for (word, bytes) in w.iter_mut().zip(block.chunks_exact($bytes)) {
                    *word = bytes.iter().fold(0, |n, b| n << 8 | <$word>::from(*b));
                }
                for i in 16..$rounds {
                    w[i] = w[i - 16]
                        .wrapping_add(shifted(w[i - 15], $small0))
                        .wrapping_add(w[i - 7])
                        .wrapping_add(shifted(w[i - 2], $small1));
                }
                let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
                for i in 0..$rounds {
                    let t1 = h
                        .wrapping_add(rotations(e, $big1))
                        .wrapping_add(e & f ^ !e & g)
                        .wrapping_add(CONSTANTS.$k[i])
                        .wrapping_add(w[i]);
                    let t2 = rotations(a, $big0).wrapping_add(a & b ^ a & c ^ b & c);
                    (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
                    (d, c, b, a) = (c, b, a, t1.wrapping_add(t2));
                }
                for (s, v) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
                    *s = s.wrapping_add(v);
                }
            }
            let mut out = [0; $bytes * 8];
            for (place, word) in out.chunks_exact_mut($bytes).zip(state) {
                place.copy_from_slice(&word.to_be_bytes());
            }
            out
        }
    };
}

sha2_family!(
    sha256,
    u32,
    4,
    64,
    k256,
    [2, 13, 22],
    [6, 11, 25],
    [7, 18, 3],
    [17, 19, 10]
);
sha2_family!(
    sha512,
    u64,
    8,
    80,
    k512,
    [28, 34, 39],
    [14, 18, 41],
    [1, 8, 7],
    [19, 61, 6]
);

/// The constants of the standards, from their definitions: sines for MD5; for SHA-2 the first bits of the fractions of the roots of
/// the first primes (cube roots for the rounds, square roots for the initial states).
struct Constants {
    md5: [u32; 64],
    k256: [u32; 64],
    k512: [u64; 80],
    iv224: [u32; 8],
    iv256: [u32; 8],
    iv384: [u64; 8],
    iv512: [u64; 8],
}

static CONSTANTS: LazyLock<Constants> = LazyLock::new(|| {
    let primes: Vec<u32> = (2u32..)
        .filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0))
        .take(80)
        .collect();
    let k512: [u64; 80] = std::array::from_fn(|i| root_fraction(primes[i], 3));
    let square: [u64; 16] = std::array::from_fn(|i| root_fraction(primes[i], 2));
    Constants {
        md5: std::array::from_fn(|i| (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32),
        k256: std::array::from_fn(|i| (k512[i] >> 32) as u32),
        k512,
        iv224: std::array::from_fn(|i| square[i + 8] as u32),
        iv256: std::array::from_fn(|i| (square[i] >> 32) as u32),
        iv384: std::array::from_fn(|i| square[i + 8]),
        iv512: std::array::from_fn(|i| square[i]),
    }
});

/// The first 64 bits of the fraction of the `power`th root of `n`, by bisection in 256-bit integers.
fn root_fraction(n: u32, power: u32) -> u64 {
    let target = U256::from(n) << (64 * power);
    let (mut low, mut high) = (U256::ZERO, U256::from(32u32) << 64u32);
    while high - low > U256::ONE {
        let mid: U256 = (low + high) >> 1u32;
        if mid.pow(power) <= target {
            low = mid;
        } else {
            high = mid;
        }
    }
    low.as_u64()
}

static CRC_TABLE: LazyLock<[u32; 256]> = LazyLock::new(|| {
    std::array::from_fn(|i| {
        (0..8).fold(i as u32, |c, _| {
            if c & 1 == 1 {
                c >> 1 ^ 0xEDB8_8320
            } else {
                c >> 1
            }
        })
    })
});

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |c, b| {
        c >> 8 ^ CRC_TABLE[usize::from(c as u8 ^ b)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(digest: &[u8]) -> String {
        String::from_utf8(hex_of(digest, LOWER)).unwrap()
    }

    /// The examples of the standards.
    #[test]
    fn known_digests() {
        assert_eq!(text(&md5(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(
            text(&md5(b"message digest")),
            "f96b697d7cb7938d525a2f31aaf161d0"
        );
        assert_eq!(
            text(&sha1(b"abc")),
            "a9993e364706816aba3e25717850c26c9cd0d89d"
        );
        assert_eq!(
            text(&sha256(b"abc", &CONSTANTS.iv256)),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            text(&sha256(b"abc", &CONSTANTS.iv224)[..28]),
            "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"
        );
        assert_eq!(
            text(&sha512(b"abc", &CONSTANTS.iv512)),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        );
        assert_eq!(text(&sha512(b"abc", &CONSTANTS.iv384)[..6]), "cb00753f45a3");
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    /// Every length around the ends of blocks gives a digest, and no two the same.
    #[test]
    fn lengths_around_blocks() {
        let mut seen = std::collections::HashSet::new();
        for n in 0..300 {
            let message = vec![b'x'; n];
            assert!(seen.insert(md5(&message).to_vec()));
            assert!(seen.insert(sha1(&message).to_vec()));
            assert!(seen.insert(sha512(&message, &CONSTANTS.iv512).to_vec()));
        }
    }
}
