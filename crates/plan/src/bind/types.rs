//! The types that operators and aggregates have, and how lists compare.

use nfold_types::collation::{Collation, CollationId};
use nfold_types::{ColumnType, ErrorCode, SqlError, TextSize, TypeKind};

use super::expr::operand;
use crate::collate::{self, Operand};
use crate::expr::{ArithOp, Class, CmpKind, Coercibility, Expr, ExprKind, ExprType, string_type};
use crate::mode::SqlMode;
use crate::query::AggFunc;

/// Conditions put together with AND; a single one stays as it is.
pub(crate) fn and(mut list: Vec<Expr>) -> Expr {
    if list.len() == 1
        && let Some(one) = list.pop()
    {
        return one;
    }
    let nullable = list.iter().any(|e| e.ty.nullable);
    Expr {
        kind: ExprKind::And(list),
        ty: ExprType::boolean(nullable),
    }
}

/// How an operand is compared with the members of a list. Members of several kinds are compared one by one, each in its own way; of a
/// list of rows it is not known which kinds stand in which column, so the one is taken that suits the operand.
pub(crate) fn list_kind(
    left: &Expr,
    members: &[ExprType],
    rows: bool,
    connection: CollationId,
) -> Result<CmpKind, SqlError> {
    let mut kinds = Vec::new();
    for m in members.iter().filter(|m| m.class() != Class::Null) {
        match collate::comparison(
            &left.ty,
            m,
            [operand(left), Operand::Constant],
            connection,
            "in",
        ) {
            Ok(kind) => kinds.push(kind),
            Err(e) if !rows => return Err(e),
            Err(_) => {}
        }
    }
    let own = |k: &CmpKind| match left.ty.class() {
        Class::Int => *k == CmpKind::Int,
        Class::Decimal => *k == CmpKind::Decimal,
        Class::String => matches!(k, CmpKind::String(_)),
        Class::Date | Class::DateTime => *k == CmpKind::DateTime,
        Class::Time => *k == CmpKind::Time,
        _ => false,
    };
    match kinds.as_slice() {
        [] => Ok(CmpKind::Int),
        [first, rest @ ..] if rest.iter().all(|k| k == first) => Ok(*first),
        all if rows => Ok(all.iter().copied().find(own).unwrap_or(CmpKind::Double)),
        _ => Ok(CmpKind::Double),
    }
}

pub(crate) fn numeric_of_temporal(ty: &ExprType) -> ExprType {
    let (p, s) = ty.decimal_shape();
    if s == 0 {
        ExprType::bigint(ty.nullable)
    } else {
        ExprType::decimal(p, s, ty.nullable)
    }
}

/// Type of an arithmetic operator (manual, "Arithmetic Operators").
pub(crate) fn arith_type(op: ArithOp, a: &ExprType, b: &ExprType, mode: SqlMode) -> ExprType {
    let numeric = |t: &ExprType| {
        if t.class().is_temporal() {
            numeric_of_temporal(t)
        } else {
            t.clone()
        }
    };
    let (a, b) = (numeric(a), numeric(b));
    let zero = matches!(op, ArithOp::Div | ArithOp::IntDiv | ArithOp::Mod);
    let nullable = zero || a.nullable || b.nullable;
    let unsigned = a.col.unsigned
        || b.col.unsigned
        || [&a, &b]
            .iter()
            .any(|t| matches!(t.col.kind, TypeKind::Bit(_) | TypeKind::Year));
    let hex = |t: &ExprType| t.col.zerofill && matches!(t.col.kind, TypeKind::VarBinary(_));
    let class = |t: &ExprType| if hex(t) { Class::Int } else { t.class() };
    let is = |c: Class| class(&a) == c || class(&b) == c;
    if op == ArithOp::IntDiv {
        return if unsigned {
            ExprType::ubigint(nullable)
        } else {
            ExprType::bigint(nullable)
        };
    }
    if is(Class::Double) || is(Class::String) || is(Class::Null) {
        return ExprType::double(nullable);
    }
    let ints = [&a, &b]
        .iter()
        .all(|t| matches!(class(t), Class::Int | Class::Null));
    if ints && op != ArithOp::Div {
        if class(&a) == Class::Null && class(&b) == Class::Null {
            return ExprType::double(true);
        }
        let unsigned = match op {
            ArithOp::Sub if mode.has(SqlMode::NO_UNSIGNED_SUBTRACTION) => false,
            ArithOp::Mod => a.col.unsigned,
            _ => unsigned,
        };
        return if unsigned {
            ExprType::ubigint(nullable)
        } else {
            ExprType::bigint(nullable)
        };
    }
    let ((pa, sa), (pb, sb)) = (a.decimal_shape(), b.decimal_shape());
    let (p, s) = match op {
        ArithOp::Add | ArithOp::Sub => {
            let s = sa.max(sb);
            ((pa - sa.min(pa)).max(pb - sb.min(pb)) + s + 1, s)
        }
        ArithOp::Mul => (pa + pb, (sa + sb).min(30)),
        ArithOp::Div => (pa + sb + 4, (sa + 4).min(30)),
        _ => (
            (pa - sa.min(pa)).max(pb - sb.min(pb)) + sa.max(sb),
            sa.max(sb),
        ),
    };
    let mut ty = ExprType::decimal(p, s, nullable);
    ty.col.unsigned = a.col.unsigned && b.col.unsigned;
    ty
}

pub(crate) fn aggregate_named(name: &str, star: bool) -> Option<AggFunc> {
    Some(match name {
        "count" if star => AggFunc::CountStar,
        "count" => AggFunc::Count,
        "sum" => AggFunc::Sum,
        "avg" => AggFunc::Avg,
        "min" => AggFunc::Min,
        "max" => AggFunc::Max,
        "bit_and" => AggFunc::BitAnd,
        "bit_or" => AggFunc::BitOr,
        "bit_xor" => AggFunc::BitXor,
        "std" | "stddev" | "stddev_pop" => AggFunc::StdPop,
        "stddev_samp" => AggFunc::StdSamp,
        "variance" | "var_pop" => AggFunc::VarPop,
        "var_samp" => AggFunc::VarSamp,
        "group_concat" => AggFunc::GroupConcat,
        "any_value" => AggFunc::Any,
        _ => return None,
    })
}

pub(crate) fn aggregate_type(
    func: AggFunc,
    args: &[Expr],
    connection: CollationId,
    name: &str,
) -> Result<ExprType, SqlError> {
    Ok(match func {
        AggFunc::CountStar | AggFunc::Count => {
            let mut ty = ExprType::bigint(false);
            ty.col.width = 21; // as MySQL describes it
            ty
        }
        AggFunc::BitAnd | AggFunc::BitOr | AggFunc::BitXor => ExprType::ubigint(false),
        AggFunc::StdPop | AggFunc::StdSamp | AggFunc::VarPop | AggFunc::VarSamp => {
            ExprType::double(true)
        }
        AggFunc::Sum | AggFunc::Avg => {
            let ty = &args[0].ty;
            match ty.class() {
                Class::Double | Class::String | Class::Null => ExprType::double(true),
                _ => {
                    let (p, s) = ty.decimal_shape();
                    let (p, s) = if func == AggFunc::Sum {
                        (p + 22, s)
                    } else {
                        (p + 4, (s + 4).min(30))
                    };
                    ExprType::decimal(p, s, true)
                }
            }
        }
        AggFunc::Min | AggFunc::Max | AggFunc::Any => {
            let mut ty = ExprType {
                nullable: true,
                ..args[0].ty.clone()
            };
            if ty.col.is_enum_or_set() && func != AggFunc::Any {
                ty.col = string_type(ty.char_length(), ty.col.collation);
            }
            ty
        }
        AggFunc::GroupConcat => {
            let merged = collate::merge(args.iter().map(|a| &a.ty), connection, name)?;
            let collation = if merged.coercibility >= Coercibility::Numeric {
                connection
            } else {
                merged.collation
            };
            let size = if collation == CollationId::BINARY {
                TypeKind::Blob(TextSize::Long)
            } else {
                TypeKind::Text(TextSize::Long)
            };
            ExprType {
                col: ColumnType::string(size, collation),
                nullable: true,
                coercibility: merged.coercibility,
            }
        }
    })
}

/// The default collation of a character set by name; error 1115.
pub(crate) fn charset_collation(name: &str) -> Result<CollationId, SqlError> {
    nfold_types::charset::Charset::by_name(name)
        .map(|c| c.default_collation)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_CHARACTER_SET, &[&name]))
}

pub(crate) fn collation_named(name: &str) -> Result<CollationId, SqlError> {
    Collation::by_name(name)
        .map(|c| c.id)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_COLLATION, &[&name]))
}

/// For SET and SHOW: the type of an expression that stands alone.
pub fn bind_type(e: &Expr) -> &ColumnType {
    &e.ty.col
}
