//! Control-flow functions, and one or two functions of each kind as models for the other modules.

use nfold_plan::expr::{Class, Coercibility, Expr, ExprKind, ExprType, TextOrigin};
use nfold_plan::func::{ANY_ARGS, Infer, infer_int, infer_numeric_of};
use nfold_sql::ast::BinaryOp;
use nfold_types::{CollationId, ColumnType, Decimal, ErrorCode, SqlError, TypeKind};

use super::builtin::{Evaluated, Func, Inferred, func, unchanged, unchecked};
use crate::expr::eval::{EvalCx, Val, convert};

pub(super) static FUNCS: &[Func] = &[
    unchanged(func("if", (3, 3), infer_if, eval_if)),
    unchecked(func("ifnull", (2, 2), infer_coalesce, eval_coalesce)),
    unchecked(func(
        "coalesce",
        (1, ANY_ARGS),
        infer_coalesce,
        eval_coalesce,
    )),
    unchanged(func("nullif", (2, 2), infer_nullif, eval_nullif)),
    func(
        "isnull",
        (1, 1),
        |_, _| Ok(ExprType::boolean(false)),
        eval_isnull,
    ),
    func(
        "abs",
        (1, 1),
        |_, args| Ok(infer_numeric_of(args)),
        eval_abs,
    ),
    func("length", (1, 1), infer_int::<11>, eval_length),
    func("char_length", (1, 1), infer_int::<11>, eval_char_length),
    func("concat", (1, ANY_ARGS), infer_concat, eval_concat),
    func("lower", (1, 1), infer_same_string, eval_lower),
    func("now", (0, 1), infer_now, eval_now),
    func(
        "last_insert_id",
        (0, 1),
        |_, _| Ok(ExprType::ubigint(false)),
        eval_last_insert_id,
    ),
    func("database", (0, 0), infer_database, eval_database),
    func(
        nfold_plan::func::COMPUTED_ONCE,
        (1, 1),
        |_, args| Ok(args[0].ty.clone()),
        eval_computed_once,
    ),
    func(
        nfold_plan::func::IN_RANGE,
        (1, 1),
        |_, _| Ok(ExprType::boolean(false)),
        eval_in_range,
    ),
];

/// The value of a constant, which is computed at its first use in an execution.
/// One that the statement has checked before its first row has warned there.
fn eval_computed_once<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let e = &args[0];
    if let Some(value) = known_constant(cx, e) {
        return Ok(value);
    }
    let value = match ty.origin {
        TextOrigin::Checked => EvalCx::owned(cx.silently(|cx| cx.val(e).map(Val::into_value))?),
        _ => cx.val(e)?,
    };
    let mut known = cx.st.lists.constants.borrow_mut();
    let id = std::ptr::from_ref(e) as usize;
    known.get_or_insert_default().insert(id, value.to_value());
    Ok(value)
}

/// The value of a constant that this execution has computed already.
pub(crate) fn known_constant<'a>(cx: &EvalCx<'a>, e: &Expr) -> Option<Val<'a>> {
    let id = std::ptr::from_ref(e) as usize;
    let known = cx.st.lists.constants.borrow();
    let value = known.as_ref()?.get(&id)?;
    Some(EvalCx::owned(value.clone()))
}

/// Whether a comparison of a column with a literal holds for any value of the column's type.
fn eval_in_range<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let ExprKind::Compare { op, sides, .. } = &args[0].kind else {
        return Ok(Val::Int(1));
    };
    let [a, b] = &**sides;
    let (column, literal, op) = match a.as_column() {
        Some(_) => (a, b, *op),
        None => (b, a, mirrored(*op)),
    };
    let literal = match cx.val(literal)? {
        Val::Int(v) => Some(Decimal::from(v)),
        Val::UInt(v) => Some(Decimal::from(v)),
        Val::Decimal(d) => Some(d),
        // Doubles tell no long numbers apart.
        Val::Double(v) if is_short(&column.ty.col) || is_beyond(&column.ty.col, v) => {
            Some(Decimal::from_f64(v).unwrap_or_else(|| Decimal::max_of(65, 0, v < 0.0)))
        }
        _ => None,
    };
    let holds = literal.is_none_or(|v| is_in_range(&column.ty.col, op, &v));
    Ok(Val::Int(holds.into()))
}

/// Whether a double holds each value of an exact type.
fn is_short(column: &ColumnType) -> bool {
    match &column.kind {
        TypeKind::Decimal { precision, .. } => *precision <= 15,
        kind => *kind != TypeKind::BigInt,
    }
}

/// Whether a double is far beyond the integers.
fn is_beyond(column: &ColumnType, v: f64) -> bool {
    column.kind == TypeKind::BigInt && v.abs() > 1e20
}

/// The operator of the comparison with exchanged sides.
fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        op => op,
    }
}

/// Whether `column op v` holds for any value of the column's type. As in MySQL, a number with too
/// many digits for a DECIMAL is out of range, and any other is compared.
fn is_in_range(column: &ColumnType, op: BinaryOp, v: &Decimal) -> bool {
    let equals = matches!(op, BinaryOp::Eq | BinaryOp::NullSafeEq);
    if let TypeKind::Decimal { precision, scale } = column.kind {
        let beyond = v.int_digits() > u32::from(precision - scale);
        return match op {
            _ if equals => !beyond && v.without_trailing_zeros().scale() <= scale,
            BinaryOp::Lt | BinaryOp::Le => !(beyond && v.is_negative()),
            _ => !beyond || v.is_negative(),
        };
    }
    if column.kind == TypeKind::Year {
        let years = Decimal::from(1901i64)..=Decimal::from(2155i64);
        return !equals || v.is_zero() || years.contains(v);
    }
    let bits = match column.kind {
        TypeKind::TinyInt => 8,
        TypeKind::SmallInt => 16,
        TypeKind::MediumInt => 24,
        TypeKind::Int => 32,
        TypeKind::BigInt => 64,
        _ => return true,
    };
    let (least, most) = match column.unsigned {
        true => (Decimal::from(0i64), Decimal::from(u64::MAX >> (64 - bits))),
        false => (
            Decimal::from(i64::MIN >> (64 - bits)),
            Decimal::from(i64::MAX >> (64 - bits)),
        ),
    };
    match op {
        BinaryOp::Lt => *v > least,
        BinaryOp::Le => *v >= least,
        BinaryOp::Gt => *v < most,
        BinaryOp::Ge => *v <= most,
        _ => v.without_trailing_zeros().scale() == 0 && (least..=most).contains(v),
    }
}

fn infer_if(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    cx.common(&[&args[1], &args[2]])
}

fn eval_if<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let chosen = if cx.bool(&args[0])? == Some(true) {
        &args[1]
    } else {
        &args[2]
    };
    cx.val_alike(chosen, ty)
}

fn infer_coalesce(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let mut ty = cx.common(&args.iter().collect::<Vec<_>>())?;
    ty.nullable = args.iter().all(|e| e.ty.nullable);
    Ok(ty)
}

fn eval_coalesce<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let is_null = |arg: &Expr| {
        let literal = matches!(arg.kind, ExprKind::Const(_) | ExprKind::Param(_));
        literal && arg.ty.class() == Class::Null
    };
    for arg in args.iter().filter(|arg| !is_null(arg)) {
        let v = cx.val_as(arg, ty)?;
        if !v.is_null() {
            return Ok(v);
        }
    }
    Ok(Val::Null)
}

fn infer_nullif(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(ExprType {
        nullable: true,
        ..args[0].ty.item()
    })
}

/// The binder puts the comparison with the second argument in its place.
fn eval_nullif<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    match cx.bool(&args[1])? {
        Some(true) => Ok(Val::Null),
        _ => cx.val_alike(&args[0], ty),
    }
}

fn eval_isnull<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let e = &args[0];
    if convert::is_never_null_cast(e) {
        return Ok(Val::Int(0));
    }
    Ok(Val::Int(i64::from(cx.val(e)?.is_null())))
}

fn eval_abs<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    Ok(match ty.class() {
        Class::Int => match cx.integer(&args[0])? {
            None => Val::Null,
            Some(v) => {
                let magnitude = v.unsigned_abs() as u64;
                if ty.col.unsigned {
                    Val::UInt(magnitude)
                } else {
                    Val::Int(i64::try_from(magnitude).map_err(|_| {
                        SqlError::new(
                            ErrorCode::ER_DATA_OUT_OF_RANGE,
                            &[&"BIGINT", &cx.describe_call("abs", args)],
                        )
                    })?)
                }
            }
        },
        Class::Decimal => cx
            .decimal(&args[0])?
            .map_or(Val::Null, |d| Val::Decimal(d.abs())),
        _ => cx
            .f64(&args[0])?
            .map_or(Val::Null, |v| Val::Double(v.abs())),
    })
}

fn eval_length<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    Ok(cx
        .bytes(&args[0])?
        .map_or(Val::Null, |b| Val::Int(b.len() as i64)))
}

fn eval_char_length<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let collation = convert::string_collation(cx, &args[0].ty);
    let Some(text) = cx.bytes(&args[0])? else {
        return Ok(Val::Null);
    };
    let chars = super::builtin::char_len(cx, collation.known().charset, &text)?;
    Ok(Val::Int(chars as i64))
}

fn infer_concat(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let args: Vec<&Expr> = args.iter().collect();
    cx.string_from(&args, cx.total_length(&args)?)
}

fn eval_concat<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let mut out = Vec::new();
    for arg in args {
        match cx.text(arg, ty.collation())? {
            Some(text) => cx.append(&text, &mut out)?,
            None => return Ok(Val::Null),
        }
        if out.len() > cx.env().max_allowed_packet() {
            break;
        }
    }
    cx.checked_string(out, "concat")
}

fn infer_same_string(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    cx.string_from(&[&args[0]], cx.total_length(&[&args[0]])?)
}

fn eval_lower<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let Some(text) = cx.text(&args[0], ty.collation())? else {
        return Ok(Val::Null);
    };
    if ty.collation() == CollationId::BINARY {
        return Ok(Val::Bytes(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let known = ty.collation().known();
    super::builtin::in_pieces(cx, known.charset, &text, 6, |piece| {
        known.lower(piece, &mut out)
    })?;
    Ok(Val::string(out))
}

fn infer_now(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let fsp = super::dates::clock_digits(cx, args)?;
    Ok(ExprType::new(
        ColumnType::new(TypeKind::DateTime(fsp)),
        false,
    ))
}

fn eval_now<'a>(cx: &EvalCx<'a>, _: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    Ok(Val::DateTime(cx.now(ty.col.fsp())))
}

fn eval_last_insert_id<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    match args.first() {
        None => Ok(Val::UInt(cx.env().last_insert_id())),
        Some(arg) => {
            let Some(v) = cx.integer(arg)? else {
                return Ok(Val::Null);
            };
            cx.env().set_last_insert_id(v as u64);
            Ok(Val::UInt(v as u64))
        }
    }
}

fn infer_database(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::string(
        64,
        CollationId::UTF8MB3_GENERAL_CI,
        Coercibility::SysConst,
        true,
    ))
}

fn eval_database<'a>(cx: &EvalCx<'a>, _: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    Ok(cx
        .env()
        .database()
        .map_or(Val::Null, |d| Val::string(d.into_bytes())))
}
