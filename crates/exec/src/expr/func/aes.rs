//! AES_ENCRYPT and AES_DECRYPT (FIPS 197, with the modes of NIST SP 800-38A) under
//! `block_encryption_mode`, with the given key or one derived from it (`key_derivation`), and
//! RANDOM_BYTES.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use nfold_plan::expr::{Coercibility, Expr, ExprType};
use nfold_plan::func::Infer;
use nfold_types::{CollationId, ErrorCode, SqlError, Value};

use super::builtin::{Evaluated, Func, Inferred, Pace, arg, func, volatile};
use super::key_derivation::derived;
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("aes_encrypt", (2, 6), infer_bytes, |cx, a, _| {
        run(cx, a, "aes_encrypt", encrypt)
    }),
    func("aes_decrypt", (2, 6), infer_decrypted, |cx, a, _| {
        run(cx, a, "aes_decrypt", decrypt)
    }),
    volatile(func("random_bytes", (1, 1), infer_random, eval_random)),
];

const BLOCK: usize = 16;
type Block = [u8; BLOCK];

fn binary(bytes: u64) -> ExprType {
    ExprType::string(bytes, CollationId::BINARY, Coercibility::Coercible, true)
}

fn infer_bytes(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let bytes = args[0].ty.byte_length();
    Ok(binary((bytes / BLOCK as u64 + 1) * BLOCK as u64))
}

fn infer_decrypted(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(binary(args[0].ty.max_length()))
}

fn infer_random(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(binary(1024))
}

fn eval_random<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let length = arg!(cx.int(&args[0]));
    let out_of_range = || {
        let what = (&"length", &"random_bytes");
        SqlError::new(ErrorCode::ER_DATA_OUT_OF_RANGE, &[what.0, what.1])
    };
    if !(1..=1024).contains(&length) {
        return Err(out_of_range());
    }
    let mut out = vec![0; length as usize];
    getrandom::fill(&mut out).map_err(|e| {
        SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, format!("no random bytes: {e}"))
    })?;
    Ok(Val::string(out))
}

/// A cipher with its key.
enum Cipher {
    Short(Aes128),
    Middle(Aes192),
    Long(Aes256),
}

impl Cipher {
    /// A key of any length is folded into `bits` bits by XOR.
    fn new(cx: &EvalCx<'_>, bits: usize, key: &[u8]) -> Result<Cipher, SqlError> {
        let mut folded = [0u8; 32];
        let mut pace = Pace::new(cx);
        for piece in key.chunks(bits / 8) {
            pace.step()?;
            folded.iter_mut().zip(piece).for_each(|(f, b)| *f ^= b);
        }
        let mut short = [0u8; 16];
        short.copy_from_slice(&folded[..16]);
        let mut middle = [0u8; 24];
        middle.copy_from_slice(&folded[..24]);
        Ok(match bits {
            128 => Cipher::Short(Aes128::new(&Array(short))),
            192 => Cipher::Middle(Aes192::new(&Array(middle))),
            _ => Cipher::Long(Aes256::new(&Array(folded))),
        })
    }

    fn forward(&self, block: &Block) -> Block {
        let mut block = Array(*block);
        match self {
            Cipher::Short(c) => c.encrypt_block(&mut block),
            Cipher::Middle(c) => c.encrypt_block(&mut block),
            Cipher::Long(c) => c.encrypt_block(&mut block),
        }
        block.0
    }

    fn backward(&self, block: &Block) -> Block {
        let mut block = Array(*block);
        match self {
            Cipher::Short(c) => c.decrypt_block(&mut block),
            Cipher::Middle(c) => c.decrypt_block(&mut block),
            Cipher::Long(c) => c.decrypt_block(&mut block),
        }
        block.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Ecb,
    Cbc,
    /// Cipher feedback with a shift of this many bits.
    Cfb(u8),
    Ofb,
}

/// Parses a mode such as `aes-128-ecb`.
fn read_mode(name: &str) -> Option<(usize, Mode)> {
    let mut parts = name.split('-').skip(1);
    let bits = parts.next()?.parse().ok()?;
    let mode = match parts.next()? {
        "ecb" => Mode::Ecb,
        "cbc" => Mode::Cbc,
        "cfb1" => Mode::Cfb(1),
        "cfb8" => Mode::Cfb(8),
        "cfb128" => Mode::Cfb(128),
        "ofb" => Mode::Ofb,
        _ => return None,
    };
    Some((bits, mode))
}

fn run<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    name: &'static str,
    f: fn(&EvalCx<'_>, &Cipher, Mode, Block, &[u8]) -> Result<Option<Vec<u8>>, SqlError>,
) -> Evaluated<'a> {
    let Value::Bytes(setting) = cx.env().sysvar(None, "block_encryption_mode")? else {
        return Ok(Val::Null);
    };
    let setting = String::from_utf8_lossy(&setting).to_lowercase();
    let Some((bits, mode)) = read_mode(&setting) else {
        return Err(SqlError::not_supported(format_args!(
            "block_encryption_mode {setting}"
        )));
    };
    let mut iv = [0; BLOCK];
    let derivation = args.get(3..).unwrap_or_default();
    match (mode, args.get(2)) {
        (Mode::Ecb, None) => {}
        (Mode::Ecb, Some(_)) if !derivation.is_empty() => {}
        (Mode::Ecb, Some(_)) => cx.warn(ErrorCode::WARN_OPTION_IGNORED, &[&"IV"]),
        (_, None) => {
            return Err(SqlError::new(
                ErrorCode::ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT,
                &[&name],
            ));
        }
        (_, Some(given)) => {
            let given = cx.bytes(given)?.unwrap_or_default();
            let Some(start) = given.first_chunk::<BLOCK>() else {
                return Err(SqlError::new(
                    ErrorCode::ER_AES_INVALID_IV,
                    &[&name, &BLOCK],
                ));
            };
            iv = *start;
        }
    }
    let text = arg!(cx.bytes(&args[0]));
    let key = arg!(cx.bytes(&args[1]));
    let key = match derivation {
        [] => key,
        options => derived(cx, options, &key, bits / 8)?.into(),
    };
    // MySQL says nothing of the key of AES_DECRYPT.
    if key.len() > bits / 8 && name == "aes_encrypt" {
        cx.warn(ErrorCode::WARN_AES_KEY_SIZE, &[&(bits / 8)]);
    }
    let cipher = Cipher::new(cx, bits, &key)?;
    Ok(f(cx, &cipher, mode, iv, &text)?.map_or(Val::Null, Val::string))
}

fn xor(a: &Block, b: &Block) -> Block {
    std::array::from_fn(|i| a[i] ^ b[i])
}

fn encrypt(
    cx: &EvalCx<'_>,
    cipher: &Cipher,
    mode: Mode,
    iv: Block,
    text: &[u8],
) -> Result<Option<Vec<u8>>, SqlError> {
    if !matches!(mode, Mode::Ecb | Mode::Cbc) {
        return stream(cx, cipher, mode, iv, text, true).map(Some);
    }
    // PKCS #7: each padding byte holds the number of padding bytes.
    let (whole, rest) = text.as_chunks::<BLOCK>();
    let mut end = [(BLOCK - rest.len()) as u8; BLOCK];
    end[..rest.len()].copy_from_slice(rest);
    let mut last = iv;
    let mut out = Vec::with_capacity(text.len() - rest.len() + BLOCK);
    let mut pace = Pace::new(cx);
    for block in whole.iter().chain([&end]) {
        pace.step()?;
        let block = if mode == Mode::Cbc {
            xor(block, &last)
        } else {
            *block
        };
        last = cipher.forward(&block);
        out.extend_from_slice(&last);
    }
    Ok(Some(out))
}

/// `None` if the input is no ciphertext, or not one of this key.
fn decrypt(
    cx: &EvalCx<'_>,
    cipher: &Cipher,
    mode: Mode,
    iv: Block,
    text: &[u8],
) -> Result<Option<Vec<u8>>, SqlError> {
    if !matches!(mode, Mode::Ecb | Mode::Cbc) {
        return stream(cx, cipher, mode, iv, text, false).map(Some);
    }
    if text.is_empty() || !text.len().is_multiple_of(BLOCK) {
        return Ok(None);
    }
    let mut last = iv;
    let mut out = Vec::with_capacity(text.len());
    let mut pace = Pace::new(cx);
    for block in text.as_chunks::<BLOCK>().0 {
        pace.step()?;
        let mut plain = cipher.backward(block);
        if mode == Mode::Cbc {
            plain = xor(&plain, &last);
        }
        last = *block;
        out.extend_from_slice(&plain);
    }
    Ok(without_fill(out))
}

/// Removes the padding of the last block.
fn without_fill(mut out: Vec<u8>) -> Option<Vec<u8>> {
    let fill = usize::from(*out.last()?);
    let rest = out.len().checked_sub(fill)?;
    let whole = (1..=BLOCK).contains(&fill) && out[rest..].iter().all(|b| usize::from(*b) == fill);
    whole.then(|| {
        out.truncate(rest);
        out
    })
}

/// The stream modes, whose output is as long as the text.
fn stream(
    cx: &EvalCx<'_>,
    cipher: &Cipher,
    mode: Mode,
    iv: Block,
    text: &[u8],
    forward: bool,
) -> Result<Vec<u8>, SqlError> {
    let mut register = iv;
    let mut pace = Pace::new(cx);
    let mut out = Vec::with_capacity(text.len());
    match mode {
        Mode::Cfb(1) => {
            for byte in text {
                cx.checkpoint(200)?;
                let mut made = 0;
                for bit in (0..8).rev() {
                    let given = byte >> bit & 1;
                    let result = given ^ cipher.forward(&register)[0] >> 7;
                    let fed = if forward { result } else { given };
                    register = (u128::from_be_bytes(register) << 1 | u128::from(fed)).to_be_bytes();
                    made = made << 1 | result;
                }
                out.push(made);
            }
        }
        Mode::Cfb(8) => {
            for byte in text {
                pace.step()?;
                let result = byte ^ cipher.forward(&register)[0];
                let fed = if forward { result } else { *byte };
                register = (u128::from_be_bytes(register) << 8 | u128::from(fed)).to_be_bytes();
                out.push(result);
            }
        }
        _ => {
            for block in text.chunks(BLOCK) {
                pace.step()?;
                let key = cipher.forward(&register);
                let result: Vec<u8> = block.iter().zip(&key).map(|(a, b)| a ^ b).collect();
                let fed: &[u8] = match (mode, forward) {
                    (Mode::Ofb, _) => &key,
                    (_, true) => &result,
                    (_, false) => block,
                };
                register[..fed.len().min(BLOCK)].copy_from_slice(&fed[..fed.len().min(BLOCK)]);
                out.extend_from_slice(&result);
            }
        }
    }
    Ok(out)
}
