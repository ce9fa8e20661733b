//! COMPRESS, UNCOMPRESS and UNCOMPRESSED_LENGTH. A compressed string has four bytes with the
//! original length, little-endian, and the data in zlib's format (RFC 1950).

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use nfold_plan::expr::{Coercibility, Expr, ExprType};
use nfold_plan::func::{Infer, infer_int};
use nfold_types::{CollationId, ErrorCode};

use super::builtin::{Evaluated, Func, Inferred, PIECE_BYTES, arg, func};
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("compress", (1, 1), infer_packed, eval_compress),
    func("uncompress", (1, 1), infer_bytes, eval_uncompress),
    func("uncompressed_length", (1, 1), infer_int::<11>, eval_length),
];

/// The length has 30 bits; the two upper bits are ignored.
const LENGTH_MASK: u32 = 0x3FFF_FFFF;

fn infer_packed(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    // zlib's maximum (`compressBound`), four bytes for the length, and one at the end.
    let bytes = args[0].ty.byte_length();
    let bytes = bytes + (bytes >> 12) + (bytes >> 14) + (bytes >> 25) + 13 + 5;
    let level = Coercibility::Coercible;
    Ok(ExprType::string(bytes, CollationId::BINARY, level, true))
}

fn infer_bytes(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    let level = Coercibility::Coercible;
    Ok(ExprType::string(
        u64::from(u32::MAX),
        CollationId::BINARY,
        level,
        true,
    ))
}

fn eval_compress<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.bytes(&args[0]));
    if text.is_empty() {
        return Ok(Val::string(Vec::new()));
    }
    let mut out = (text.len() as u32 & LENGTH_MASK).to_le_bytes().to_vec();
    let mut encoder = ZlibEncoder::new(&mut out, Compression::default());
    // Writing to memory does not fail.
    let mut written = Ok(());
    for piece in text.chunks(PIECE_BYTES) {
        written = written.and_then(|()| encoder.write_all(piece));
        cx.checkpoint(30 * piece.len() as u64)?;
    }
    let written = written.and_then(|()| encoder.try_finish());
    drop(encoder);
    if written.is_err() {
        return Ok(Val::Null);
    }
    // A column that strips trailing spaces would otherwise damage the value.
    if out.last() == Some(&b' ') {
        out.push(b'.');
    }
    Ok(Val::string(out))
}

fn corrupted<'a>(cx: &EvalCx<'a>) -> Evaluated<'a> {
    cx.warn(ErrorCode::ER_ZLIB_Z_DATA_ERROR, &[]);
    Ok(Val::Null)
}

fn eval_uncompress<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(cx.bytes(&args[0]));
    if bytes.is_empty() {
        return Ok(Val::string(Vec::new()));
    }
    let Some((length, packed)) = bytes.split_first_chunk::<4>() else {
        return corrupted(cx);
    };
    let length = u32::from_le_bytes(*length) & LENGTH_MASK;
    let max = cx.env().max_allowed_packet();
    if length as usize > max {
        cx.warn(ErrorCode::ER_TOO_BIG_FOR_UNCOMPRESS, &[&max]);
        return Ok(Val::Null);
    }
    let mut out = Vec::new();
    let mut decoder = ZlibDecoder::new(packed);
    while out.len() <= length as usize {
        let most = (length as usize + 1 - out.len()).min(PIECE_BYTES);
        match (&mut decoder).take(most as u64).read_to_end(&mut out) {
            Ok(0) => return Ok(Val::string(out)),
            Ok(n) => cx.checkpoint(4 * n as u64)?,
            Err(_) => break,
        }
    }
    corrupted(cx)
}

fn eval_length<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(cx.bytes(&args[0]));
    if bytes.is_empty() {
        return Ok(Val::Int(0));
    }
    Ok(match bytes.split_first_chunk::<4>() {
        Some((length, rest)) if !rest.is_empty() => {
            Val::Int(i64::from(u32::from_le_bytes(*length) & LENGTH_MASK))
        }
        _ => {
            cx.warn(ErrorCode::ER_ZLIB_Z_DATA_ERROR, &[]);
            Val::Int(0)
        }
    })
}
