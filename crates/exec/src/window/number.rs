//! The numbers that calls are given once: N of NTILE, LEAD, LAG and NTH_VALUE, and how far frames reach.

use nfold_plan::expr::Expr;
use nfold_plan::query::{FrameBound, WindowCall, WindowFunc};
use nfold_types::{ErrorCode, SqlError};

use crate::eval::{EvalCx, Val};

/// The whole number that a value is.
fn whole(v: &Val<'_>) -> Option<u64> {
    match v {
        Val::Int(v) => u64::try_from(*v).ok(),
        Val::UInt(v) => Some(*v),
        Val::Bytes(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        _ => None,
    }
}

/// N of a call; 1 where none is written.
///
/// # Errors
/// 1210 for what is no number, or too small.
pub(super) fn of_call<'a>(cx: &EvalCx<'a>, call: &'a WindowCall) -> Result<u64, SqlError> {
    let Some(e) = &call.number else {
        return Ok(1);
    };
    let least = match call.func {
        WindowFunc::Ntile | WindowFunc::NthValue => 1,
        _ => 0,
    };
    let v = cx.val(e)?;
    let n = whole(&v).filter(|n| (least..=i64::MAX as u64).contains(n));
    n.ok_or_else(|| {
        // A text is no value for such a parameter at all.
        let what = match v {
            Val::Bytes(_) => "EXECUTE",
            _ => call.func.name(),
        };
        SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&what])
    })
}

/// The rows that a bound is off; 0 where it is no such bound.
///
/// # Errors
/// 3586
pub(super) fn of_bound<'a>(
    cx: &EvalCx<'a>,
    call: &'a WindowCall,
    bound: &'a FrameBound,
) -> Result<u64, SqlError> {
    let illegal = || SqlError::new(ErrorCode::ER_WINDOW_FRAME_ILLEGAL, &[&call.window]);
    match bound {
        FrameBound::Rows { amount, .. } => whole(&cx.val(amount)?).ok_or_else(illegal),
        FrameBound::Value { amount, .. } if is_negative(cx, amount)? => Err(illegal()),
        _ => Ok(0),
    }
}

/// Whether it is NULL or less than nothing.
fn is_negative<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<bool, SqlError> {
    Ok(match cx.val(e)? {
        Val::Null => true,
        Val::Int(v) => v < 0,
        Val::Double(v) => v < 0.0,
        Val::Decimal(v) => v.is_negative(),
        Val::Bytes(text) => text.trim_ascii_start().starts_with(b"-"),
        _ => false,
    })
}
