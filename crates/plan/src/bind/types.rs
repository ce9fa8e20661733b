//! The result types of operators and aggregates, and the comparison of IN lists.

use nfold_types::collation::CollationId;
use nfold_types::sql_type::NOT_FIXED_DECIMALS;
use nfold_types::{ColumnType, ErrorCode, SqlError, TextSize, TypeKind, Value};

use super::compare::{is_double, is_integer_list, is_year_text, row_kind};
use crate::logical::clauses::AggFunc;
use crate::logical::collate::{self, Operand, listed_number};
pub(crate) use crate::logical::collate::{charset_collation, collation_named};
use crate::logical::common_type::float_shape;
use crate::logical::context::PlanCx;
use crate::logical::expr::{
    ArithOp, Class, CmpKind, Coercibility, Expr, ExprKind, ExprType, MAX_KEPT_CHARS, TextOrigin,
    operand,
};
use crate::logical::func::FuncSet;
use crate::logical::mode::SqlMode;

/// Joins conditions by AND. A single condition is returned unchanged.
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

/// How `left` is compared with the members of a list parameter. If its members need different
/// comparisons, the result is `Double`, and the executor chooses the comparison of each member
/// itself. In a list of rows (`rows`) the types of each column are unknown, so the comparison that
/// suits the operand is chosen.
pub(crate) fn list_kind(
    left: &Expr,
    members: &[ExprType],
    rows: bool,
    connection: CollationId,
) -> Result<CmpKind, SqlError> {
    let mut kinds = Vec::new();
    let number = |m: &&ExprType| m.class().is_number();
    let numbers = members.iter().filter(number).count();
    let values = members.iter().filter(|m| m.class() != Class::Null);
    if !rows && left.ty.class().is_temporal() && numbers > 0 {
        return Ok(listed_number(left.ty.class(), numbers == values.count()));
    }
    if !rows && is_year_text(left, members.iter()) {
        return Ok(CmpKind::String(connection));
    }
    if !rows && is_integer_list(left, members.iter()) {
        return Ok(CmpKind::Int);
    }
    let text = members.iter().find(|m| m.class() == Class::String);
    if rows && let Some(kind) = row_kind(&left.ty, text, connection)? {
        return Ok(kind);
    }
    for m in values {
        if !rows && is_double(&left.ty, m, numbers > 0) {
            kinds.push(CmpKind::Double);
            continue;
        }
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
        // All members are NULL, so any comparison without a conversion will do.
        [] => {
            let sides = [operand(left), Operand::Constant];
            collate::comparison(&left.ty, &ExprType::null(), sides, connection, "in")
        }
        [first, rest @ ..] if rest.iter().all(|k| k == first) => Ok(*first),
        all if rows => Ok(all.iter().copied().find(own).unwrap_or(CmpKind::Double)),
        _ => {
            let types = std::iter::once(&left.ty).chain(members);
            let texts = collate::of_texts(types, connection, " IN ")?;
            Ok(texts.unwrap_or(CmpKind::Double))
        }
    }
}

pub(crate) fn numeric_of_temporal(ty: &ExprType) -> ExprType {
    let (p, s) = ty.decimal_shape();
    if s == 0 {
        ExprType::int(p + 1, ty.nullable)
    } else {
        ExprType::decimal(p, s, ty.nullable)
    }
}

/// Whether the type is that of a hexadecimal or bit literal, which acts as a number.
pub(crate) fn is_hex(ty: &ExprType) -> bool {
    ty.col.zerofill && matches!(ty.col.kind, TypeKind::VarBinary(_))
}

fn integer(digits: u32, unsigned: bool, nullable: bool) -> ExprType {
    let mut ty = ExprType::int(digits + u32::from(!unsigned), nullable);
    ty.col.unsigned = unsigned;
    ty
}

/// The type of the negation of `e`.
pub(super) fn negated_type(e: &Expr, funcs: &dyn FuncSet) -> ExprType {
    let (nullable, (p, s)) = (e.ty.nullable, e.ty.decimal_shape());
    match (e.ty.class(), &e.kind) {
        // Without its sign the value may exceed BIGINT.
        (Class::Int, ExprKind::Const(Value::Int(v))) if *v < 0 => ExprType::decimal(p, 0, nullable),
        // The literal of a statement whose values are read at bind time. It is unsigned only if it
        // needs the 64th bit.
        (Class::Int, ExprKind::Param(_)) if e.ty.col.unsigned => ExprType::decimal(20, 0, nullable),
        (Class::Int, _) => {
            // As in MySQL, a computed constant below zero or beyond BIGINT becomes a DECIMAL.
            let beyond = match funcs.value_of(e) {
                Some(Value::Int(v)) => v < 0,
                Some(Value::UInt(v)) => v > i64::MAX as u64,
                _ => false,
            };
            match beyond {
                true => ExprType::decimal(p, 0, nullable),
                false => ExprType::int(p + 1, nullable),
            }
        }
        (Class::Decimal, _) => ExprType::decimal(p, s, nullable),
        _ => ExprType::double_fixed(e.ty.decimals(), nullable),
    }
}

/// The type of an arithmetic operation (manual, "Arithmetic Operators"). Length and decimals follow
/// MySQL's `Item_func_*::result_precision`.
pub(crate) fn arith_type(op: ArithOp, a: &ExprType, b: &ExprType, cx: &PlanCx<'_>) -> ExprType {
    let more = u32::from(cx.div_precision_increment);
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
    let class = |t: &ExprType| if is_hex(t) { Class::Int } else { t.class() };
    let is = |c: Class| class(&a) == c || class(&b) == c;
    if op == ArithOp::IntDiv {
        return integer(whole_digits(&a), unsigned, nullable);
    }
    if is(Class::Double) || is(Class::String) || is(Class::Json) || is(Class::Null) {
        return real_type(op, &a, &b, more, nullable);
    }
    let ((pa, sa), (pb, sb)) = (a.decimal_shape(), b.decimal_shape());
    let (ia, ib) = (pa - sa.min(pa), pb - sb.min(pb));
    let ints = class(&a) == Class::Int && class(&b) == Class::Int;
    if ints && op != ArithOp::Div {
        return match op {
            ArithOp::Sub if cx.mode.has(SqlMode::NO_UNSIGNED_SUBTRACTION) => {
                integer(pa.max(pb) + 1, false, nullable)
            }
            ArithOp::Mod => {
                let mut ty = ExprType::int(pa.max(pb) + 1, nullable);
                ty.col.unsigned = a.col.unsigned;
                ty
            }
            ArithOp::Mul => integer(pa + pb, unsigned, nullable),
            _ => integer(pa.max(pb) + 1, unsigned, nullable),
        };
    }
    let (p, s) = match op {
        ArithOp::Add | ArithOp::Sub => (ia.max(ib) + sa.max(sb) + 1, sa.max(sb)),
        ArithOp::Mul => (pa + pb, (sa + sb).min(30)),
        ArithOp::Div => (pa + sb + more, (sa + more).min(30)),
        // The result of MOD is no longer than either operand.
        _ => (pa.max(pb), sa.max(sb)),
    };
    let mut ty = ExprType::decimal(p, s, nullable);
    ty.col.unsigned = a.col.unsigned && b.col.unsigned;
    ty
}

/// The type of a bit operation: a binary string if all operands are binary strings and at least one
/// is not a literal that acts as a number, otherwise an unsigned integer (manual, "Bit Functions
/// and Operators").
pub(crate) fn bits_type(operands: &[&ExprType], nullable: bool) -> ExprType {
    let binary = |t: &&ExprType| {
        t.class() == Class::String
            && t.col.collation == CollationId::BINARY
            && !t.col.is_enum_or_set()
    };
    let number = |t: &&ExprType| is_hex(t) || t.class() == Class::Null;
    let fits = |t: &&ExprType| binary(t) || t.class() == Class::Null;
    if !operands.iter().all(fits) || operands.iter().all(number) {
        return ExprType::ubigint(nullable);
    }
    let bytes = operands.iter().map(|t| t.max_length()).max().unwrap_or(0);
    let coercibility = Coercibility::Coercible;
    ExprType {
        origin: TextOrigin::Cached,
        ..ExprType::string(bytes, CollationId::BINARY, coercibility, nullable)
    }
}

/// The maximum length of a binary string argument of BIT_AND, BIT_OR and BIT_XOR, in bytes.
const MAX_BITS_BYTES: u64 = 511;

/// The maximum number of digits before the point in the result of DIV.
fn whole_digits(a: &ExprType) -> u32 {
    match a.class() {
        Class::Double if a.col.decimals < NOT_FIXED_DECIMALS => {
            a.col.width.saturating_sub(u32::from(a.col.decimals))
        }
        Class::Double => 21,
        Class::String => a.byte_length().min(20) as u32,
        Class::Json => 20,
        Class::Null => 0,
        _ => {
            let (p, s) = a.decimal_shape();
            p - s.min(p)
        }
    }
}

fn real_type(op: ArithOp, a: &ExprType, b: &ExprType, more: u32, nullable: bool) -> ExprType {
    let mut ty = ExprType::double(nullable);
    (ty.col.decimals, ty.col.width) = float_shape(&[a, b]);
    if op == ArithOp::Div && ty.col.decimals < NOT_FIXED_DECIMALS {
        let decimals = (u32::from(ty.col.decimals) + more).min(u32::from(NOT_FIXED_DECIMALS));
        ty = ExprType::double_fixed(decimals as u8, nullable);
        let whole = (a.max_length() as u32).saturating_sub(u32::from(a.decimals()));
        ty.col.width = ty.col.width.min(whole + decimals);
    }
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
        "json_arrayagg" => AggFunc::JsonArray,
        "json_objectagg" => AggFunc::JsonObject,
        "any_value" => AggFunc::Any,
        _ => return None,
    })
}

pub(crate) fn aggregate_type(
    func: AggFunc,
    args: &[Expr],
    cx: &PlanCx<'_>,
    name: &str,
) -> Result<ExprType, SqlError> {
    let connection = cx.connection;
    Ok(match func {
        AggFunc::CountStar | AggFunc::Count => ExprType::bigint(false),
        AggFunc::BitAnd | AggFunc::BitOr | AggFunc::BitXor => {
            let ty = bits_type(&[&args[0].ty], false);
            if ty.class() == Class::String && ty.max_length() > MAX_BITS_BYTES {
                let code = ErrorCode::ER_INVALID_BITWISE_AGGREGATE_OPERANDS_SIZE;
                return Err(SqlError::new(code, &[]));
            }
            ty
        }
        AggFunc::JsonArray => ExprType::json(true).with_item_name("json_arrayagg"),
        AggFunc::JsonObject => ExprType::json(true).with_item_name("json_objectagg"),
        AggFunc::StdPop | AggFunc::StdSamp | AggFunc::VarPop | AggFunc::VarSamp => {
            ExprType::double(true)
        }
        AggFunc::Sum | AggFunc::Avg => {
            let ty = &args[0].ty;
            let more = match func {
                AggFunc::Sum => 0,
                _ => cx.div_precision_increment,
            };
            match ty.class() {
                Class::Double | Class::String | Class::Json | Class::Null if !is_hex(ty) => {
                    ExprType::double_fixed(ty.decimals().saturating_add(more), true)
                }
                _ => {
                    let (p, s) = ty.decimal_shape();
                    let digits = if func == AggFunc::Sum {
                        22
                    } else {
                        u32::from(more)
                    };
                    ExprType::decimal(p + digits, (s + u32::from(more)).min(30), true)
                }
            }
        }
        AggFunc::Min | AggFunc::Max if args[0].ty.coercibility == Coercibility::NoCollation => {
            let own = collate::as_string(&args[0].ty, connection);
            return Err(collate::mix_error(&[own, own], name));
        }
        AggFunc::Min | AggFunc::Max => ExprType {
            nullable: true,
            origin: TextOrigin::Cached,
            ..args[0].ty.item()
        },
        AggFunc::Any => ExprType {
            origin: TextOrigin::Cached,
            ..collate::common_type(&[&args[0].ty], connection, name)?.computed()
        },
        AggFunc::GroupConcat => {
            let merged = collate::merge(args.iter().map(|a| &a.ty), connection, name)?;
            let loose = [Coercibility::Numeric, Coercibility::Ignorable];
            let collation = if loose.contains(&merged.coercibility) {
                connection
            } else {
                merged.collation
            };
            let chars = u32::try_from(cx.group_concat_max_len).unwrap_or(u32::MAX);
            let kind = match collation == CollationId::BINARY {
                true if chars <= MAX_KEPT_CHARS => TypeKind::VarBinary(chars),
                true => TypeKind::Blob(TextSize::Long),
                false if chars <= MAX_KEPT_CHARS => TypeKind::VarChar(chars),
                false => TypeKind::Text(TextSize::Long),
            };
            let mut col = ColumnType::string(kind, collation);
            if chars > MAX_KEPT_CHARS {
                let bytes = u32::from(collation.known().charset.max_len);
                col.width = chars.saturating_mul(bytes);
            }
            ExprType {
                col,
                nullable: true,
                coercibility: merged.coercibility,
                origin: TextOrigin::Literal,
                item_name: Default::default(),
            }
        }
    })
}
