//! Converts values between types during evaluation. Every function takes the type of the value: the
//! text of an ENUM, the bytes of a BIT and the character set of a string depend on it.

use std::borrow::Cow;

use nfold_plan::expr::{Class, Coercibility, Expr, ExprKind, ExprType, ItemName, TextOrigin};
use nfold_types::charset::is_ascii;
use nfold_types::convert::{long_number, number};
use nfold_types::temporal::MICROS_PER_SECOND;
use nfold_types::{
    CollationId, ColumnType, Decimal, ErrorCode, Level, SqlError, TypeKind, Value, charset,
};

pub(crate) use super::temporal::*;
use super::{EvalCx, Val, json};

/// The collation of a value as a string: the connection's for numbers and dates.
pub fn string_collation(cx: &EvalCx<'_>, ty: &ExprType) -> CollationId {
    nfold_plan::collate::as_string(ty, cx.env().collation()).collation
}

/// A value of type `ty` as a warning shows it.
pub(crate) fn shown(cx: &EvalCx<'_>, text: &[u8], ty: &ExprType) -> String {
    nfold_types::convert::shown(text, string_collation(cx, ty))
}

/// Whether the statement has checked this constant, and warned about it, before its first row.
pub(super) fn is_checked(ty: &ExprType) -> bool {
    ty.origin == TextOrigin::Checked
}

/// Whether a value of this type has caused all its warnings. A constant that is converted once is
/// known by the address of its type.
fn has_warned(cx: &EvalCx<'_>, ty: &ExprType) -> bool {
    match ty.origin {
        TextOrigin::Checked => true,
        TextOrigin::Once => {
            let constant = std::ptr::from_ref(ty) as usize;
            !cx.st.lists.warned.borrow_mut().insert(constant)
        }
        _ => false,
    }
}

pub(crate) fn warn_incorrect(cx: &EvalCx<'_>, kind: &str, text: &[u8], ty: &ExprType) {
    if has_warned(cx, ty) {
        return;
    }
    let shown = shown(cx, text, ty);
    cx.warn(ErrorCode::ER_TRUNCATED_WRONG_VALUE, &[&kind, &shown]);
}

/// Warning 1366 for a string that MySQL stores in a DOUBLE column without a name.
fn warn_not_stored(cx: &EvalCx<'_>, text: &[u8], ty: &ExprType) {
    let shown = shown(cx, text, ty);
    let message = format!("Incorrect DOUBLE value: '{shown}' for column '' at row 1");
    let code = ErrorCode::ER_TRUNCATED_WRONG_VALUE_FOR_FIELD;
    let error = SqlError::with_message(code, message);
    let mut warnings = cx.st.warnings.borrow_mut();
    warnings.push_error(Level::Warning, &error);
}

/// Whether MySQL reads integers and doubles from values of this type without warning about trailing
/// text.
fn is_silent(ty: &ExprType) -> bool {
    matches!(
        ty.origin,
        TextOrigin::Cached | TextOrigin::Matched | TextOrigin::Checked
    )
}

/// The warnings about text that is no DECIMAL.
fn warn_no_decimal(cx: &EvalCx<'_>, text: &[u8], ty: &ExprType, parsed: &number::Parsed<Decimal>) {
    let literal = matches!(ty.origin, TextOrigin::Literal | TextOrigin::Once);
    if !literal && !number::has_digits(text) {
        let text = "Incorrect DECIMAL value: '0' for column '' at row -1";
        let code = ErrorCode::ER_TRUNCATED_WRONG_VALUE_FOR_FIELD;
        let error = SqlError::with_message(code, text);
        cx.st
            .warnings
            .borrow_mut()
            .push_error(Level::Warning, &error);
    }
    let trailing = literal || ty.origin == TextOrigin::Column;
    if parsed.overflow || parsed.truncated && trailing {
        warn_incorrect(cx, "DECIMAL", text, ty);
    }
}

/// Prepares text for reading a number: shortens very long text, with checkpoints.
fn number_text<'t>(cx: &EvalCx<'_>, text: &'t [u8]) -> Cow<'t, [u8]> {
    match text.len() {
        ..=PIECE_BYTES => Cow::Borrowed(text),
        _ => Cow::Owned(long_number::shortened(text, &mut |work| cx.goes_on(work))),
    }
}

/// Whether a type is a string in a character set whose characters all have at least two bytes.
pub(crate) fn is_wide(ty: &ExprType) -> bool {
    ty.col.charset().is_wide()
}

/// Converts text of such a set to UTF-8, to read numbers and dates from it. Returns the new type as
/// well.
pub(crate) fn in_utf8(text: &[u8], ty: &ExprType) -> (Val<'static>, ExprType) {
    let (mut out, mut to) = (Vec::new(), ty.clone());
    charset::convert(ty.col.charset(), &charset::UTF8MB4, text, &mut out);
    to.col.collation = CollationId::UTF8MB4_BIN;
    (Val::string(out), to)
}

/// The truth value: whether a value is a number other than zero.
pub fn to_bool(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<bool> {
    Some(match v {
        Val::Null => return None,
        Val::Int(v) => *v != 0,
        Val::UInt(v) => *v != 0,
        Val::Decimal(d) => !d.is_zero(),
        other => to_f64(cx, other, ty)? != 0.0,
    })
}

/// As a signed or unsigned integer. Halves are rounded away from zero.
pub fn to_integer(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<i128> {
    Some(match v {
        Val::Null => return None,
        Val::Int(v) => i128::from(*v),
        Val::UInt(v) => i128::from(*v),
        // A FLOAT beyond the largest BIGINT becomes the smallest BIGINT.
        Val::Float(v) if f64::from(*v) >= BIGINT_END => i128::from(i64::MIN),
        Val::Float(v) => saturate(f64::from(*v)),
        Val::Double(v) => saturate(*v),
        Val::Decimal(d) => decimal_to_i128(d),
        Val::Bytes(doc) if ty.col.is_json() => json::integer_of(cx, doc, ty),
        Val::Bytes(text) if is_wide(ty) => {
            let (v, ty) = in_utf8(text, ty);
            return to_integer(cx, &v, &ty);
        }
        Val::Bytes(text) => {
            if binary_number(ty) {
                return Some(i128::from(bytes_as_number(text)));
            }
            let parsed = number::parse_integer(&number_text(cx, text));
            if (parsed.truncated || parsed.overflow) && !is_silent(ty) {
                warn_incorrect(cx, "INTEGER", text, ty);
            }
            parsed.value
        }
        Val::Date(d) => i128::from(d.to_number()),
        Val::DateTime(d) if cuts_fractions(cx) => i128::from(d.to_number()),
        Val::DateTime(d) => {
            let d = d.round(0, 0).unwrap_or(*d);
            i128::from(d.to_number())
        }
        Val::Time(t) if cuts_fractions(cx) => i128::from(t.to_number()),
        Val::Time(t) => i128::from(t.round(0, 0).0.to_number()),
    })
}

/// The number of a DATETIME or TIME, rounded as a DECIMAL is: the seconds may be 60. `None` for any
/// other value.
pub(crate) fn rounded_number(v: &Val<'_>) -> Option<i64> {
    const HALF: i64 = MICROS_PER_SECOND / 2;
    match v {
        Val::DateTime(d) => {
            let up = i64::from(d.micros()) >= HALF;
            Some(d.to_number() as i64 + i64::from(up))
        }
        Val::Time(t) => {
            let up = t.micros().abs() % MICROS_PER_SECOND >= HALF;
            Some(t.to_number() + if up { t.micros().signum() } else { 0 })
        }
        _ => None,
    }
}

/// The integer at the start of a text; the rest is ignored.
pub fn leading_integer(cx: &EvalCx<'_>, text: &[u8]) -> i128 {
    number::parse_integer(&number_text(cx, text)).value
}

/// Warns if a DECIMAL is out of range for BIGINT, or for BIGINT UNSIGNED if `unsigned`.
pub fn warn_beyond(cx: &EvalCx<'_>, v: &Val<'_>, unsigned: bool) {
    let Val::Decimal(d) = v else { return };
    let whole = d.round(0).unwrap_or(*d);
    if whole.to_i64().is_none() && !(unsigned && whole.to_u64().is_some()) {
        let code = ErrorCode::ER_TRUNCATED_WRONG_VALUE;
        cx.warn(code, &[&"DECIMAL", &d.to_string()]);
    }
}

/// Whether excess fractional digits of temporal values are truncated, not rounded.
pub(crate) fn cuts_fractions(cx: &EvalCx<'_>) -> bool {
    let mode = cx.env().sql_mode();
    mode.has(nfold_plan::SqlMode::TIME_TRUNCATE_FRACTIONAL)
}

/// Whether the type is that of a hexadecimal or bit literal, which acts as a number.
pub fn binary_number(ty: &ExprType) -> bool {
    matches!(ty.col.kind, TypeKind::VarBinary(_)) && ty.col.zerofill
}

/// The number in the bytes of a hexadecimal or bit literal: the last eight bytes, big-endian.
pub fn bytes_as_number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .take(8)
        .rev()
        .fold(0, |n, b| n << 8 | u64::from(*b))
}

/// The smallest number above the range of BIGINT.
const BIGINT_END: f64 = 9_223_372_036_854_775_808.0;

fn saturate(v: f64) -> i128 {
    // As MySQL's rint: halves are rounded to even.
    let ends = (i128::from(i64::MIN), i128::from(i64::MAX));
    let v = number::double_to_integer(v).unwrap_or(if v < 0.0 { ends.0 } else { ends.1 });
    v.clamp(ends.0, ends.1)
}

fn decimal_to_i128(d: &Decimal) -> i128 {
    let whole = d.round(0).unwrap_or(*d);
    if let Some(v) = whole.to_i64() {
        return i128::from(v);
    }
    match whole.to_u64() {
        Some(v) => i128::from(v),
        None if whole.is_negative() => i128::from(i64::MIN),
        None => i128::from(u64::MAX),
    }
}

/// As a double.
pub fn to_f64(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<f64> {
    Some(match v {
        Val::Null => return None,
        Val::Int(v) => *v as f64,
        Val::UInt(v) => *v as f64,
        Val::Float(v) => f64::from(*v),
        Val::Double(v) => *v,
        Val::Decimal(d) => d.to_f64(),
        Val::Bytes(doc) if ty.col.is_json() => json::double_of(cx, doc, ty),
        Val::Bytes(text) if is_wide(ty) => {
            let (v, ty) = in_utf8(text, ty);
            return to_f64(cx, &v, &ty);
        }
        Val::Bytes(text) => {
            if binary_number(ty) {
                return Some(bytes_as_number(text) as f64);
            }
            let short = number_text(cx, text);
            let parsed = number::parse_double(&short);
            // As in MySQL, a blank string is zero without a warning.
            let blank = short.iter().all(u8::is_ascii_whitespace);
            if ty.origin == TextOrigin::Stored && (parsed.truncated || parsed.overflow) {
                warn_not_stored(cx, text, ty);
            } else if ((parsed.truncated && !blank) || parsed.overflow) && !is_silent(ty) {
                warn_incorrect(cx, "DOUBLE", text, ty);
            }
            parsed.value
        }
        Val::Date(d) => d.to_number() as f64,
        Val::DateTime(d) => d.to_number() as f64 + f64::from(d.micros()) / 1e6,
        Val::Time(t) => {
            let frac = f64::from(t.parts().3) / 1e6;
            let n = t.to_number() as f64;
            if t.is_negative() { n - frac } else { n + frac }
        }
    })
}

pub(crate) fn int_decimal(v: i128) -> Decimal {
    match (i64::try_from(v), u64::try_from(v)) {
        (Ok(v), _) => Decimal::from(v),
        (_, Ok(v)) => Decimal::from(v),
        _ => Decimal::parse_prefix(v.to_string().as_bytes()).value,
    }
}

/// The smallest power of ten beyond the digits that MySQL's DECIMAL holds while it computes.
const DECIMAL_END: f64 = 1e81;

/// Converts a double to DECIMAL, limited to the range of DECIMAL. As in MySQL, warning 1292 about a
/// number beyond all of its digits shows the number without its exponent.
fn decimal_of(cx: &EvalCx<'_>, v: f64) -> Decimal {
    Decimal::from_f64(v).unwrap_or_else(|| {
        if v.abs() >= DECIMAL_END {
            let shown = format!("{v:e}");
            let digits = shown.split('e').next().unwrap_or_default();
            cx.warn(ErrorCode::ER_TRUNCATED_WRONG_VALUE, &[&"DECIMAL", &digits]);
        }
        Decimal::max_of(65, 0, v < 0.0)
    })
}

/// Whether a double has more digits than a column of type DECIMAL, and fewer than [`DECIMAL_END`].
fn is_long_decimal(v: &Val<'_>) -> bool {
    matches!(v, Val::Double(v) if (1e65..DECIMAL_END).contains(&v.abs()))
}

/// As a DECIMAL.
pub fn to_decimal(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<Decimal> {
    Some(match v {
        Val::Null => return None,
        Val::Int(v) => Decimal::from(*v),
        Val::UInt(v) => Decimal::from(*v),
        Val::Float(v) => decimal_of(cx, f64::from(*v)),
        Val::Double(v) => decimal_of(cx, *v),
        Val::Decimal(d) => *d,
        Val::Bytes(doc) if ty.col.is_json() => json::decimal_of(cx, doc, ty),
        Val::Bytes(text) if is_wide(ty) => {
            let (v, ty) = in_utf8(text, ty);
            return to_decimal(cx, &v, &ty);
        }
        Val::Bytes(text) => {
            if binary_number(ty) {
                return Some(Decimal::from(bytes_as_number(text)));
            }
            if ty.origin == TextOrigin::Matched {
                let whole = number::parse_integer(&number_text(cx, text)).value;
                return Some(Decimal::from(
                    whole.clamp(i64::MIN.into(), i64::MAX.into()) as i64
                ));
            }
            let parsed = number::parse_decimal(&number_text(cx, text));
            if (parsed.truncated || parsed.overflow) && !is_checked(ty) {
                warn_no_decimal(cx, text, ty, &parsed);
            }
            parsed.value
        }
        Val::Date(d) => Decimal::from(d.to_number()),
        Val::DateTime(d) => with_micros(i128::from(d.to_number()), d.micros(), d.fsp, false),
        Val::Time(t) => with_micros(
            i128::from(t.to_number().abs()),
            t.parts().3,
            t.fsp,
            t.is_negative(),
        ),
    })
}

fn with_micros(whole: i128, micros: u32, fsp: u8, negative: bool) -> Decimal {
    if fsp == 0 && micros == 0 {
        return int_decimal(if negative { -whole } else { whole });
    }
    let text = format!("{}{whole}.{micros:06}", if negative { "-" } else { "" });
    let d = Decimal::parse_prefix(text.as_bytes()).value;
    if fsp < 6 {
        d.truncate(i32::from(fsp))
    } else {
        d
    }
}

/// Appends the text of an ENUM or SET value. Member names are stored in UTF-8.
fn write_member(value: u64, ty: &ExprType, out: &mut Vec<u8>) {
    let set = ty.col.charset();
    if set.is_utf8() {
        return ty.col.member_text(value, out);
    }
    let mut text = Vec::new();
    ty.col.member_text(value, &mut text);
    charset::convert(&charset::UTF8MB4, set, &text, out);
}

/// A DOUBLE of a column has no exponent up to this length; any other DOUBLE has one sooner.
const COLUMN_DOUBLE_BYTES: usize = 23;

/// Appends the text of a number of type FLOAT or DOUBLE. A FLOAT that a function returns is written
/// as a DOUBLE; a column, and the result of CAST, is not.
fn write_real(v: f64, float: Option<f32>, ty: &ExprType, out: &mut Vec<u8>) {
    let fixed = ty.col.decimals < nfold_types::sql_type::NOT_FIXED_DECIMALS;
    let returned = matches!(ty.origin, TextOrigin::Cached | TextOrigin::Computed);
    match float {
        _ if fixed && ty.class() == Class::Double => number::write_fixed(v, ty.col.decimals, out),
        Some(float) if !returned => number::write_float_as_text(float, out),
        _ => {
            let mut plain = Vec::new();
            number::write_double(v, &mut plain);
            match ty.origin == TextOrigin::Column && plain.len() <= COLUMN_DOUBLE_BYTES {
                true => out.append(&mut plain),
                false => number::write_double_as_text(v, out),
            }
        }
    }
}

/// Appends the text of a value as an expression uses it, in the character set of its type.
pub fn write_text(v: &Val<'_>, ty: &ExprType, out: &mut Vec<u8>) {
    match v {
        Val::Null => {}
        Val::Int(v) => number::write_i64(*v, out),
        Val::UInt(v) => match &ty.col.kind {
            TypeKind::Enum(_) | TypeKind::Set(_) => write_member(*v, ty, out),
            TypeKind::Bit(n) => {
                out.extend_from_slice(&v.to_be_bytes()[8 - usize::from(n.div_ceil(8)).min(8)..])
            }
            TypeKind::Year if *v == 0 && ty.col.width == 0 => out.extend_from_slice(b"0000"),
            _ if ty.col.zerofill => {
                let text = v.to_string();
                out.resize(
                    out.len() + (ty.col.width as usize).saturating_sub(text.len()),
                    b'0',
                );
                out.extend_from_slice(text.as_bytes());
            }
            _ => number::write_u64(*v, out),
        },
        Val::Float(v) => write_real(f64::from(*v), Some(*v), ty, out),
        Val::Double(v) => write_real(*v, None, ty, out),
        Val::Decimal(d) => d.write_to(out),
        Val::Bytes(b) => out.extend_from_slice(b),
        Val::Date(d) => d.write_to(out),
        Val::DateTime(d) => d.write_to(out),
        Val::Time(t) => t.write_to(out),
    }
}

/// As text, in the character set of the value's own type.
pub fn to_bytes<'a>(cx: &EvalCx<'a>, v: Val<'a>, ty: &ExprType) -> Option<Cow<'a, [u8]>> {
    match v {
        Val::Null => None,
        Val::Bytes(doc) if ty.col.is_json() => Some(json::text_or_raise(cx, &doc).into()),
        Val::Bytes(b) => Some(b),
        other => {
            let mut out = Vec::with_capacity(24);
            write_text(&other, ty, &mut out);
            Some(Cow::Owned(out))
        }
    }
}

/// The bytes of a string or document; empty for other values.
pub(crate) fn bytes_of<'v>(v: &'v Val<'_>) -> &'v [u8] {
    match v {
        Val::Bytes(bytes) => bytes,
        _ => &[],
    }
}

/// The number of bytes converted between two checkpoints.
const PIECE_BYTES: usize = 64 << 10;

/// As text, in the character set of `collation`.
pub fn to_text<'a>(
    cx: &EvalCx<'a>,
    v: Val<'a>,
    ty: &ExprType,
    collation: CollationId,
) -> Option<Cow<'a, [u8]>> {
    let from = string_collation(cx, ty);
    let bytes = to_bytes(cx, v, ty)?;
    if from == collation {
        return Some(bytes);
    }
    let (from, to) = (from.known().charset, collation.known().charset);
    let same = from == to || (from.is_binary() && !to.is_wide()) || to.is_binary();
    if same || (to.is_ascii_compatible() && from.is_ascii(&bytes)) {
        return Some(bytes);
    }
    if from.is_binary() {
        // The first code unit is padded with zero bytes.
        let mut out = Vec::with_capacity(bytes.len() + 3);
        charset::convert(from, to, &bytes, &mut out);
        return Some(Cow::Owned(out));
    }
    let mut out = Vec::with_capacity(bytes.len());
    let (mut lost, mut rest) = (0, &bytes[..]);
    while !rest.is_empty() && cx.goes_on(PIECE_BYTES as u64) {
        let (piece, after) = rest.split_at(from.piece_end(rest, PIECE_BYTES));
        lost += charset::convert(from, to, piece, &mut out);
        rest = after;
    }
    if lost > 0 && ty.class() == Class::String && ty.coercibility == Coercibility::Coercible {
        let error = nfold_plan::collate::cannot_convert(&bytes, from.name, to.name);
        cx.st.warnings.borrow_mut().raise(error);
    }
    Some(Cow::Owned(out))
}

/// As text in the character set of `collation`.
///
/// # Errors
/// 3854 if the text has characters that this set lacks.
pub fn to_text_for<'a>(
    cx: &EvalCx<'a>,
    v: Val<'a>,
    ty: &ExprType,
    collation: CollationId,
) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
    let from = string_collation(cx, ty).known().charset;
    let to = collation.known().charset;
    let Some(bytes) = to_bytes(cx, v, ty) else {
        return Ok(None);
    };
    if from == to || to.is_binary() || is_ascii(&bytes) {
        return Ok(Some(bytes));
    }
    let cannot = |bytes: &[u8]| nfold_plan::collate::cannot_convert(bytes, from.name, to.name);
    if from.is_binary() {
        return match to.is_valid(&bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(_) => Err(cannot(&bytes)),
        };
    }
    let mut out = Vec::with_capacity(bytes.len());
    match charset::convert(from, to, &bytes, &mut out) {
        0 => Ok(Some(Cow::Owned(out))),
        _ => Err(cannot(&bytes)),
    }
}

/// As text in the character set of `collation`. Characters that the set lacks become question
/// marks.
fn to_lossy_text<'a>(
    cx: &EvalCx<'a>,
    v: Val<'a>,
    ty: &ExprType,
    collation: CollationId,
) -> Option<Cow<'a, [u8]>> {
    let ty = ExprType {
        coercibility: Coercibility::Implicit,
        ..ty.clone()
    };
    to_text(cx, v, &ty, collation)
}

/// The value that a user variable stores: an integer, decimal, double or string.
pub fn var_value(cx: &EvalCx<'_>, v: Val<'_>, ty: &ExprType) -> Value {
    match v {
        Val::Date(_) | Val::DateTime(_) | Val::Time(_) => {
            let mut out = Vec::new();
            write_text(&v, ty, &mut out);
            Value::Bytes(out)
        }
        Val::Bytes(doc) if ty.col.is_json() => Value::Bytes(json::text_or_raise(cx, &doc)),
        Val::Float(f) => Value::Double(f64::from(f)),
        Val::UInt(_) if ty.col.is_enum_or_set() => {
            to_bytes(cx, v.borrowed(), ty).map_or(Value::Null, |b| Value::Bytes(b.into_owned()))
        }
        other => other.into_value(),
    }
}

/// The collation of a user variable that is set to a value of type `ty`; `None` if it stores no
/// string. Temporal values are stored as latin1 strings.
pub fn var_collation(ty: &ColumnType) -> Option<CollationId> {
    match Class::of(ty) {
        Class::String | Class::Json => Some(ty.collation),
        class if class.is_temporal() => Some(CollationId::LATIN1_SWEDISH_CI),
        _ => None,
    }
}

/// Warning 1105 for a string whose number has a sign that the cast's type does not allow.
fn warn_complement(cx: &EvalCx<'_>, i: i128, unsigned: bool) {
    let message = match (unsigned, i64::try_from(i)) {
        (true, Ok(..0)) => "Cast to unsigned converted negative integer to its positive complement",
        (false, Err(_)) if i <= i128::from(u64::MAX) => {
            "Cast to signed converted positive out-of-range integer to its negative complement"
        }
        _ => return,
    };
    let error = SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, message);
    let level = nfold_types::error::Level::Warning;
    cx.st.warnings.borrow_mut().push_error(level, &error);
}

/// Whether an expression is a CAST that is never NULL. One to JSON may fail.
pub(crate) fn is_never_null_cast(e: &Expr) -> bool {
    !e.ty.nullable && matches!(&e.kind, ExprKind::Cast { to, .. } if !to.is_json())
}

/// `CAST(v AS to)`. `name` is the item's name in warnings.
pub fn cast<'a>(
    cx: &EvalCx<'a>,
    v: Val<'a>,
    from: &ExprType,
    to: &ColumnType,
    name: &ItemName,
) -> Result<Val<'a>, SqlError> {
    if v.is_null() {
        return Ok(Val::Null);
    }
    if let Val::Bytes(text) = &v
        && Class::of(to) != Class::String
        && is_wide(from)
    {
        let (v, from) = in_utf8(text, from);
        return cast(cx, v, &from, to, name);
    }
    if to.is_json() {
        return json::cast(cx, v, from);
    }
    if from.col.is_json() && to.kind == TypeKind::Year {
        let number = Val::Int(to_integer(cx, &v, from).unwrap_or(0) as i64);
        return cast(cx, number, &ExprType::bigint(false), to, name);
    }
    let by_text = matches!(to.kind, TypeKind::BigInt | TypeKind::Year);
    let v = match &v {
        // An expression of string type is read as text, even if its value is temporal.
        Val::Date(_) | Val::DateTime(_) | Val::Time(_)
            if by_text && from.class() == Class::String =>
        {
            to_bytes(cx, v, from).map_or(Val::Null, Val::Bytes)
        }
        _ => v,
    };
    Ok(match &to.kind {
        TypeKind::BigInt => {
            warn_beyond(cx, &v, to.unsigned);
            let Some(i) = to_integer(cx, &v, from) else {
                return Ok(Val::Null);
            };
            if let Val::Bytes(text) = &v
                && !binary_number(from)
                && !from.col.is_json()
            {
                let parsed = number::parse_integer(&number_text(cx, text));
                if (parsed.truncated || parsed.overflow) && is_silent(from) {
                    warn_incorrect(cx, "INTEGER", text, from);
                }
                if !parsed.overflow {
                    warn_complement(cx, i, to.unsigned);
                }
            }
            if to.unsigned {
                Val::UInt(i as u64)
            } else if matches!(v, Val::Double(_) | Val::Float(_) | Val::Decimal(_)) {
                Val::Int(i64::try_from(i).unwrap_or(i64::MAX))
            } else {
                Val::Int(i as i64)
            }
        }
        TypeKind::Decimal { precision, scale } => {
            let Some(d) = to_decimal(cx, &v, from) else {
                return Ok(Val::Null);
            };
            let fitted = d
                .rescale(*scale)
                .filter(|d| d.int_digits() <= u32::from(precision - scale))
                .filter(|_| !is_long_decimal(&v));
            Val::Decimal(fitted.unwrap_or_else(|| {
                let name = match name.is_known() {
                    true => name.as_str(),
                    false => "(null)",
                };
                cx.warn(ErrorCode::ER_WARN_DATA_OUT_OF_RANGE, &[&name, &1]);
                Decimal::max_of(*precision, *scale, d.is_negative())
            }))
        }
        TypeKind::Double => to_f64(cx, &v, from).map_or(Val::Null, Val::Double),
        TypeKind::Float => match to_f64(cx, &v, from) {
            Some(v) if v.is_finite() && !(v as f32).is_finite() => {
                let shown = format!("cast({v:e} as float)");
                return Err(SqlError::new(
                    ErrorCode::ER_DATA_OUT_OF_RANGE,
                    &[&"DOUBLE", &shown],
                ));
            }
            v => v.map_or(Val::Null, |v| Val::Float(v as f32)),
        },
        TypeKind::Date => to_asked(cx, &v, from, TemporalTarget::by_mode(cx, true))
            .map_or(Val::Null, |d| Val::Date(d.date())),
        TypeKind::DateTime(fsp) => to_asked(cx, &v, from, TemporalTarget::by_mode(cx, false))
            .and_then(|d| match cuts_fractions(cx) {
                true => Some(d.truncate(*fsp)),
                false => d.round(0, *fsp),
            })
            .map_or(Val::Null, Val::DateTime),
        TypeKind::Time(fsp) => {
            to_time(cx, &v, from).map_or(Val::Null, |t| match cuts_fractions(cx) {
                true => Val::Time(t.truncate(*fsp)),
                false => Val::Time(t.round(0, *fsp).0),
            })
        }
        TypeKind::Year => cast_year(cx, &v, from).map_or(Val::Null, Val::UInt),
        _ => return Ok(cast_string(cx, v, from, to)),
    })
}

/// Converts a binary string to another character set without changing its bytes. Malformed bytes
/// cause warning 1300; the result is then NULL in strict mode, and otherwise the well-formed
/// prefix.
fn well_formed<'a>(
    cx: &EvalCx<'a>,
    text: Cow<'a, [u8]>,
    from: &ExprType,
    set: &charset::Charset,
) -> Option<Cow<'a, [u8]>> {
    let bytes = from.class() == Class::String && from.col.charset().is_binary();
    let binary = bytes || matches!(from.col.kind, TypeKind::Bit(_));
    let Some(at) = set.is_valid(&text).err().filter(|_| binary) else {
        return Some(text);
    };
    let bad = set.malformed(&text[at..]);
    cx.st.warnings.borrow_mut().push_error(Level::Warning, &bad);
    if cx.env().sql_mode().has(nfold_plan::SqlMode::STRICT) {
        return None;
    }
    Some(Cow::Owned(text[..at].to_vec()))
}

fn cast_string<'a>(cx: &EvalCx<'a>, v: Val<'a>, from: &ExprType, to: &ColumnType) -> Val<'a> {
    let collation = to.collation;
    let text = to_lossy_text(cx, v, from, collation)
        .and_then(|text| well_formed(cx, text, from, collation.known().charset));
    let Some(text) = text else {
        return Val::Null;
    };
    let limit = match to.kind {
        TypeKind::Char(n) | TypeKind::VarChar(n) | TypeKind::Binary(n) | TypeKind::VarBinary(n) => {
            n as usize
        }
        _ => usize::MAX,
    };
    // The length of a FLOAT(M,D) counts its digits, without a sign and a point.
    let fixed = from.class() == Class::Double && limit as u64 == from.char_length();
    let limit = if fixed { usize::MAX } else { limit };
    let keep = collation.known().charset.char_prefix_len(&text, limit);
    if keep < text.len() {
        let kind = if collation == CollationId::BINARY {
            "BINARY"
        } else {
            "CHAR"
        };
        cx.warn(
            ErrorCode::ER_TRUNCATED_WRONG_VALUE,
            &[
                &format_args!("{kind}({keep})"),
                &nfold_types::convert::shown(&text, collation),
            ],
        );
        return Val::string(text[..keep].to_vec());
    }
    let filled = match to.kind {
        TypeKind::VarBinary(n) => to.width == n,
        _ => false,
    };
    let n = limit;
    if filled && text.len() < n {
        let mut padded = text.into_owned();
        padded.resize(n, 0);
        return Val::string(padded);
    }
    Val::Bytes(text)
}
