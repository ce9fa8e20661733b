//! Strings as codes: hexadecimal and other bases, base 64, character codes, and functions that
//! return a string's character set.

use std::borrow::Cow;

use nfold_plan::expr::{Class, Coercibility, Expr, ExprKind, ExprType};
use nfold_plan::func::{ANY_ARGS, Infer, infer_int};
use nfold_types::{CollationId, DateTime, ErrorCode, SqlError, Time, TypeKind, Value, base64};

use super::builtin::{Evaluated, Func, Inferred, PIECE_BYTES, Pace, arg, func};
use crate::expr::eval::{EvalCx, Val, convert};

pub(super) static FUNCS: &[Func] = &[
    func("hex", (1, 1), infer_hex, eval_hex),
    func("unhex", (1, 1), infer_unhex, eval_unhex),
    func("conv", (3, 3), infer_bits, eval_conv),
    func("bin", (1, 1), infer_bits, |cx, a, _| in_base(cx, &a[0], 2)),
    func("oct", (1, 1), infer_bits, |cx, a, _| in_base(cx, &a[0], 8)),
    func("ascii", (1, 1), infer_int::<4>, |cx, a, _| {
        let text = arg!(cx.bytes(&a[0]));
        Ok(Val::Int(text.first().map_or(0, |b| i64::from(*b))))
    }),
    func("ord", (1, 1), infer_int::<21>, eval_ord),
    func("char", (1, ANY_ARGS), infer_char, eval_char),
    func("to_base64", (1, 1), infer_to_base64, eval_to_base64),
    func("from_base64", (1, 1), infer_from_base64, eval_from_base64),
    func("charset", (1, 1), infer_name, |_, a, _| {
        let name = own_collation(&a[0]).known().charset.name;
        Ok(Val::string(name.as_bytes().to_vec()))
    }),
    func("collation", (1, 1), infer_name, |_, a, _| {
        let name = own_collation(&a[0]).known().name;
        Ok(Val::string(name.as_bytes().to_vec()))
    }),
    func(
        "coercibility",
        (1, 1),
        |_, _| Ok(ExprType::int(10, false)),
        |_, a, _| Ok(Val::Int(a[0].ty.coercibility as i64)),
    ),
    func("weight_string", (1, 4), infer_weights, eval_weights),
    func("bit_count", (1, 1), infer_int::<21>, eval_bit_count),
];

/// The collation of a string; `binary` for other values.
fn own_collation(e: &Expr) -> CollationId {
    match e.ty.class() {
        Class::String => e.ty.collation(),
        _ => CollationId::BINARY,
    }
}

fn infer_name(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::string(
        64,
        CollationId::UTF8MB3_GENERAL_CI,
        Coercibility::Coercible,
        true,
    ))
}

fn infer_hex(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let ty = &args[0].ty;
    let chars = match ty.class() {
        Class::String => ty.byte_length().saturating_mul(2),
        Class::Json => u64::MAX,
        _ => 16,
    };
    Ok(cx.connection_string(chars))
}

fn infer_weights(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let (ty, known) = (&args[0].ty, args[0].ty.collation().known());
    let weights = match (known.charset.max_len, known.name.contains("_0900_")) {
        (1, _) => 1,
        (_, true) => 16,
        _ => 2,
    };
    let longest = match weights_form(args) {
        [0, chars, _] => chars.saturating_mul(u64::from(known.charset.max_len)),
        [length, ..] => return Ok(binary(length, true)),
    };
    let bytes = ty.byte_length().max(longest);
    Ok(binary(bytes.saturating_mul(weights), true))
}

/// Flag of WEIGHT_STRING: the result is padded to its length.
const PAD_TO_LENGTH: u64 = 0x80;

/// The second to fourth argument of WEIGHT_STRING; 0 for each that is missing.
fn weights_form(args: &[Expr]) -> [u64; 3] {
    use nfold_plan::expr::ExprKind;
    std::array::from_fn(|n| match args.get(n + 1).map(|e| &e.kind) {
        Some(ExprKind::Const(Value::Int(n))) => *n as u64,
        Some(ExprKind::Const(Value::UInt(n))) => *n,
        _ => 0,
    })
}

/// MySQL's packed form of a DATETIME: 17 bits for year and month, then the day, the time of day,
/// and 24 bits of microseconds.
fn datetime_image(d: DateTime) -> i64 {
    let date = d.date();
    let days = i64::from((date.year() * 13 + date.month()) << 5 | date.day());
    let time = i64::from(d.hour() << 12 | d.minute() << 6 | d.second());
    (days << 17 | time) << 24 | i64::from(d.micros())
}

/// MySQL's packed form of a TIME, offset by 2^47; the bits of a negative time are inverted.
fn time_image(t: Time) -> i64 {
    let (h, m, s, micros) = t.parts();
    let packed = i64::from(h << 12 | m << 6 | s) << 24 | i64::from(micros);
    (1 << 47) + if t.is_negative() { !packed } else { packed }
}

fn is_column(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Column(_) | ExprKind::Outer { .. })
}

/// WEIGHT_STRING: the weights of a string. An integer or temporal value becomes eight bytes that
/// sort like it, as does the number of an ENUM or SET column; other numbers are NULL.
///
/// The optional arguments are the maximum length of the result in bytes, the number of characters,
/// and flags; 0 means no limit. In a PAD SPACE collation the string is padded with spaces to the
/// number of characters.
fn eval_weights<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let arg = &args[0];
    let v = cx.val(arg)?;
    let signed = |v: i64| Val::string((v as u64 ^ 1 << 63).to_be_bytes().to_vec());
    match (arg.ty.class(), v) {
        (_, Val::Int(v)) => return Ok(signed(v)),
        (_, Val::UInt(v)) if is_column(arg) && arg.ty.col.is_enum_or_set() => {
            return Ok(signed(v as i64));
        }
        (Class::Int, Val::UInt(v)) => return Ok(Val::string(v.to_be_bytes().to_vec())),
        (_, Val::Date(d)) => return Ok(signed(i64::from(d.packed()))),
        (_, Val::DateTime(d)) => return Ok(signed(datetime_image(d))),
        (_, Val::Time(t)) => return Ok(signed(time_image(t))),
        (Class::String, _) => {}
        _ => return Ok(Val::Null),
    }
    let collation = arg.ty.collation();
    let mut text = arg!(cx.bytes(arg)).into_owned();
    let known = collation.known();
    let mut space = Vec::new();
    match known.pad_space {
        true => known.weight_string(b" ", &mut space),
        false => space.push(0),
    }
    let [length, chars, flags] = weights_form(args).map(|n| usize::try_from(n).unwrap_or(0));
    let mut missing = 0;
    if chars > 0 {
        text.truncate(known.char_prefix(&text, chars).len());
        missing = match known.pad_space {
            true => chars - known.char_len(&text),
            false => 0,
        };
    }
    let mut key = Vec::new();
    known.weight_string(&text, &mut key);
    let max = cx.env().max_allowed_packet();
    let padded = key
        .len()
        .saturating_add(missing.saturating_mul(space.len()));
    let mut end = match length {
        0 => padded,
        _ => padded.min(length),
    };
    if flags as u64 & PAD_TO_LENGTH != 0 {
        end = end.max(length);
    }
    if end > max {
        let code = ErrorCode::ER_WARN_ALLOWED_PACKET_OVERFLOWED;
        cx.warn(code, &[&"weight_string", &max]);
        return Ok(Val::Null);
    }
    let spaces = space.into_iter().cycle();
    let weights: Vec<u8> = key.into_iter().chain(spaces).take(end).collect();
    Ok(Val::string(weights))
}

/// HEX: a number in base 16, or the bytes of a string or date.
fn eval_hex<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    if matches!(
        args[0].ty.class(),
        Class::Int | Class::Decimal | Class::Double
    ) {
        let v = arg!(whole_number(cx, &args[0]));
        return Ok(Val::string(format!("{v:X}").into_bytes()));
    }
    let text = arg!(cx.bytes(&args[0]));
    let mut out = Vec::with_capacity(2 * text.len());
    for piece in text.chunks(PIECE_BYTES) {
        out.extend(hex_of(piece, b"0123456789ABCDEF"));
        cx.checkpoint(4 * piece.len() as u64)?;
    }
    Ok(Val::string(out))
}

/// A number as 64 bits. A DECIMAL beyond BIGINT becomes the largest BIGINT, with a warning.
pub(super) fn whole_number<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<u64>, SqlError> {
    match e.ty.class() {
        Class::Decimal => Ok(cx.int(e)?.map(|v| v as u64)),
        _ => Ok(cx.integer(e)?.map(|v| v as u64)),
    }
}

/// Two hexadecimal digits for each byte.
pub(super) fn hex_of(bytes: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|b| [digits[usize::from(b >> 4)], digits[usize::from(b & 15)]])
        .collect()
}

fn binary(bytes: u64, nullable: bool) -> ExprType {
    ExprType::string(
        bytes,
        CollationId::BINARY,
        Coercibility::Coercible,
        nullable,
    )
}

fn infer_unhex(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(binary(args[0].ty.byte_length().div_ceil(2), true))
}

/// Returns NULL with warning 1411.
pub(super) fn no_value<'a>(cx: &EvalCx<'a>, e: &Expr, function: &str) -> Evaluated<'a> {
    let shown = cx.describe(e);
    cx.warn(
        ErrorCode::ER_WRONG_VALUE_FOR_TYPE,
        &[&"string", &shown, &function],
    );
    Ok(Val::Null)
}

fn eval_unhex<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.bytes(&args[0]));
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let odd = text.len() % 2;
    let mut out = Vec::with_capacity(text.len().div_ceil(2));
    let first = text[..odd].iter().map(|b| digit(*b));
    let pairs = text[odd..]
        .chunks(2)
        .map(|p| Some(digit(p[0])? << 4 | digit(p[1])?));
    let mut pace = Pace::new(cx);
    for byte in first.chain(pairs) {
        pace.step()?;
        match byte {
            Some(b) => out.push(b),
            None => return no_value(cx, &args[0], "unhex"),
        }
    }
    Ok(Val::string(out))
}

fn infer_bits(cx: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(cx.connection_string(65))
}

/// The digits of `v` in `base`, most significant first.
fn in_digits(mut v: u64, base: u32) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let digit = (v % u64::from(base)) as u32;
        let c = char::from_digit(digit, base).unwrap_or('0');
        out.push(c.to_ascii_uppercase() as u8);
        v /= u64::from(base);
        if v == 0 {
            break;
        }
    }
    out.reverse();
    out
}

/// The number at the start of a string.
struct Digits {
    magnitude: u64,
    negative: bool,
    /// Whether there is no number, or it exceeds 64 bits.
    wrong: bool,
}

/// Reads the number at the start of `text` in `base`. A value beyond 64 bits becomes the largest
/// one.
fn digits_of(text: &[u8], base: u32) -> Digits {
    let text = text.trim_ascii_start();
    let (negative, rest) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = rest.iter().map_while(|b| char::from(*b).to_digit(base));
    let mut found = Digits {
        magnitude: 0,
        negative,
        wrong: true,
    };
    for (n, d) in digits.enumerate() {
        let next = found.magnitude.checked_mul(u64::from(base));
        match next.and_then(|v| v.checked_add(u64::from(d))) {
            Some(next) => {
                found.magnitude = next;
                found.wrong &= n > 0;
            }
            None => {
                found.magnitude = u64::MAX;
                found.wrong = true;
                break;
            }
        }
    }
    found
}

fn eval_conv<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let text = digits_text(cx, &args[0])?;
    let (from, to) = (arg!(cx.int(&args[1])), arg!(cx.int(&args[2])));
    let valid = |base: i64| (2..=36).contains(&base.unsigned_abs());
    match text {
        Some(text) if valid(from) && valid(to) => Ok(rebase(cx, &text, from, to)),
        _ => Ok(Val::Null),
    }
}

/// BIN and OCT: conversion from base 10 to `base`.
fn in_base<'a>(cx: &EvalCx<'a>, e: &'a Expr, base: i64) -> Evaluated<'a> {
    let text = digits_text(cx, e)?;
    Ok(text.map_or(Val::Null, |text| rebase(cx, &text, 10, base)))
}

/// The digits that CONV reads: the text of its argument; for a BIT and a hexadecimal literal its
/// number.
fn digits_text<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
    let literal = e.ty.class() == Class::String && e.ty.col.zerofill;
    if literal || matches!(e.ty.col.kind, TypeKind::Bit(_)) {
        let number = cx.integer(e)?;
        return Ok(number.map(|n| Cow::Owned(n.to_string().into_bytes())));
    }
    cx.bytes(e)
}

/// Converts the number at the start of `text` to another base. A negative base means signed
/// numbers.
fn rebase<'a>(cx: &EvalCx<'a>, text: &[u8], from: i64, to: i64) -> Val<'a> {
    if text.is_empty() {
        return Val::Null;
    }
    let Digits {
        magnitude,
        negative,
        mut wrong,
    } = digits_of(text, from.unsigned_abs() as u32);
    let least = i64::MIN.unsigned_abs();
    let v = match (from < 0, negative) {
        (true, false) => {
            wrong |= magnitude >= least;
            magnitude.min(i64::MAX as u64)
        }
        (true, true) => {
            wrong |= magnitude > least;
            magnitude.min(least).wrapping_neg()
        }
        (false, true) if wrong => 0,
        (false, true) => magnitude.wrapping_neg(),
        (false, false) => magnitude,
    };
    if wrong {
        let shown = String::from_utf8_lossy(text);
        cx.warn(ErrorCode::ER_TRUNCATED_WRONG_VALUE, &[&"DECIMAL", &shown]);
    }
    let base = to.unsigned_abs() as u32;
    if to < 0 && (v as i64) < 0 {
        let mut out = vec![b'-'];
        out.extend(in_digits((v as i64).unsigned_abs(), base));
        return Val::string(out);
    }
    Val::string(in_digits(v, base))
}

/// ORD: the bytes of the first character as a number.
fn eval_ord<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let set = convert::string_collation(cx, &args[0].ty).known().charset;
    let text = arg!(cx.bytes(&args[0]));
    let step = set.step(&text).min(text.len());
    Ok(Val::Int(
        text[..step].iter().fold(0, |n, b| n << 8 | i64::from(*b)),
    ))
}

fn infer_char(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(binary(args.len() as u64 * 4, true))
}

/// CHAR: the bytes of each number without leading zero bytes. NULLs are skipped.
fn eval_char<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let mut out = Vec::new();
    for e in args {
        if let Some(v) = cx.integer(e)? {
            let bytes = (v as u32).to_be_bytes();
            let skip = bytes.iter().take_while(|b| **b == 0).count().min(3);
            out.extend_from_slice(&bytes[skip..]);
        }
    }
    Ok(Val::string(out))
}

/// The bytes of TO_BASE64 between two checkpoints: whole lines.
const BASE64_BYTES: usize = PIECE_BYTES / base64::LINE_BYTES * base64::LINE_BYTES;

fn infer_to_base64(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let chars = args[0].ty.byte_length();
    let chars = chars.div_ceil(3).saturating_mul(4);
    Ok(cx.connection_string(chars + chars.saturating_sub(1) / 76))
}

/// TO_BASE64 (RFC 2045), in lines of 76 characters.
fn eval_to_base64<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(cx.bytes(&args[0]));
    let mut out = Vec::new();
    for (n, piece) in bytes.chunks(BASE64_BYTES).enumerate() {
        cx.checkpoint(piece.len() as u64)?;
        if n > 0 {
            out.push(b'\n');
        }
        base64::encode_lines(piece, b"\n", &mut out);
    }
    cx.checked_string(out, "to_base64")
}

fn infer_from_base64(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(binary(
        (args[0].ty.byte_length() / 4).saturating_mul(3),
        true,
    ))
}

fn eval_from_base64<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.bytes(&args[0]));
    Ok(base64::decode(&text, cx.st.checkpoint)?.map_or(Val::Null, Val::string))
}

/// BIT_COUNT: the number of bits set in a binary string, or in the 64 bits of another value.
fn eval_bit_count<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let ty = &args[0].ty;
    // A hexadecimal literal (marked by `zerofill`) counts as a number.
    if ty.class() == Class::String && ty.collation() == CollationId::BINARY && !ty.col.zerofill {
        let bytes = arg!(cx.bytes(&args[0]));
        let mut bits = 0;
        for piece in bytes.chunks(PIECE_BYTES) {
            bits += piece.iter().map(|b| i64::from(b.count_ones())).sum::<i64>();
            cx.checkpoint(piece.len() as u64)?;
        }
        return Ok(Val::Int(bits));
    }
    let v = arg!(whole_number(cx, &args[0]));
    Ok(Val::Int(i64::from(v.count_ones())))
}
