//! NULLIF: the comparison, and literals that take the type of a column beside them.

use nfold_sql::ast::BinaryOp;
use nfold_types::convert::number;
use nfold_types::temporal::{DateFlags, parse};
use nfold_types::{ColumnType, SqlError, TypeKind, Value};

use super::BlockBinder;
use super::cast::cast_to;
use crate::logical::expr::{Class, Expr, ExprKind, ExprType};

/// Each integer below this limit is a DOUBLE.
const EXACT_END: f64 = (1_u64 << 53) as f64;

impl BlockBinder<'_> {
    /// The first argument of NULLIF in the type of the second, if it is a literal beside a TIME,
    /// YEAR or BIGINT column, or a number beside a DATE column, and a value of that type. MySQL
    /// converts such a literal before it compares, and then returns it in this type.
    pub(super) fn as_compared(&self, literal: &Expr, column: &Expr) -> Option<Expr> {
        let to = self.column_behind(column)?.ty;
        let value = match &literal.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::Param(n) if is_convertible_to(&to.kind) => self.cx.literals?.read(*n)?,
            _ => return None,
        };
        let ty = match to.kind {
            TypeKind::Time(_) if is_time(&value) => ExprType::new(to, true),
            TypeKind::Year => {
                let year = Value::Int(year_of(&value)?);
                let ty = ExprType::new(ColumnType::new(TypeKind::Year), true).with_width(4);
                return Some(cast_to(Expr::constant(year, ExprType::bigint(false)), ty));
            }
            TypeKind::Date if is_date_number(&value) => ExprType::new(to, true),
            TypeKind::BigInt if !to.unsigned && is_whole(&value) => ExprType::bigint(true),
            _ => return None,
        };
        Some(cast_to(literal.clone(), ty))
    }

    /// The number that NULLIF returns for a text literal beside a BIGINT column that does not have
    /// all of the literal: it is the number with which the text begins, or 0. The comparison reads
    /// the text, and warns of it.
    pub(super) fn as_begun_number(&self, literal: &Expr, column: &Expr) -> Option<Expr> {
        let to = self.column_behind(column)?.ty;
        let set = literal.ty.col.charset();
        let is_text = literal.ty.class() == Class::String
            && matches!(
                literal.ty.col.kind,
                TypeKind::VarChar(_) | TypeKind::Char(_)
            )
            && set.is_ascii_compatible()
            && !set.is_binary();
        if to.kind != TypeKind::BigInt || to.unsigned || !is_text {
            return None;
        }
        let value = match &literal.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::Param(n) => self.cx.literals?.read(*n)?,
            _ => return None,
        };
        let Value::Bytes(text) = value else {
            return None;
        };
        let number = number::parse_double(&text).value;
        let exact = number.fract() == 0.0 && number.abs() < EXACT_END;
        exact.then(|| Expr::constant(Value::Int(number as i64), ExprType::bigint(true)))
    }

    /// The equality that NULLIF of these arguments tests.
    pub(super) fn nullif_equal(&mut self, [a, b]: [&Expr; 2]) -> Result<Expr, SqlError> {
        let (a, b, operation) = (a.clone(), b.clone(), "nullif");
        // Beside a YEAR column a literal 20 is the year 2020. A computed 20 is not.
        match b.kind {
            ExprKind::Call { .. } => self.compare_as_is(BinaryOp::Eq, a, b, operation),
            _ => self.compare_for(BinaryOp::Eq, a, b, operation),
        }
    }
}

/// Whether NULLIF converts literals to a column of this type.
fn is_convertible_to(kind: &TypeKind) -> bool {
    use TypeKind::{BigInt, Date, Time, Year};
    matches!(kind, Time(_) | Year | Date | BigInt)
}

/// Whether a literal is a time without loss.
fn is_time(value: &Value) -> bool {
    match value {
        Value::Bytes(text) => parse::parse_time(text)
            .is_ok_and(|t| !t.truncated && !t.clamped && t.dated.is_none() && t.odd.is_none()),
        Value::Int(n) => parse::time_of_number(*n).is_ok_and(|(_, clamped)| !clamped),
        Value::Decimal(d) => (d.truncate(0).to_i64())
            .is_some_and(|n| parse::time_of_number(n).is_ok_and(|(_, clamped)| !clamped)),
        _ => false,
    }
}

/// The year that a literal is: a number of one, two or four digits, or a date.
fn year_of(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Int(n) => *n,
        Value::Decimal(d) => d.round(0)?.to_i64()?,
        Value::Bytes(text) => match std::str::from_utf8(text).ok()?.parse() {
            Ok(number) => number,
            Err(_) => {
                let date = parse::parse_datetime(text, DateFlags::default()).ok()?;
                let year = (!date.truncated).then_some(date.value.date().year())?;
                i64::from(year)
            }
        },
        _ => return None,
    };
    matches!(number, 0..=99 | 1901..=2155).then_some(number)
}

/// Whether a literal is an integer that is a date.
fn is_date_number(value: &Value) -> bool {
    let Value::Int(n) = value else {
        return false;
    };
    let flags = DateFlags {
        no_zero_in_date: true,
        no_zero_date: true,
        allow_invalid: false,
    };
    *n <= 99_991_231 && parse::datetime_of_number(*n, flags).is_ok()
}

/// Whether a literal that is no integer has the value of one.
fn is_whole(value: &Value) -> bool {
    match value {
        Value::Bytes(text) => std::str::from_utf8(text).is_ok_and(|t| t.parse::<i64>().is_ok()),
        Value::Decimal(d) => *d == d.truncate(0) && d.to_i64().is_some(),
        _ => false,
    }
}
