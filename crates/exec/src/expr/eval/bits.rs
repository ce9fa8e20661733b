//! Bit operators over binary strings of any length.

use nfold_plan::expr::{BitOp, Expr, ExprKind};
use nfold_types::{ErrorCode, SqlError};

use super::{EvalCx, Val};

/// Evaluates `~`, `&`, `|`, `^`, `<<` or `>>` over binary strings.
///
/// # Errors
/// 3513 if two strings differ in length.
pub(crate) fn eval<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Val<'a>, SqlError> {
    Ok(match &e.kind {
        ExprKind::BitNot(inner) => match cx.bytes(inner)? {
            Some(text) => Val::string(text.iter().map(|b| !b).collect()),
            None => Val::Null,
        },
        ExprKind::Bit(op @ (BitOp::ShiftLeft | BitOp::ShiftRight), sides) => {
            let (Some(text), Some(by)) = (cx.bytes(&sides[0])?, cx.integer(&sides[1])?) else {
                return Ok(Val::Null);
            };
            let by = usize::try_from(by).unwrap_or(usize::MAX);
            Val::string(shifted(&text, by, *op == BitOp::ShiftLeft))
        }
        ExprKind::Bit(op, sides) => {
            let (Some(a), Some(b)) = (cx.bytes(&sides[0])?, cx.bytes(&sides[1])?) else {
                return Ok(Val::Null);
            };
            Val::string(joined(*op, &a, &b)?)
        }
        _ => unreachable!("only bit operators come here"),
    })
}

/// Combines two strings byte by byte.
pub(crate) fn joined(op: BitOp, a: &[u8], b: &[u8]) -> Result<Vec<u8>, SqlError> {
    if a.len() != b.len() {
        let code = ErrorCode::ER_INVALID_BITWISE_OPERANDS_SIZE;
        return Err(SqlError::new(code, &[]));
    }
    let bit = |(x, y): (&u8, &u8)| match op {
        BitOp::And => x & y,
        BitOp::Or => x | y,
        _ => x ^ y,
    };
    Ok(a.iter().zip(b).map(bit).collect())
}

/// Shifts `text` by `by` bits. The vacated bits become zero.
fn shifted(text: &[u8], by: usize, left: bool) -> Vec<u8> {
    let (bytes, bits) = (by / 8, by % 8);
    let at = |i: Option<usize>| i.and_then(|i| text.get(i)).copied().unwrap_or(0);
    (0..text.len())
        .map(|i| {
            // The two source bytes of this byte, the left one first.
            let (first, second) = if left {
                let from = i.checked_add(bytes);
                (from, from.and_then(|f| f.checked_add(1)))
            } else {
                let from = i.checked_sub(bytes);
                (from.and_then(|f| f.checked_sub(1)), from)
            };
            let both = u16::from(at(first)) << 8 | u16::from(at(second));
            (if left {
                both << bits >> 8
            } else {
                both >> bits
            }) as u8
        })
        .collect()
}
