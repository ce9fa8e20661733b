//! The numbers that calls have as constants: N of NTILE, LEAD, LAG and NTH_VALUE, and the offsets
//! of frame bounds.

use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::query::{FrameBound, WindowCall, WindowFunc};
use nfold_types::{ErrorCode, SqlError};

use crate::expr::eval::{EvalCx, Val};

/// The value as a non-negative integer.
fn whole(v: &Val<'_>) -> Option<u64> {
    match v {
        Val::Int(v) => u64::try_from(*v).ok(),
        Val::UInt(v) => Some(*v),
        _ => None,
    }
}

/// Checks the type of a parameter.
///
/// # Errors
/// 1210 if it is no integer, 1690 if it is too large.
fn check_parameter(e: &Expr, v: &Val<'_>) -> Result<(), SqlError> {
    if !matches!(e.kind, ExprKind::Param(_)) {
        return Ok(());
    }
    match v {
        Val::UInt(v) if i64::try_from(*v).is_err() => Err(SqlError::new(
            ErrorCode::ER_DATA_OUT_OF_RANGE,
            &[&"signed integer", &"EXECUTE"],
        )),
        Val::Int(_) | Val::UInt(_) | Val::Null => Ok(()),
        _ => Err(SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&"EXECUTE"])),
    }
}

/// N of a call; 1 if the call has none. 0 for NTH_VALUE(e, NULL), which finds no row.
///
/// # Errors
/// 1210 if it is no number, or too small.
pub(super) fn of_call<'a>(cx: &EvalCx<'a>, call: &'a WindowCall) -> Result<u64, SqlError> {
    let Some(e) = &call.number else {
        return Ok(1);
    };
    let least = match call.func {
        WindowFunc::Ntile | WindowFunc::NthValue => 1,
        _ => 0,
    };
    let v = cx.val(e)?;
    check_parameter(e, &v)?;
    if v.is_null() && call.func == WindowFunc::NthValue {
        return Ok(0);
    }
    let n = whole(&v).filter(|n| (least..=i64::MAX as u64).contains(n));
    n.ok_or_else(|| SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&call.func.name()]))
}

/// The row offset of a frame bound; 0 if the bound has none.
///
/// # Errors
/// 3586, and the errors of parameters.
pub(super) fn of_bound<'a>(
    cx: &EvalCx<'a>,
    call: &'a WindowCall,
    bound: &'a FrameBound,
) -> Result<u64, SqlError> {
    let illegal = || SqlError::new(ErrorCode::ER_WINDOW_FRAME_ILLEGAL, &[&call.window]);
    match bound {
        FrameBound::Rows { amount, .. } => {
            let v = cx.val(amount)?;
            check_parameter(amount, &v)?;
            whole(&v).ok_or_else(illegal)
        }
        FrameBound::Value { amount, .. } if is_negative(cx, amount)? => Err(illegal()),
        _ => Ok(0),
    }
}

/// Whether the value is NULL or negative.
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
