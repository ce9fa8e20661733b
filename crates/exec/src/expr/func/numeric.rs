//! Numeric functions.

use std::borrow::Cow;

use nfold_plan::expr::{Class, CmpKind, Coercibility, Expr, ExprKind, ExprType, FuncId, ItemName};
use nfold_plan::func::{
    ANY_ARGS, FuncSet, Infer, any_nullable, infer_double_null, infer_numeric_of,
};
use nfold_types::{
    CollationId, ColumnType, Date, DateTime, Decimal, ErrorCode, SqlError, TypeKind, Value,
};

use super::builtin::{Evaluated, Func, Inferred, arg, func, unchecked, volatile};
use crate::expr::eval::compare::ComparedAs;
use crate::expr::eval::temporal_list::{datetime_beside, name_among};
use crate::expr::eval::{EvalCx, Val, compare, convert, json};

/// A function of one double. NULL where it is not defined.
macro_rules! of_double {
    ($name:literal, $f:expr) => {
        of_double!($name, infer_double_null, $f)
    };
    ($name:literal, $infer:expr, $f:expr) => {
        func($name, (1, 1), $infer, |cx, a, _| {
            let f: fn(f64) -> f64 = $f;
            let v = f(arg!(cx.f64(&a[0])));
            if v.is_nan() {
                return Ok(Val::Null);
            }
            finite(cx, v, $name, a)
        })
    };
}

/// A logarithm. NULL and warning 3020 if the argument is not positive.
macro_rules! logarithm {
    ($name:literal, $f:expr) => {
        func($name, (1, 1), infer_double_null, |cx, a, _| {
            let v = arg!(cx.f64(&a[0]));
            let f: fn(f64) -> f64 = $f;
            Ok(positive(cx, v).map_or(Val::Null, |v| Val::Double(f(v))))
        })
    };
}

pub(super) static FUNCS: &[Func] = &[
    func("ceil", (1, 1), infer_whole, |cx, a, ty| {
        whole(cx, a, ty, true)
    }),
    func("ceiling", (1, 1), infer_whole, |cx, a, ty| {
        whole(cx, a, ty, true)
    }),
    func("floor", (1, 1), infer_whole, |cx, a, ty| {
        whole(cx, a, ty, false)
    }),
    func("round", (1, 2), infer_round, |cx, a, ty| {
        round(cx, a, ty, false)
    }),
    func("truncate", (2, 2), infer_truncate, |cx, a, ty| {
        round(cx, a, ty, true)
    }),
    func(
        "sign",
        (1, 1),
        |_, a| Ok(ExprType::bigint(any_nullable(a))),
        eval_sign,
    ),
    func("pow", (2, 2), infer_double_null, eval_pow),
    func("power", (2, 2), infer_double_null, eval_pow),
    of_double!("sqrt", f64::sqrt),
    of_double!("exp", f64::exp),
    of_double!("sin", f64::sin),
    of_double!("cos", f64::cos),
    of_double!("tan", f64::tan),
    of_double!("asin", f64::asin),
    of_double!("acos", f64::acos),
    of_double!("cot", |v| 1.0 / v.tan()),
    of_double!("degrees", infer_double, |v| v
        * (180.0 / std::f64::consts::PI)),
    of_double!("radians", infer_double, |v| v
        * (std::f64::consts::PI / 180.0)),
    func("atan", (1, 2), infer_double_null, eval_atan),
    func("atan2", (1, 2), infer_double_null, eval_atan),
    logarithm!("ln", f64::ln),
    logarithm!("log2", f64::log2),
    logarithm!("log10", f64::log10),
    func("log", (1, 2), infer_double_null, eval_log),
    func("pi", (0, 0), infer_pi, |_, _, _| {
        Ok(Val::Double(std::f64::consts::PI))
    }),
    unchecked(func(
        "greatest",
        (2, ANY_ARGS),
        infer_extreme,
        |cx, a, ty| extreme(cx, a, ty, true),
    )),
    unchecked(func("least", (2, ANY_ARGS), infer_extreme, |cx, a, ty| {
        extreme(cx, a, ty, false)
    })),
    func(
        "interval",
        (2, ANY_ARGS),
        |_, _| Ok(ExprType::int(2, false)),
        eval_interval,
    ),
    volatile(func(
        "rand",
        (0, 1),
        |_, _| Ok(ExprType::double(false)),
        eval_rand,
    )),
];

/// Error 1690.
fn out_of_range(cx: &EvalCx<'_>, kind: &str, name: &str, args: &[Expr]) -> SqlError {
    SqlError::new(
        ErrorCode::ER_DATA_OUT_OF_RANGE,
        &[&kind, &cx.describe_call(name, args)],
    )
}

fn finite<'a>(cx: &EvalCx<'a>, v: f64, name: &str, args: &[Expr]) -> Evaluated<'a> {
    if v.is_finite() {
        Ok(Val::Double(v))
    } else {
        Err(out_of_range(cx, "DOUBLE", name, args))
    }
}

/// Returns the argument of a logarithm if it is positive, otherwise `None` with warning 3020.
fn positive(cx: &EvalCx<'_>, v: f64) -> Option<f64> {
    if v <= 0.0 {
        cx.warn(ErrorCode::ER_INVALID_ARGUMENT_FOR_LOGARITHM, &[]);
        return None;
    }
    Some(v)
}

fn eval_log<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let Some(first) = positive(cx, arg!(cx.f64(&args[0]))) else {
        return Ok(Val::Null);
    };
    let Some(e) = args.get(1) else {
        return Ok(Val::Double(first.ln()));
    };
    let Some(second) = positive(cx, arg!(cx.f64(e))) else {
        return Ok(Val::Null);
    };
    if first == 1.0 {
        cx.warn(ErrorCode::ER_INVALID_ARGUMENT_FOR_LOGARITHM, &[]);
        return Ok(Val::Null);
    }
    Ok(Val::Double(second.ln() / first.ln()))
}

fn eval_atan<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let y = arg!(cx.f64(&args[0]));
    Ok(Val::Double(match args.get(1) {
        Some(e) => y.atan2(arg!(cx.f64(e))),
        None => y.atan(),
    }))
}

fn eval_pow<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let (base, exponent) = (arg!(cx.f64(&args[0])), arg!(cx.f64(&args[1])));
    finite(cx, base.powf(exponent), "pow", args)
}

fn infer_double(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(ExprType::double(any_nullable(args)))
}

fn infer_pi(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::double_fixed(6, false).with_width(8))
}

fn eval_sign<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let sign = if args[0].ty.class() == Class::Int {
        arg!(cx.integer(&args[0])).signum() as i64
    } else if args[0].ty.class() == Class::Decimal {
        let d = arg!(cx.decimal(&args[0]));
        if d.is_zero() {
            0
        } else if d.is_negative() {
            -1
        } else {
            1
        }
    } else {
        let v = arg!(cx.f64(&args[0]));
        i64::from(v > 0.0) - i64::from(v < 0.0)
    };
    Ok(Val::Int(sign))
}

/// CEILING and FLOOR of a DECIMAL return a BIGINT if every value fits.
fn infer_whole(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let mut ty = infer_numeric_of(args);
    match ty.class() {
        Class::Decimal => {}
        Class::Int => {
            ty.col.width = 21;
            return Ok(ty);
        }
        _ => return Ok(ExprType::double(ty.nullable)),
    }
    let (precision, scale) = ty.decimal_shape();
    let digits = precision - scale.min(precision) + u32::from(scale > 0);
    if digits <= 18 {
        return Ok(ExprType::bigint(ty.nullable));
    }
    Ok(ExprType::decimal(digits, 0, ty.nullable))
}

fn whole<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType, up: bool) -> Evaluated<'a> {
    match args[0].ty.class() {
        Class::Int => return cx.val(&args[0]),
        Class::Decimal => {}
        _ => {
            let v = arg!(cx.f64(&args[0]));
            return Ok(Val::Double(if up { v.ceil() } else { v.floor() }));
        }
    }
    let d = arg!(cx.decimal(&args[0]));
    let rounded = if up { d.ceil() } else { d.floor() };
    let name = if up { "ceiling" } else { "floor" };
    let overflow = || out_of_range(cx, "DECIMAL", name, args);
    let rounded = rounded.ok_or_else(overflow)?;
    match ty.class() {
        Class::Int => rounded.to_i64().map(Val::Int).ok_or_else(overflow),
        _ => Ok(Val::Decimal(rounded)),
    }
}

fn infer_round(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    infer_rounded(cx, args, false)
}

fn infer_truncate(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    infer_rounded(cx, args, true)
}

/// If the number of digits is a literal, it determines the scale of the result.
fn infer_rounded(_: &Infer<'_>, args: &mut [Expr], truncate: bool) -> Inferred {
    let mut ty = infer_numeric_of(args);
    ty.nullable = any_nullable(args);
    let digits = match args.get(1) {
        None => Some(0),
        Some(e) => written_integer(e),
    };
    match ty.class() {
        Class::Decimal => {
            let (precision, scale) = ty.decimal_shape();
            let wanted = match digits {
                Some(n) => n.clamp(0, 30) as u32,
                None => scale,
            };
            let kept = wanted.min(scale);
            let carry = u32::from(kept < scale && !truncate);
            ty = ExprType::decimal(precision - (scale - kept) + carry, kept, ty.nullable);
        }
        Class::Int => ty.col.width = 21,
        _ => ty = ExprType::double(ty.nullable),
    }
    Ok(ty)
}

fn written_integer(e: &Expr) -> Option<i64> {
    match &e.kind {
        ExprKind::Const(Value::Int(n)) => Some(*n),
        ExprKind::Neg(inner) => written_integer(inner).map(|n| -n),
        _ => None,
    }
}

fn round<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType, truncate: bool) -> Evaluated<'a> {
    let digits = match args.get(1) {
        Some(e) => arg!(cx.int(e)),
        None => 0,
    };
    let name = if truncate { "truncate" } else { "round" };
    match ty.class() {
        Class::Int => {
            let v = arg!(cx.integer(&args[0]));
            let v = round_integer(v, digits, truncate);
            if ty.col.unsigned {
                u64::try_from(v)
                    .map(Val::UInt)
                    .map_err(|_| out_of_range(cx, "BIGINT UNSIGNED", name, args))
            } else {
                i64::try_from(v)
                    .map(Val::Int)
                    .map_err(|_| out_of_range(cx, "BIGINT", name, args))
            }
        }
        Class::Decimal => {
            let d = arg!(cx.decimal(&args[0]));
            let digits = digits.clamp(-81, 30) as i32;
            let rounded = if truncate {
                d.truncate(digits)
            } else {
                d.round(digits)
                    .ok_or_else(|| out_of_range(cx, "DECIMAL", name, args))?
            };
            // If the number of digits depends on the row, the scale stays that of the argument.
            let scale = ty.decimal_shape().1 as u8;
            let by_row = args.get(1).is_some_and(|e| {
                written_integer(e).is_none() && !matches!(e.kind, ExprKind::Const(_))
            });
            let shown = rounded.rescale(scale).filter(|_| by_row);
            Ok(Val::Decimal(shown.unwrap_or(rounded)))
        }
        _ => Ok(Val::Double(round_double(
            arg!(cx.f64(&args[0])),
            digits,
            truncate,
        ))),
    }
}

fn round_integer(v: i128, digits: i64, truncate: bool) -> i128 {
    if digits >= 0 {
        return v;
    }
    if digits < -20 {
        return 0;
    }
    let unit = 10i128.pow(digits.unsigned_abs() as u32);
    let rest = v % unit;
    let down = v - rest;
    if !truncate && rest.abs() * 2 >= unit {
        down + unit * v.signum()
    } else {
        down
    }
}

/// Rounds `v` to `digits` decimals; halves to even, as the C library's `rint` does.
pub(super) fn round_double(v: f64, digits: i64, truncate: bool) -> f64 {
    let scale = 10f64.powi(digits.unsigned_abs().min(400) as i32);
    if digits < 0 {
        if scale.is_infinite() {
            return 0.0;
        }
        let scaled = v / scale;
        return scale
            * if truncate {
                scaled.trunc()
            } else {
                scaled.round_ties_even()
            };
    }
    let scaled = v * scale;
    if !scaled.is_finite() {
        return v;
    }
    if truncate {
        scaled.trunc() / scale
    } else {
        scaled.round_ties_even() / scale
    }
}

fn infer_extreme(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let mut ty = cx.common(&args.iter().collect::<Vec<_>>())?;
    // Documents are compared as text.
    if ty.class() == Class::Json {
        let collation = CollationId::UTF8MB4_BIN;
        let kind = TypeKind::VarChar(ty.col.width);
        ty.col = ColumnType::string(kind, collation);
        ty.coercibility = Coercibility::Implicit;
    }
    let temporal = temporal_chars(args);
    ty.col.kind = match ty.col.kind {
        TypeKind::Char(n) | TypeKind::VarChar(n) if temporal > n => TypeKind::VarChar(temporal),
        TypeKind::Binary(n) | TypeKind::VarBinary(n) if temporal > n => {
            TypeKind::VarBinary(temporal)
        }
        kind => kind,
    };
    Ok(ty)
}

/// The length of a date or time among `args`, with the fraction that the others may bring; 0
/// without one.
fn temporal_chars(args: &[Expr]) -> u32 {
    let has = |class: Class| args.iter().any(|e| e.ty.class() == class);
    let whole = match () {
        () if has(Class::DateTime) => 19,
        () if has(Class::Date) => return 10,
        () if has(Class::Time) => 10,
        () => return 0,
    };
    match args.iter().map(written_digits).max() {
        None | Some(0) => whole,
        Some(digits) => whole + 1 + digits,
    }
}

/// The digits of a fraction of a second that an argument may have. Those of a literal are unknown.
fn written_digits(e: &Expr) -> u32 {
    match e.ty.class() {
        Class::String if nfold_plan::expr::is_constant(e) => 0,
        Class::String | Class::Double | Class::Json => 6,
        Class::Decimal => e.ty.decimal_shape().1.min(6),
        _ => u32::from(e.ty.col.fsp()),
    }
}

/// GREATEST or LEAST of dates or times with other values where a number is wanted: of a TIME, or of
/// a YEAR and constants, that of the numbers; of a date, the number of the date. `None` for any
/// other function.
pub(crate) fn number_among_times<'a>(
    cx: &EvalCx<'a>,
    func: FuncId,
    args: &'a [Expr],
    ty: &ExprType,
) -> Result<Option<Val<'a>>, SqlError> {
    let greatest = match super::Builtins.get(func).name {
        "greatest" => true,
        "least" => false,
        _ => return Ok(None),
    };
    let date = |e: &Expr| matches!(e.ty.class(), Class::Date | Class::DateTime);
    let year = |e: &Expr| e.ty.col.kind == TypeKind::Year;
    // A YEAR counts as a number only beside constants.
    let years = args.iter().any(year)
        && args
            .iter()
            .all(|e| year(e) || nfold_plan::expr::is_constant(e));
    let time = |e: &Expr| e.ty.class() == Class::Time || years;
    if ty.class() == Class::String && args.iter().any(date) {
        return number_among_dates(cx, args, greatest).map(Some);
    }
    if ty.class() != Class::String || !args.iter().any(time) {
        return Ok(None);
    }
    let mut best: Option<f64> = None;
    for e in args {
        let Some(number) = cx.f64(e)? else {
            return Ok(Some(Val::Null));
        };
        let better = best.is_none_or(|b| if greatest { number > b } else { number < b });
        if better {
            best = Some(number);
        }
    }
    Ok(best.map(|number| Decimal::from_f64(number).map_or(Val::Double(number), Val::Decimal)))
}

/// GREATEST and LEAST. NULL if any argument is NULL. Strings beside dates are compared as dates.
fn extreme<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    ty: &'a ExprType,
    greatest: bool,
) -> Evaluated<'a> {
    let dates = args
        .iter()
        .any(|e| matches!(e.ty.class(), Class::Date | Class::DateTime));
    if dates && ty.class() == Class::String {
        return extreme_date(cx, args, ty, greatest);
    }
    let kind = match ty.class() {
        Class::String | Class::Null => CmpKind::String(ty.collation()),
        Class::Int => CmpKind::Int,
        Class::Decimal => CmpKind::Decimal,
        Class::Double => CmpKind::Double,
        Class::Json => CmpKind::Json,
        Class::Time => CmpKind::Time,
        Class::Date | Class::DateTime => CmpKind::DateTime,
    };
    if kind == CmpKind::Int && args.len() >= COMPARED_ONCE_MIN {
        let literal = best_literal(cx, args, ty, greatest)?;
        if !literal.is_null() {
            let others = args.iter().filter(|e| !is_literal(e));
            return best(cx, (literal, others), ty, (kind, greatest));
        }
    }
    let Some((first, others)) = args.split_first() else {
        return Ok(Val::Null);
    };
    let first = cx.val_as(first, ty)?;
    best(cx, (first, others.iter()), ty, (kind, greatest))
}

/// From this number of constant bounds on, INTERVAL finds its result by binary search, as MySQL
/// does. The order of unsorted bounds then decides.
const SEARCHED_MIN: usize = 8;

/// From this number of arguments on, GREATEST and LEAST of integers compare their literals once in
/// an execution, not for each row.
const COMPARED_ONCE_MIN: usize = 8;

fn is_literal(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_))
}

/// The greatest or the least of the literals among `args`; NULL if one is NULL, or if there are
/// none.
fn best_literal<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    ty: &'a ExprType,
    greatest: bool,
) -> Evaluated<'a> {
    // The first argument may be a computed constant, which has its own address.
    let id = args.as_ptr() as usize + 1;
    let constants = &cx.st.lists.constants;
    if let Some(known) = constants.borrow().as_ref().and_then(|all| all.get(&id)) {
        return Ok(number(known));
    }
    let mut literals = args.iter().filter(|e| is_literal(e));
    let value = match literals.next() {
        Some(first) => {
            let first = cx.val_as(first, ty)?;
            let kind = CmpKind::Int;
            best(cx, (first, literals), ty, (kind, greatest))?
        }
        None => Val::Null,
    };
    let mut constants = constants.borrow_mut();
    constants
        .get_or_insert_default()
        .insert(id, value.to_value());
    Ok(value)
}

/// An integer, or NULL.
fn number<'a>(value: &Value) -> Val<'a> {
    match value {
        Value::Int(v) => Val::Int(*v),
        Value::UInt(v) => Val::UInt(*v),
        _ => Val::Null,
    }
}

/// The greatest or the least of `first` and `others`; NULL if one of them is NULL.
fn best<'a>(
    cx: &EvalCx<'a>,
    (first, others): (Val<'a>, impl Iterator<Item = &'a Expr>),
    ty: &'a ExprType,
    (kind, greatest): (CmpKind, bool),
) -> Evaluated<'a> {
    let mut best = first;
    if best.is_null() {
        return Ok(best);
    }
    for e in others {
        let v = cx.val_as(e, ty)?;
        if v.is_null() {
            return Ok(v);
        }
        let order = compare::order(cx, kind, (&v, ty), (&best, ty));
        if order.is_some_and(|o| wins(o, greatest)) {
            best = v;
        }
    }
    Ok(best)
}

/// GREATEST and LEAST of dates together with strings or numbers: all are compared as dates. Beside
/// a DATETIME an invalid date counts as zero, and if zero wins, all are compared as strings. Beside
/// only DATEs an invalid date is greater than all, and MySQL returns the bits of its internal
/// marker.
fn extreme_date<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    ty: &'a ExprType,
    greatest: bool,
) -> Evaluated<'a> {
    let datetimes = args.iter().any(|e| e.ty.class() == Class::DateTime);
    match extreme_rank(cx, args, greatest)? {
        Some(0) if datetimes => extreme_text(cx, args, ty, |o| wins(o, greatest)),
        None => Ok(Val::Null),
        Some(u64::MAX) => Ok(Val::Bytes(b"16383-15-31".as_slice().into())),
        Some(packed) if !datetimes => Ok(Val::Date(DateTime::from_packed(packed, 0).date())),
        Some(packed) => {
            let mut fsp = 0;
            for e in args {
                fsp = fsp.max(digits_among_dates(cx, e)?);
            }
            Ok(Val::DateTime(DateTime::from_packed(packed, fsp)))
        }
    }
}

/// Whether an argument that compares in this order with the best one before it takes its place. Of
/// equal arguments GREATEST returns the last.
fn wins(o: std::cmp::Ordering, greatest: bool) -> bool {
    if greatest { o.is_ge() } else { o.is_lt() }
}

/// The greatest or the least of the arguments as dates, in packed form; `None` if one is NULL.
/// Beside a DATETIME, a value that is no date is zero. Beside dates alone it is above all dates.
fn extreme_rank<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    greatest: bool,
) -> Result<Option<u64>, SqlError> {
    let datetimes = args.iter().any(|e| e.ty.class() == Class::DateTime);
    let mut best: Option<u64> = None;
    for e in args {
        let v = cx.val(e)?;
        if v.is_null() {
            return Ok(None);
        }
        let found = date_among(cx, v, e, datetimes.then_some(args));
        let rank = found.map_or(if datetimes { 0 } else { u64::MAX }, |d| d.packed());
        if best.is_none_or(|b| wins(rank.cmp(&b), greatest)) {
            best = Some(rank);
        }
    }
    Ok(best)
}

/// The number of the greatest or the least date among the arguments.
fn number_among_dates<'a>(cx: &EvalCx<'a>, args: &'a [Expr], greatest: bool) -> Evaluated<'a> {
    // The number that MySQL reads from the bits of a date above all dates.
    const ABOVE_ALL: i64 = 163_831_531;
    let datetimes = args.iter().any(|e| e.ty.class() == Class::DateTime);
    Ok(match extreme_rank(cx, args, greatest)? {
        None => Val::Null,
        Some(0) => Val::Int(0),
        Some(u64::MAX) => Val::Int(ABOVE_ALL),
        Some(packed) if datetimes => Val::DateTime(DateTime::from_packed(packed, 6)),
        Some(packed) => Val::Date(DateTime::from_packed(packed, 0).date()),
    })
}

/// The number of decimals that an argument beside DATETIMEs gives the result. A constant string has
/// those that are written.
fn digits_among_dates<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<u8, SqlError> {
    Ok(match e.ty.class() {
        Class::String if nfold_plan::expr::is_constant(e) && !e.ty.col.zerofill => {
            let v = cx.val(e)?;
            // The warnings are those of the comparison.
            let found = cx.silently(|cx| convert::to_datetime(cx, &v, &e.ty));
            found.map_or(6, |d| d.fsp)
        }
        // A hexadecimal literal is a number.
        Class::String if e.ty.col.zerofill => 0,
        Class::String | Class::Double | Class::Json => 6,
        Class::Decimal => e.ty.decimal_shape().1.min(6) as u8,
        _ => e.ty.col.fsp(),
    })
}

/// Converts an argument beside dates to a date.
///
/// `datetimes`: all arguments, if one is a DATETIME.
fn date_among<'a>(
    cx: &EvalCx<'a>,
    v: Val<'a>,
    e: &'a Expr,
    datetimes: Option<&'a [Expr]>,
) -> Option<DateTime> {
    let name = datetimes.and_then(name_among).map(ItemName::as_str);
    let beside = |v: &Val<'a>, ty: &ExprType| match name {
        Some(name) => datetime_beside(cx, v, ty, Some(name)),
        None => convert::to_datetime(cx, v, ty),
    };
    if let (Val::Bytes(doc), true) = (&v, e.ty.col.is_json()) {
        // Beside a DATETIME a document is read as text.
        if datetimes.is_none() {
            return convert::to_date(cx, &v, &e.ty);
        }
        let text = json::text_or_raise(cx, doc);
        let collation = CollationId::UTF8MB4_BIN;
        let ty = ExprType::string(text.len() as u64, collation, Coercibility::Implicit, true);
        return beside(&Val::string(text), &ty);
    }
    let temporal = matches!(v, Val::Date(_) | Val::DateTime(_) | Val::Time(_));
    match v {
        v if temporal => convert::to_datetime(cx, &v, &e.ty),
        Val::Bytes(_) if datetimes.is_none() => convert::to_date(cx, &v, &e.ty),
        v if datetimes.is_some() || e.ty.class() == Class::String => beside(&v, &e.ty),
        // MySQL 9.7 takes a zero for this date.
        Val::Int(0) | Val::UInt(0) if !convert::is_year(&e.ty.col) => {
            Some(Date::new(2000, 0, 0).at_midnight())
        }
        v => convert::to_date(cx, &v, &e.ty),
    }
}

/// GREATEST and LEAST as strings. No argument is NULL.
fn extreme_text<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    ty: &'a ExprType,
    wins: impl Fn(std::cmp::Ordering) -> bool,
) -> Evaluated<'a> {
    let collation = ty.collation();
    let mut best: Option<Cow<'a, [u8]>> = None;
    for e in args {
        let Some(text) = cx.text(e, collation)? else {
            return Ok(Val::Null);
        };
        let better = |b: &Cow<'_, [u8]>| wins(collation.known().compare(&text, b));
        if best.as_ref().is_none_or(better) {
            best = Some(text);
        }
    }
    Ok(best.map_or(Val::Null, Val::Bytes))
}

/// INTERVAL: how many of the limits the first argument reaches; -1 for NULL.
fn eval_interval<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    if cx.val(&args[0])?.is_null() {
        return Ok(Val::Int(-1));
    }
    use ComparedAs::{
        ConstantDecimals, ConstantDoubles, ConstantInts, Decimals, Doubles, Ints, Strings, Texts,
    };
    let compared = cx.st.lists.compared_as(args, bounds_compared_as);
    let bounds = &args[1..];
    let searched = matches!(compared, ConstantInts | ConstantDecimals | ConstantDoubles);
    let count = match compared {
        Ints | ConstantInts => {
            let wanted = cx.integer(&args[0])?;
            passed(bounds, searched, |e| {
                Ok(wanted.zip(cx.integer(e)?).map(|(a, b)| a >= b))
            })?
        }
        Decimals | ConstantDecimals => {
            let wanted = cx.decimal(&args[0])?;
            passed(bounds, searched, |e| {
                let bound = cx.decimal(e)?;
                Ok(wanted.as_ref().zip(bound.as_ref()).map(|(a, b)| a >= b))
            })?
        }
        Doubles | ConstantDoubles | Strings | Texts => passed(bounds, searched, |e| {
            let (a, b) = (cx.f64(&args[0])?, cx.f64(e)?);
            Ok(a.zip(b).map(|(a, b)| a >= b))
        })?,
    };
    Ok(Val::Int(count as i64))
}

/// How INTERVAL compares, and whether it searches its bounds.
fn bounds_compared_as(args: &[Expr]) -> ComparedAs {
    let all = |classes: &[Class]| args.iter().all(|e| classes.contains(&e.ty.class()));
    let number = |e: &Expr| is_literal(e) && e.ty.class().is_number();
    let bounds = &args[1..];
    let searched = bounds.len() >= SEARCHED_MIN && bounds.iter().all(number);
    if all(&[Class::Int]) {
        return match searched {
            true => ComparedAs::ConstantInts,
            false => ComparedAs::Ints,
        };
    }
    match (all(&[Class::Int, Class::Decimal, Class::Null]), searched) {
        (true, true) => ComparedAs::ConstantDecimals,
        (true, false) => ComparedAs::Decimals,
        (false, true) => ComparedAs::ConstantDoubles,
        (false, false) => ComparedAs::Doubles,
    }
}

/// The number of bounds up to the first that is not `reached`. `searched`: the many constant bounds
/// are searched in MySQL's order, which decides the result if they are not sorted.
fn passed<'a>(
    bounds: &'a [Expr],
    searched: bool,
    reached: impl Fn(&'a Expr) -> Result<Option<bool>, SqlError>,
) -> Result<usize, SqlError> {
    if !searched {
        let mut count = 0;
        for e in bounds {
            if reached(e)? == Some(false) {
                break;
            }
            count += 1;
        }
        return Ok(count);
    }
    let (mut start, mut end) = (0, bounds.len() - 1);
    while start < end {
        let middle = (start + end).div_ceil(2);
        match reached(&bounds[middle])? {
            Some(false) => end = middle - 1,
            _ => start = middle,
        }
    }
    let first = start == 0 && reached(&bounds[0])? == Some(false);
    Ok(if first { 0 } else { start + 1 })
}

/// RAND: a random number in [0, 1). A constant seed starts MySQL's generator (mysys/my_rnd.cc) once
/// per statement; a seed that depends on the row restarts it for each row.
fn eval_rand<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    const MAX: u64 = 0x3FFF_FFFF;
    let Some(seed) = args.first() else {
        return Ok(Val::Double(
            (cx.env().random() >> 11) as f64 / (1u64 << 53) as f64,
        ));
    };
    let of_row = seed.any(&mut |e| {
        matches!(
            e.kind,
            ExprKind::Column(_) | ExprKind::Outer { .. } | ExprKind::Subquery { .. }
        )
    });
    let start = |seed: u32| {
        let one = seed.wrapping_mul(0x10001).wrapping_add(55_555_555);
        let two = seed.wrapping_mul(0x1000_0001);
        [u64::from(one) % MAX, u64::from(two) % MAX]
    };
    let mut sequences = cx.st.lists.sequences.borrow_mut();
    let place = std::ptr::from_ref(seed) as usize;
    let state = match sequences.get_mut(&place) {
        Some(state) if !of_row => state,
        _ => {
            drop(sequences);
            let first = start(cx.integer(seed)?.unwrap_or(0) as u32);
            sequences = cx.st.lists.sequences.borrow_mut();
            let state = sequences.entry(place).or_insert(first);
            *state = first;
            state
        }
    };
    state[0] = (state[0] * 3 + state[1]) % MAX;
    state[1] = (state[0] + state[1] + 33) % MAX;
    Ok(Val::Double(state[0] as f64 / MAX as f64))
}
