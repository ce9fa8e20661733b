//! MD5 (RFC 1321), SHA-1 and SHA-2 (FIPS 180-4) and CRC-32 (ISO 3309). They are for applications'
//! checksums and protect no secret here. Also STATEMENT_DIGEST and
//! STATEMENT_DIGEST_TEXT, which hash and return a statement's normalised text.

use aws_lc_rs::digest::{
    Algorithm, Context, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA224, SHA256, SHA384, SHA512,
};
use fast_md5::Md5;
use nfold_plan::expr::{Coercibility, Expr, ExprKind, ExprType};
use nfold_plan::func::{Infer, any_nullable};
use nfold_sha512::{Hasher, Size};
use nfold_sql::digest::Digested;
use nfold_sql::digest_text::digest_text;
use nfold_sql::lexer::LexMode;
use nfold_sql::parser::{parse_stoppable, syntax_error_at};
use nfold_types::{Checkpoint, CollationId, ErrorCode, SqlError};

use super::builtin::{Evaluated, Func, Inferred, PIECE_BYTES, arg, func};
use super::codes::hex_of;
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func(
        "md5",
        (1, 1),
        |cx, _| infer_hex(cx, 32),
        |cx, a, _| {
            let text = arg!(cx.bytes(&a[0]));
            Ok(Val::string(hex_of(&md5(cx.st.checkpoint, &text)?, LOWER)))
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
            Ok(Val::UInt(u64::from(crc32(cx.st.checkpoint, &text)?)))
        },
    ),
    func("statement_digest", (1, 1), infer_digest, |cx, a, _| {
        let text = arg!(cx.bytes(&a[0]));
        let digest = sha256(cx, normalised(cx, &text)?.as_bytes())?;
        Ok(Val::string(hex_of(digest.as_ref(), LOWER)))
    }),
    func("statement_digest_text", (1, 1), infer_text, |cx, a, _| {
        let text = arg!(cx.bytes(&a[0]));
        Ok(Val::string(normalised(cx, &text)?.into_bytes()))
    }),
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
    Ok(Val::string(hex_of(
        sha(cx.st.checkpoint, &SHA1_FOR_LEGACY_USE_ONLY, &text)?.as_ref(),
        LOWER,
    )))
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
    let checkpoint = cx.st.checkpoint;
    let hash = match bits {
        224 => sha(checkpoint, &SHA224, &text)?.as_ref().to_vec(),
        0 | 256 => sha(checkpoint, &SHA256, &text)?.as_ref().to_vec(),
        384 => sha512(checkpoint, Size::Bits384, &text)?,
        _ => sha512(checkpoint, Size::Bits512, &text)?,
    };
    Ok(Val::string(hex_of(&hash, LOWER)))
}

/// Passes a value to a digest in pieces, with a checkpoint after each. `cost` is the work for each
/// byte.
fn in_pieces(
    checkpoint: &dyn Checkpoint,
    message: &[u8],
    cost: u64,
    mut update: impl FnMut(&[u8]),
) -> Result<(), SqlError> {
    for piece in message.chunks(PIECE_BYTES) {
        update(piece);
        checkpoint.checkpoint(piece.len() as u64 * cost)?;
    }
    Ok(())
}

fn md5(checkpoint: &dyn Checkpoint, message: &[u8]) -> Result<[u8; 16], SqlError> {
    let mut state = Md5::new();
    in_pieces(checkpoint, message, 2, |piece| state.update(piece))?;
    Ok(state.finalize())
}

/// The SHA-256 hash of a text.
fn sha256(cx: &EvalCx<'_>, text: &[u8]) -> Result<Digest, SqlError> {
    sha(cx.st.checkpoint, &SHA256, text)
}

fn sha(
    checkpoint: &dyn Checkpoint,
    algorithm: &'static Algorithm,
    message: &[u8],
) -> Result<Digest, SqlError> {
    let mut state = Context::new(algorithm);
    in_pieces(checkpoint, message, 2, |piece| state.update(piece))?;
    Ok(state.finish())
}

/// A SHA-2 hash of 384 or 512 bits.
fn sha512(checkpoint: &dyn Checkpoint, size: Size, message: &[u8]) -> Result<Vec<u8>, SqlError> {
    let Some(mut state) = Hasher::new(size) else {
        let algorithm = match size {
            Size::Bits384 => &SHA384,
            Size::Bits512 => &SHA512,
        };
        return Ok(sha(checkpoint, algorithm, message)?.as_ref().to_vec());
    };
    in_pieces(checkpoint, message, 2, |piece| state.update(piece))?;
    Ok(state.finish())
}

fn crc32(checkpoint: &dyn Checkpoint, message: &[u8]) -> Result<u32, SqlError> {
    let mut state = crc32fast::Hasher::new();
    in_pieces(checkpoint, message, 1, |piece| state.update(piece))?;
    Ok(state.finalize())
}

/// The maximum length of a digest text in the description of the result, in characters.
const MAX_CHARS: u64 = 1 << 24;

fn infer_digest(cx: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType {
        nullable: true,
        ..cx.connection_string(64)
    })
}

fn infer_text(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    let collation = CollationId::UTF8MB4_0900_AI_CI;
    Ok(ExprType::string(
        MAX_CHARS,
        collation,
        Coercibility::Coercible,
        true,
    ))
}

/// The digest text of `text`, which must be one statement.
///
/// # Errors
/// 3676 with the parser's error.
fn normalised(cx: &EvalCx<'_>, text: &[u8]) -> Result<String, SqlError> {
    let mode = LexMode::default();
    let refused =
        |e: SqlError| SqlError::new(ErrorCode::ER_PARSE_ERROR_IN_DIGEST_FN, &[&e.message]);
    let mut digested = Digested::new();
    digested.read_stoppable(text, mode, cx.st.checkpoint)?;
    parse_stoppable(text, mode, cx.st.checkpoint, &mut Vec::new()).map_err(refused)?;
    match digested.next() {
        Some(next) => Err(refused(syntax_error_at(text, next))),
        None => Ok(digest_text(text, mode)),
    }
}

#[cfg(test)]
mod tests {
    use nfold_types::NoCheckpoint;

    use super::*;

    fn text(digest: &[u8]) -> String {
        String::from_utf8(hex_of(digest, LOWER)).unwrap()
    }

    fn md5_of(message: &[u8]) -> [u8; 16] {
        md5(&NoCheckpoint, message).unwrap()
    }

    fn sha_text(algorithm: &'static Algorithm, message: &[u8]) -> String {
        text(sha(&NoCheckpoint, algorithm, message).unwrap().as_ref())
    }

    /// The examples in the standards.
    #[test]
    fn digests_equal_the_standards_examples() {
        assert_eq!(text(&md5_of(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(
            text(&md5_of(b"message digest")),
            "f96b697d7cb7938d525a2f31aaf161d0"
        );
        assert_eq!(
            sha_text(&SHA1_FOR_LEGACY_USE_ONLY, b"abc"),
            "a9993e364706816aba3e25717850c26c9cd0d89d"
        );
        assert_eq!(
            sha_text(&SHA224, b"abc"),
            "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"
        );
        assert_eq!(
            sha_text(&SHA256, b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let long = |size| text(&sha512(&NoCheckpoint, size, b"abc").unwrap());
        assert!(long(Size::Bits384).starts_with("cb00753f45a3"));
        assert_eq!(
            long(Size::Bits512),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        );
        assert_eq!(crc32(&NoCheckpoint, b"123456789"), Ok(0xCBF4_3926));
    }

    /// FIPS 180-4's message of a million `a`; the second message is longer than one piece.
    #[test]
    fn digests_of_long_messages() {
        let million = vec![b'a'; 1_000_000];
        assert_eq!(
            sha_text(&SHA1_FOR_LEGACY_USE_ONLY, &million),
            "34aa973cd4c4daa4f61eeb2bdbad27316534016f"
        );
        let long = vec![b'a'; PIECE_BYTES + 1];
        let whole = aws_lc_rs::digest::digest(&SHA256, &long);
        assert_eq!(sha_text(&SHA256, &long), text(whole.as_ref()));
        assert_eq!(crc32(&NoCheckpoint, &long), Ok(crc32fast::hash(&long)));
        assert_eq!(md5_of(&long), fast_md5::digest(&long));
    }
}
