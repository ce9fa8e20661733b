//! GTID_SUBSET, GTID_SUBTRACT and WAIT_FOR_EXECUTED_GTID_SET.

use std::time::{Duration, Instant};

use nfold_binlog::{BinlogError, GtidSet};
use nfold_plan::expr::{Expr, ExprType};
use nfold_plan::func::{Infer, infer_int_null};
use nfold_types::{CollationId, ErrorCode, SqlError};

use super::builtin::{Evaluated, Func, Inferred, arg, func, volatile};
use crate::expr::eval::{EvalCx, Val};

/// How often a waiting session looks whether the transactions are there: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

pub(super) static FUNCS: &[Func] = &[
    func("gtid_subset", (2, 2), infer_int_null::<1>, eval_subset),
    func("gtid_subtract", (2, 2), infer_subtract, eval_subtract),
    volatile(func(
        "wait_for_executed_gtid_set",
        (1, 2),
        infer_int_null::<1>,
        eval_wait,
    )),
];

fn infer_subtract(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    // A hole in an interval makes the text longer.
    let chars = cx.total_length(&[&args[0], &args[1]])?.saturating_mul(2);
    let ty = cx.string_from(&[&args[0]], chars)?;
    Ok(ExprType {
        nullable: true,
        ..ty
    })
}

/// Error 1772: a text is no set of GTIDs. `why` is in its message.
fn malformed(why: &str) -> SqlError {
    let code = ErrorCode::ER_MALFORMED_GTID_SET_SPECIFICATION;
    SqlError::new(code, &[&why])
}

/// The set that an argument names; `None`: it is NULL.
fn set<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<GtidSet>, SqlError> {
    set_of(cx, e, false)
}

/// As [`set`]. `domains`: it may have positions of MariaDB's domains.
fn set_of<'a>(cx: &EvalCx<'a>, e: &'a Expr, domains: bool) -> Result<Option<GtidSet>, SqlError> {
    let Some(bytes) = cx.text(e, CollationId::UTF8MB4_GENERAL_CI)? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes);
    let parsed = match domains {
        true => GtidSet::parse(&text),
        false => GtidSet::parse_mysql(&text),
    };
    match parsed {
        Ok(set) => Ok(Some(set)),
        Err(BinlogError::Gtid(why)) => Err(malformed(&why)),
        Err(_) => Err(malformed(&text)),
    }
}

/// Whether all GTIDs of the first set are in the second one: of a MariaDB, whether the second one
/// has reached the first one's position in each domain.
fn eval_subset<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let subset = arg!(set_of(cx, &args[0], true));
    let of = arg!(set_of(cx, &args[1], true));
    Ok(Val::from_bool(Some(subset.is_subset(&of))))
}

/// The GTIDs of the first set that are not in the second one.
fn eval_subtract<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let from = arg!(set(cx, &args[0]));
    let without = arg!(set(cx, &args[1]));
    Ok(Val::string(from.without(&without).to_string().into_bytes()))
}

/// Waits until the server has all transactions of a set: 0, or 1 after the timeout in seconds (0 or
/// none: no timeout).
fn eval_wait<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    // The error has the text itself.
    let text = cx.text(&args[0], CollationId::UTF8MB4_GENERAL_CI)?;
    let text = text.map_or("NULL".into(), |text| {
        String::from_utf8_lossy(&text).into_owned()
    });
    let wanted = GtidSet::parse(&text).map_err(|_| malformed(&text))?;
    let seconds = match args.get(1) {
        Some(e) => cx.f64(e)?.filter(|s| *s >= 0.0),
        None => Some(0.0),
    };
    let Some(seconds) = seconds else {
        let code = ErrorCode::ER_WRONG_ARGUMENTS;
        return Err(SqlError::new(code, &[&"WAIT_FOR_EXECUTED_GTID_SET."]));
    };
    let limit = Duration::try_from_secs_f64(seconds).ok();
    let limit = limit.filter(|limit| !limit.is_zero());
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut pause = FIRST_PAUSE;
    while !cx.env().has_executed(&wanted) {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Val::Int(1));
        }
        if !cx
            .st
            .subqueries
            .sleep(left.map_or(pause, |left| left.min(pause)))?
        {
            return Err(SqlError::new(ErrorCode::ER_QUERY_INTERRUPTED, &[]));
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
    Ok(Val::Int(0))
}
