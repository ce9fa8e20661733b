//! NULLIF: the comparison, and literals that take the type of a column beside them.

use nfold_sql::ast::BinaryOp;
use nfold_types::convert::number;
use nfold_types::temporal::{DateFlags, MICROS_PER_SECOND, parse};
use nfold_types::{ColumnType, SqlError, TypeKind, Value};

use super::BlockBinder;
use super::cast::cast_to;
use super::types::is_hex;
use crate::logical::collate;
use crate::logical::expr::{Class, Expr, ExprKind, ExprType};

/// Each integer below this limit is a DOUBLE.
const EXACT_END: f64 = (1_u64 << 53) as f64;

impl BlockBinder<'_> {
    /// Converts the first argument of NULLIF as MySQL does before it compares the arguments.
    /// Returns the argument that is compared, if that is another one than the result.
    pub(super) fn convert_nullif(&self, a: &mut Expr, b: &Expr) -> Option<Expr> {
        let mut compared = None;
        if let Some(converted) = self.as_compared(a, b) {
            *a = converted;
        } else if let Some(number) = self.as_begun_number(a, b) {
            compared = Some(std::mem::replace(a, number));
        }
        self.take_compared_collation(a, b);
        compared
    }

    /// The first argument of NULLIF in the type of the second, if it is a constant beside a TIME,
    /// YEAR or BIGINT column, or a number beside a DATE column, and a value of that type. MySQL
    /// converts such a constant before it compares, and then returns it in this type.
    fn as_compared(&self, literal: &Expr, column: &Expr) -> Option<Expr> {
        let to = self.column_behind(column)?.ty;
        if !is_convertible_to(&to.kind) {
            return None;
        }
        let value = self.constant_value(literal)?;
        let ty = match to.kind {
            TypeKind::Time(_) if is_time(&value) => ExprType::new(to, true),
            TypeKind::Year => {
                let year = Value::Int(year_of(&value)?);
                let ty = ExprType::new(ColumnType::new(TypeKind::Year), true).with_width(4);
                return Some(cast_to(Expr::constant(year, ExprType::bigint(false)), ty));
            }
            TypeKind::Date if is_date_number(&value) => ExprType::new(to, true),
            TypeKind::BigInt => {
                let number = whole_number(&value, &literal.ty)?;
                let ty = match to.unsigned {
                    true => ExprType::ubigint(true),
                    false => ExprType::bigint(true),
                };
                return Some(Expr::constant(bigint(number, to.unsigned)?, ty));
            }
            _ => return None,
        };
        Some(cast_to(literal.clone(), ty))
    }

    /// The value of a constant, if it is known before the statement runs. That of a marker is not.
    pub(super) fn constant_value(&self, e: &Expr) -> Option<Value> {
        match &e.kind {
            ExprKind::Const(value) => Some(value.clone()),
            ExprKind::Param(n) => self.cx.literals?.read(*n),
            _ => self.cx.funcs.value_of(e),
        }
    }

    /// The number that NULLIF returns for a text literal beside a BIGINT column that does not have
    /// all of the literal: it is the number with which the text begins, or 0. The comparison reads
    /// the text, and warns of it.
    fn as_begun_number(&self, literal: &Expr, column: &Expr) -> Option<Expr> {
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

    /// Moves a literal text, the first argument of NULLIF, to the collation in which it is
    /// compared: as in MySQL, NULLIF returns it in that collation.
    fn take_compared_collation(&self, literal: &mut Expr, other: &Expr) {
        let text = |e: &Expr| e.ty.class() == Class::String && !is_hex(&e.ty);
        let is_literal = matches!(literal.kind, ExprKind::Const(_) | ExprKind::Param(_));
        if !is_literal || !text(literal) || !text(other) {
            return;
        }
        let sides = [&literal.ty, &other.ty].into_iter();
        let Ok(merged) = collate::merge(sides, self.cx.connection, "nullif") else {
            return; // the comparison fails
        };
        let set = merged.collation.known().charset;
        if set == literal.ty.col.charset() || set.is_binary() {
            literal.ty.col.collation = merged.collation;
        }
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
pub(super) fn is_time(value: &Value) -> bool {
    match value {
        Value::Bytes(text) => parse::parse_time(text)
            .is_ok_and(|t| !t.truncated && !t.clamped && t.dated.is_none() && t.odd.is_none()),
        Value::Int(n) => parse::time_of_number(*n).is_ok_and(|(_, clamped)| !clamped),
        Value::UInt(n) => i64::try_from(*n).is_ok_and(|n| is_time(&Value::Int(n))),
        Value::Decimal(d) => d
            .truncate(0)
            .to_i64()
            .is_some_and(|n| is_time(&Value::Int(n))),
        Value::Double(d) => d.abs() < EXACT_END && is_time(&Value::Int(*d as i64)),
        _ => false,
    }
}

/// The year that a literal is: a number of one, two or four digits, or a date.
fn year_of(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Int(n) => *n,
        Value::UInt(n) => i64::try_from(*n).ok()?,
        Value::Decimal(d) => d.round(0)?.to_i64()?,
        Value::Double(d) if d.abs() < EXACT_END => d.round_ties_even() as i64,
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

/// The value of a constant that is no integer itself, if it is a whole number.
fn whole_number(value: &Value, ty: &ExprType) -> Option<i128> {
    match value {
        Value::Bytes(bytes) if is_hex(ty) && bytes.len() <= 8 => {
            Some(bytes.iter().fold(0, |n, byte| n << 8 | i128::from(*byte)))
        }
        Value::Bytes(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Value::Decimal(d) if *d == d.truncate(0) => d.truncate(0).to_string().parse().ok(),
        Value::Double(d) => (d.fract() == 0.0 && d.abs() < EXACT_END).then_some(*d as i128),
        Value::Date(d) => Some(i128::from(d.to_number())),
        Value::DateTime(d) if d.micros() == 0 => Some(i128::from(d.to_number())),
        Value::Time(t) if t.micros() % MICROS_PER_SECOND == 0 => Some(i128::from(t.to_number())),
        _ => None,
    }
}

/// A number as a value of BIGINT or BIGINT UNSIGNED.
fn bigint(number: i128, unsigned: bool) -> Option<Value> {
    match unsigned {
        true => u64::try_from(number).ok().map(Value::UInt),
        false => i64::try_from(number).ok().map(Value::Int),
    }
}
