//! Arithmetic and bit operators. The type of the node, set by the binder, selects integer, decimal
//! or double arithmetic.

use nfold_plan::SqlMode;
use nfold_plan::expr::{ArithOp, BitOp, Class, Expr, ExprKind};
use nfold_types::{Decimal, ErrorCode, SqlError};

use super::{EvalCx, Val};

/// The operator as MySQL prints it in messages.
pub(crate) fn symbol(op: ArithOp) -> &'static str {
    match op {
        ArithOp::Add => "+",
        ArithOp::Sub => "-",
        ArithOp::Mul => "*",
        ArithOp::Div => "/",
        ArithOp::IntDiv => "DIV",
        ArithOp::Mod => "%",
    }
}

pub(crate) fn eval<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Val<'a>, SqlError> {
    match &e.kind {
        ExprKind::Neg(inner) => negate(cx, e, inner),
        ExprKind::BitNot(_) | ExprKind::Bit(..) if e.ty.class() == Class::String => {
            super::bits::eval(cx, e)
        }
        ExprKind::BitNot(inner) => Ok(bits(cx, inner)?.map_or(Val::Null, |v| Val::UInt(!v))),
        ExprKind::Bit(op, sides) => {
            // Beside NULL the second operand is not evaluated.
            let Some(a) = bits(cx, &sides[0])? else {
                return Ok(Val::Null);
            };
            let Some(b) = bits(cx, &sides[1])? else {
                return Ok(Val::Null);
            };
            Ok(Val::UInt(match op {
                BitOp::And => a & b,
                BitOp::Or => a | b,
                BitOp::Xor => a ^ b,
                BitOp::ShiftLeft => u32::try_from(b)
                    .ok()
                    .and_then(|n| a.checked_shl(n))
                    .unwrap_or(0),
                BitOp::ShiftRight => u32::try_from(b)
                    .ok()
                    .and_then(|n| a.checked_shr(n))
                    .unwrap_or(0),
            }))
        }
        ExprKind::Arith(op, sides) => match e.ty.class() {
            Class::Int => integers(cx, e, *op, &sides[0], &sides[1]),
            Class::Decimal => decimals(cx, e, *op, &sides[0], &sides[1]),
            _ => doubles(cx, e, *op, &sides[0], &sides[1]),
        },
        _ => unreachable!("only arithmetic comes here"),
    }
}

/// The operand of a bit operator as 64 bits; a negative number in two's complement.
fn bits(cx: &EvalCx<'_>, e: &Expr) -> Result<Option<u64>, SqlError> {
    // Shortens the lifetime: the value is a number and borrows nothing from the row.
    let cx = EvalCx {
        rows: cx.rows,
        outer: cx.outer,
        st: cx.st,
    };
    let v = cx.integer(e)?;
    Ok(v.map(|v| {
        if v > i128::from(u64::MAX) {
            u64::MAX
        } else {
            v as u64
        }
    }))
}

fn out_of_range(cx: &EvalCx<'_>, e: &Expr) -> SqlError {
    range_error(e, &cx.describe(e))
}

/// Error 1690 for the result of `e`, which the message shows as `text`.
pub(crate) fn range_error(e: &Expr, text: &str) -> SqlError {
    let name = match e.ty.class() {
        Class::Int if e.ty.col.unsigned => "BIGINT UNSIGNED",
        Class::Int => "BIGINT",
        Class::Decimal => "DECIMAL",
        _ => "DOUBLE",
    };
    range_error_of(name, text)
}

/// Error 1690 for a value of the type `name`, which the message shows as `text`.
pub(crate) fn range_error_of(name: &str, text: &str) -> SqlError {
    SqlError::new(ErrorCode::ER_DATA_OUT_OF_RANGE, &[&name, &text])
}

pub(crate) fn division_by_zero<'a>(cx: &EvalCx<'a>) -> Result<Val<'a>, SqlError> {
    let mode = cx.env().sql_mode();
    if mode.has(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
        if cx.st.strict && mode.has(SqlMode::STRICT) {
            return Err(SqlError::new(ErrorCode::ER_DIVISION_BY_ZERO, &[]));
        }
        cx.warn(ErrorCode::ER_DIVISION_BY_ZERO, &[]);
    }
    Ok(Val::Null)
}

fn negate<'a>(cx: &EvalCx<'a>, e: &'a Expr, inner: &'a Expr) -> Result<Val<'a>, SqlError> {
    Ok(match e.ty.class() {
        Class::Int => match cx.integer(inner)? {
            None => Val::Null,
            Some(v) => Val::Int(i64::try_from(-v).map_err(|_| out_of_range(cx, e))?),
        },
        Class::Decimal => cx
            .decimal(inner)?
            .map_or(Val::Null, |d| Val::Decimal(d.neg())),
        _ => cx.f64(inner)?.map_or(Val::Null, |v| Val::Double(-v)),
    })
}

fn integers<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    op: ArithOp,
    a: &'a Expr,
    b: &'a Expr,
) -> Result<Val<'a>, SqlError> {
    if op == ArithOp::IntDiv && !(a.ty.class() == Class::Int && b.ty.class() == Class::Int) {
        let Some((x, y)) = two_decimals(cx, a, b)? else {
            return Ok(Val::Null);
        };
        return match x.int_div(&y) {
            None => division_by_zero(cx),
            Some(None) => Err(out_of_range(cx, e)),
            Some(Some(d)) if e.ty.col.unsigned => {
                d.to_u64().map(Val::UInt).ok_or_else(|| out_of_range(cx, e))
            }
            Some(Some(d)) => d.to_i64().map(Val::Int).ok_or_else(|| out_of_range(cx, e)),
        };
    }
    let (Some(x), Some(y)) = (cx.integer(a)?, cx.integer(b)?) else {
        return Ok(Val::Null);
    };
    let result = match op {
        ArithOp::Add => x + y,
        ArithOp::Sub => x - y,
        ArithOp::Mul => x.checked_mul(y).ok_or_else(|| out_of_range(cx, e))?,
        ArithOp::IntDiv | ArithOp::Mod | ArithOp::Div if y == 0 => return division_by_zero(cx),
        ArithOp::IntDiv | ArithOp::Div => x / y,
        ArithOp::Mod => x % y,
    };
    if e.ty.col.unsigned {
        u64::try_from(result)
            .map(Val::UInt)
            .map_err(|_| out_of_range(cx, e))
    } else {
        i64::try_from(result)
            .map(Val::Int)
            .map_err(|_| out_of_range(cx, e))
    }
}

/// Both operands of an operation on DECIMAL. Beside NULL the second one is not evaluated, unlike
/// that of integers and doubles.
fn two_decimals<'a>(
    cx: &EvalCx<'a>,
    a: &'a Expr,
    b: &'a Expr,
) -> Result<Option<(Decimal, Decimal)>, SqlError> {
    let Some(x) = cx.decimal(a)? else {
        return Ok(None);
    };
    Ok(cx.decimal(b)?.map(|y| (x, y)))
}

fn decimals<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    op: ArithOp,
    a: &'a Expr,
    b: &'a Expr,
) -> Result<Val<'a>, SqlError> {
    let Some((x, y)) = two_decimals(cx, a, b)? else {
        return Ok(Val::Null);
    };
    let result: Option<Decimal> = match op {
        ArithOp::Add => x.add(&y),
        ArithOp::Sub => x.sub(&y),
        ArithOp::Mul => x.mul(&y),
        ArithOp::Div | ArithOp::IntDiv => match x.div(&y, cx.env().div_precision_increment()) {
            None => return division_by_zero(cx),
            Some(quotient) => quotient,
        },
        ArithOp::Mod => match x.rem(&y) {
            None => return division_by_zero(cx),
            some => some,
        },
    };
    result.map(Val::Decimal).ok_or_else(|| out_of_range(cx, e))
}

fn doubles<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    op: ArithOp,
    a: &'a Expr,
    b: &'a Expr,
) -> Result<Val<'a>, SqlError> {
    let (Some(x), Some(y)) = (cx.f64(a)?, cx.f64(b)?) else {
        return Ok(Val::Null);
    };
    let result = match op {
        ArithOp::Add => x + y,
        ArithOp::Sub => x - y,
        ArithOp::Mul => x * y,
        ArithOp::Div | ArithOp::Mod | ArithOp::IntDiv if y == 0.0 => return division_by_zero(cx),
        ArithOp::Div => x / y,
        ArithOp::IntDiv => (x / y).trunc(),
        ArithOp::Mod => x % y,
    };
    if result.is_finite() {
        Ok(Val::Double(result))
    } else {
        Err(out_of_range(cx, e))
    }
}
