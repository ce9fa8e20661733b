//! The evaluator: one match over the kinds of expressions.

use std::borrow::Cow;

use nfold_plan::expr::{Class, ColumnAt, Expr, ExprKind, ExprType, FuncId, TextOrigin};
use nfold_sql::ast::IsTest;
use nfold_types::temporal::MICROS_PER_SECOND;
use nfold_types::{ErrorCode, SqlError, TypeKind, Value, ValueRef};

use super::eval::branches::{Branch, branch_of};
use super::eval::{
    CONDITION_WORK, COPY_BYTES, EvalCx, RowRef, Val, arith, compare, convert, row_error,
};

/// The work of a function call with small values.
const CALL_WORK: u64 = 100;

/// The first number beyond the integers of 64 bits.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

impl<'a> EvalCx<'a> {
    /// Evaluates an expression. Frequent kinds return the result of their own function as it is: to
    /// take the value out and wrap it again copies it twice.
    pub fn val(&self, e: &'a Expr) -> Result<Val<'a>, SqlError> {
        use ExprKind::*;
        Ok(match &e.kind {
            Const(v) => self.stored(v.as_ref(), &e.ty),
            Param(n) => self.stored(self.st.params.get(*n), &e.ty),
            Column(at) => return self.column(self.rows, *at, &e.ty),
            Outer { level, at } => {
                let frame = self
                    .outer
                    .len()
                    .checked_sub(usize::from(*level))
                    .and_then(|i| self.outer.get(i));
                match frame {
                    Some(rows) => self.column(rows, *at, &e.ty)?,
                    None => return Err(SqlError::not_supported("outer reference at this place")),
                }
            }
            UserVar(name) | VaryingUserVar(name) => self.user_var(name)?,
            AssignUserVar(name, value) => self.assign_user_var(name, value)?,
            SysVar { scope, name } => Self::owned(self.env().sysvar(*scope, name)?),
            Neg(_) | BitNot(_) | Arith(..) | Bit(..) => return arith::eval(self, e),
            Compare { .. }
            | CompareRows { .. }
            | Between { .. }
            | In { .. }
            | InRows { .. }
            | ArrayHas { .. }
            | InParam { .. }
            | Like { .. } => Val::from_bool(compare::eval(self, e)?),
            And(list) => Val::from_bool(self.all(list)?),
            Or(list) => Val::from_bool(self.any_of(e, list)?),
            Xor(sides) => match self.bool(&sides[0])? {
                Some(a) => Val::from_bool(self.bool(&sides[1])?.map(|b| a != b)),
                None => Val::Null,
            },
            Not(inner) => Val::from_bool(self.bool(inner)?.map(|b| !b)),
            Is {
                expr,
                test,
                negated,
            } => {
                let holds = match test {
                    // As in MySQL, a CAST that is never NULL is not evaluated.
                    IsTest::Null if !negated && convert::is_never_null_cast(expr) => false,
                    IsTest::Null => self.val(expr)?.is_null(),
                    IsTest::True => self.bool(expr)? == Some(true),
                    IsTest::False => self.bool(expr)? == Some(false),
                    IsTest::Unknown => self.bool(expr)?.is_none(),
                };
                Val::Int(i64::from(holds != *negated))
            }
            Case { whens, otherwise } => match self.branch(e, whens)? {
                Some(at) => self.val_alike(&whens[at].1, &e.ty)?,
                None => match otherwise {
                    Some(other) => self.val_alike(other, &e.ty)?,
                    None => Val::Null,
                },
            },
            Cast { expr, to } => {
                let (v, from) = match Class::of(to) {
                    Class::Time => self.time_source(expr)?,
                    Class::Date | Class::DateTime => self.alternative(expr)?,
                    Class::Decimal | Class::Double => self.numeric(expr)?,
                    _ if to.kind == TypeKind::BigInt => self.dates_as_number(expr, to.unsigned)?,
                    _ => (self.val(expr)?, &expr.ty),
                };
                if to.kind == TypeKind::BigInt && !to.unsigned {
                    self.check_range(expr, &v)?;
                }
                convert::cast(self, v, from, to, &e.ty.item_name)?
            }
            Collate(inner) => match self.bytes(inner)? {
                Some(text) => Val::Bytes(text),
                None => Val::Null,
            },
            IntervalArith { .. } | Extract { .. } | TimestampDiff { .. } | Trim { .. } => {
                return super::func::eval_special(self, e);
            }
            Call { func, args } => {
                self.checkpoint(CALL_WORK)?;
                return super::func::eval_fn(*func)(self, args, &e.ty);
            }
            Subquery { index, use_as } => {
                return self.st.subqueries.value(self, *index, use_as, &e.ty);
            }
            Default(v) => self.stored(v.as_ref(), &e.ty),
        })
    }

    /// The first WHEN of the CASE expression `e` that is true.
    fn branch(&self, e: &'a Expr, whens: &'a [(Expr, Expr)]) -> Result<Option<usize>, SqlError> {
        match branch_of(self, e, whens)? {
            Branch::At(at) => return Ok(Some(at)),
            Branch::Else => return Ok(None),
            Branch::Unknown => {}
        }
        for (at, (when, _)) in whens.iter().enumerate() {
            self.checkpoint(CONDITION_WORK)?;
            if self.bool(when)? == Some(true) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Evaluates an expression where a number is wanted; the type is that of the value. MySQL reads
    /// the number of the chosen alternative of IF, CASE and NULLIF, not of its text or date.
    #[inline]
    pub fn numeric(&self, e: &'a Expr) -> Result<(Val<'a>, &'a ExprType), SqlError> {
        let class = e.ty.class();
        let chosen = matches!(e.kind, ExprKind::Case { .. } | ExprKind::Call { .. });
        match chosen && (class.is_temporal() || matches!(class, Class::String | Class::Json)) {
            true => self.number_of(e),
            false => Ok((self.val(e)?, &e.ty)),
        }
    }

    /// Checks a DOUBLE that is read as an integer of 64 bits. MySQL warns about a column's value
    /// beyond the range, and takes the limit of the range instead; a literal's becomes the limit
    /// without a warning.
    ///
    /// # Errors
    /// 1690 for a computed value beyond the range.
    #[inline]
    pub(crate) fn check_range(&self, e: &Expr, v: &Val<'_>) -> Result<(), SqlError> {
        match v {
            Val::Double(v) if !(-INTEGERS_END..INTEGERS_END).contains(&v.round_ties_even()) => {
                self.beyond_integers(e, *v)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn beyond_integers(&self, e: &Expr, number: f64) -> Result<(), SqlError> {
        match &e.kind {
            ExprKind::Column(_) | ExprKind::Outer { .. } if e.ty.origin == TextOrigin::Column => {
                let mut text = Vec::new();
                convert::write_text(&Val::Double(number), &e.ty, &mut text);
                convert::warn_incorrect(self, "INTEGER", &text, &e.ty);
                Ok(())
            }
            ExprKind::Call { func, .. } if super::func::is_unchanged(*func) => Ok(()),
            ExprKind::Call { .. } | ExprKind::Arith(..) | ExprKind::Neg(_) => {
                Err(arith::range_error_of("BIGINT", &self.describe(e)))
            }
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn number_of(&self, e: &'a Expr) -> Result<(Val<'a>, &'a ExprType), SqlError> {
        let ExprKind::Call { func, args } = &e.kind else {
            return self.alternative(e);
        };
        if let Some(number) = super::func::number_among_times(self, *func, args, &e.ty)? {
            return Ok((number, &e.ty));
        }
        match args.as_slice() {
            [value, equal] if super::func::is_unchanged(*func) => match self.bool(equal)? {
                Some(true) => Ok((Val::Null, &e.ty)),
                _ => self.numeric(value),
            },
            _ => self.alternative(e),
        }
    }

    /// Evaluates an expression where its text is wanted. As in MySQL, the text of a TIME that
    /// ADDTIME, SUBTIME or an interval yields has six digits behind the point, or none.
    #[inline]
    pub fn val_for_text(&self, e: &'a Expr) -> Result<Val<'a>, SqlError> {
        match e.ty.col.kind {
            TypeKind::Time(_) if super::func::adds_to_time(e) => self.added_time(e),
            _ => self.val(e),
        }
    }

    #[cold]
    fn added_time(&self, e: &'a Expr) -> Result<Val<'a>, SqlError> {
        Ok(match self.val(e)? {
            Val::Time(t) => {
                let whole = t.micros() % MICROS_PER_SECOND == 0;
                Val::Time(t.with_fsp(if whole { 0 } else { 6 }))
            }
            v => v,
        })
    }

    /// Whether the function's result as an integer is cut, not rounded: that of UNIX_TIMESTAMP.
    pub(super) fn cuts_fraction(func: FuncId) -> bool {
        super::func::is_unix_timestamp(func)
    }

    /// Whether the number of a date or time is rounded where an integer is wanted, not the date or
    /// time.
    pub(super) fn rounds_as_number(e: &Expr) -> bool {
        super::func::rounds_as_number(e)
    }

    /// Evaluates an expression where CAST wants an integer: the number of GREATEST and LEAST among
    /// dates, UNIX_TIMESTAMP without its fraction (not as UNSIGNED), the rounded number of a sum
    /// with a time, and the text of any other expression of a string type.
    fn dates_as_number(
        &self,
        e: &'a Expr,
        unsigned: bool,
    ) -> Result<(Val<'a>, &'a ExprType), SqlError> {
        let date = |e: &Expr| matches!(e.ty.class(), Class::Date | Class::DateTime);
        match &e.kind {
            ExprKind::Call { args, .. }
                if e.ty.class() == Class::String && args.iter().any(date) =>
            {
                self.extreme_of_dates(e)
            }
            ExprKind::Call { func, .. } if !unsigned && Self::cuts_fraction(*func) => {
                Ok(match self.val(e)? {
                    Val::Decimal(d) => (Val::Decimal(d.truncate(0)), &e.ty),
                    v => (v, &e.ty),
                })
            }
            _ if Self::rounds_as_number(e) => {
                let v = self.val(e)?;
                let number = convert::rounded_number(&v).map(Val::Int);
                Ok((number.unwrap_or(v), &e.ty))
            }
            _ => Ok((self.val(e)?, &e.ty)),
        }
    }

    #[inline(never)]
    fn extreme_of_dates(&self, e: &'a Expr) -> Result<(Val<'a>, &'a ExprType), SqlError> {
        if let ExprKind::Call { func, args } = &e.kind
            && let Some(number) = super::func::number_among_times(self, *func, args, &e.ty)?
        {
            let number = match number {
                Val::DateTime(d) => Val::Int(d.to_number() as i64),
                Val::Date(d) => Val::Int(d.to_number() as i64),
                number => number,
            };
            return Ok((number, &e.ty));
        }
        Ok((self.val(e)?, &e.ty))
    }

    /// Evaluates an expression where a date or time is wanted: the value, and its type, of the
    /// alternative that IF or CASE chooses, not of their common type.
    pub fn alternative(&self, e: &'a Expr) -> Result<(Val<'a>, &'a ExprType), SqlError> {
        let mut e = e;
        loop {
            let chosen = match &e.kind {
                ExprKind::Case { whens, otherwise } => match self.branch(e, whens)? {
                    Some(at) => Some(&whens[at].1),
                    None => otherwise.as_deref(),
                },
                ExprKind::Call { func, args } if super::func::is_unchanged(*func) => {
                    match args.as_slice() {
                        [condition, yes, no] => match self.bool(condition)? {
                            Some(true) => Some(yes),
                            _ => Some(no),
                        },
                        _ => return Ok((self.val(e)?, &e.ty)),
                    }
                }
                // As in MySQL, the NULL of a CAST to DOUBLE is 0 here.
                ExprKind::Cast { to, .. } if Class::of(to) == Class::Double => {
                    let v = self.val(e)?;
                    return Ok((if v.is_null() { Val::Double(0.0) } else { v }, &e.ty));
                }
                _ => return Ok((self.val(e)?, &e.ty)),
            };
            match chosen {
                Some(chosen) => e = chosen,
                None => return Ok((Val::Null, &e.ty)),
            }
        }
    }

    /// Whether `e` is IF, CASE or NULLIF.
    pub fn is_chosen(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Case { .. } => true,
            ExprKind::Call { func, .. } => super::func::is_unchanged(*func),
            _ => false,
        }
    }

    /// As [`EvalCx::alternative`], where a time is wanted. MySQL reads the time from the text of a
    /// date that GREATEST or LEAST returns.
    pub fn time_source(&self, e: &'a Expr) -> Result<(Val<'a>, &'a ExprType), SqlError> {
        let (v, ty) = self.alternative(e)?;
        let text = match (&e.kind, &v) {
            (ExprKind::Call { func, .. }, Val::Date(_)) if super::func::is_extreme(*func) => {
                convert::to_bytes(self, v, ty).map_or(Val::Null, Val::Bytes)
            }
            _ => v,
        };
        Ok((text, ty))
    }

    /// As [`EvalCx::val_as`], but a DECIMAL keeps its own scale, and a date or time in a string
    /// result remains one. For the results of IF and CASE.
    pub fn val_alike(&self, e: &'a Expr, ty: &ExprType) -> Result<Val<'a>, SqlError> {
        let v = match ty.class() {
            Class::String => self.val_for_text(e)?,
            _ => self.val(e)?,
        };
        match (ty.class(), &v) {
            (Class::Decimal, _) => {
                Ok(convert::to_decimal(self, &v, &e.ty).map_or(Val::Null, Val::Decimal))
            }
            (Class::String, Val::Date(_) | Val::DateTime(_) | Val::Time(_)) => Ok(v),
            _ => self.alike(v, &e.ty, ty),
        }
    }

    /// Evaluates an expression, and converts its value to the class and character set of `ty`. For
    /// the results of COALESCE.
    pub fn val_as(&self, e: &'a Expr, ty: &ExprType) -> Result<Val<'a>, SqlError> {
        let v = match ty.class() {
            Class::String => self.val_for_text(e)?,
            _ => self.val(e)?,
        };
        self.alike(v, &e.ty, ty)
    }

    /// The value of a BIT or YEAR as decimal digits, in the character set of `ty`.
    pub fn digits(&self, e: &'a Expr, ty: &ExprType) -> Result<Val<'a>, SqlError> {
        let v = self.val(e)?;
        self.alike(v, &ExprType::ubigint(true), ty)
    }

    fn alike(&self, v: Val<'a>, from: &ExprType, ty: &ExprType) -> Result<Val<'a>, SqlError> {
        let alike = from.col.kind == ty.col.kind
            && from.col.collation == ty.col.collation
            && from.col.unsigned == ty.col.unsigned;
        if v.is_null() || alike {
            return Ok(v);
        }
        Ok(match ty.class() {
            Class::String => {
                // Only a binary constant beside a document becomes text of another set.
                let binary = from.class() == Class::String && from.col.charset().is_binary();
                let text = match binary && !ty.col.charset().is_binary() {
                    true => convert::to_text_for(self, v, from, ty.collation())?,
                    false => convert::to_text(self, v, from, ty.collation()),
                };
                text.map_or(Val::Null, Val::Bytes)
            }
            Class::Int => match convert::to_integer(self, &v, from) {
                Some(i) if ty.col.unsigned || matches!(ty.col.kind, TypeKind::Bit(_)) => {
                    Val::UInt(i as u64)
                }
                Some(i) => Val::Int(i as i64),
                None => Val::Null,
            },
            Class::Decimal => match convert::to_decimal(self, &v, from) {
                Some(d) => {
                    let scale = ty.decimal_shape().1 as u8;
                    Val::Decimal(if d.scale() < scale {
                        d.rescale(scale).unwrap_or(d)
                    } else {
                        d
                    })
                }
                None => Val::Null,
            },
            Class::Double => {
                convert::to_f64(self, &v, from).map_or(Val::Null, |v| match ty.col.kind {
                    TypeKind::Float => Val::Float(v as f32),
                    _ => Val::Double(v),
                })
            }
            Class::DateTime => convert::to_datetime(self, &v, from).map_or(Val::Null, |d| {
                Val::DateTime(nfold_types::DateTime::from_packed(d.packed(), ty.col.fsp()))
            }),
            Class::Date => {
                convert::to_datetime(self, &v, from).map_or(Val::Null, |d| Val::Date(d.date()))
            }
            Class::Time => convert::to_time(self, &v, from).map_or(Val::Null, Val::Time),
            Class::Json => super::eval::json::cast(self, v, from)?,
            Class::Null => Val::Null,
        })
    }

    /// A constant, parameter or column value in the form that evaluation uses.
    #[inline]
    fn stored(&self, v: ValueRef<'a>, _ty: &ExprType) -> Val<'a> {
        match v {
            ValueRef::Timestamp(t) => Val::DateTime(convert::local(self, t, t.fsp)),
            other => Val::from_ref(other),
        }
    }

    /// Assigns the value of an expression to a user variable, and returns it. A long string is
    /// copied in pieces.
    #[inline(never)]
    fn assign_user_var(&self, name: &str, value: &'a Expr) -> Result<Val<'a>, SqlError> {
        let v = self.val(value)?;
        let stored = match &v {
            Val::Bytes(text) if text.len() > COPY_BYTES => {
                let copy = |start, end, to: &mut Vec<u8>| to.extend(&text[start..end]);
                Value::Bytes(self.in_pieces(text.len(), copy)?)
            }
            v => convert::var_value(self, v.borrowed(), &value.ty),
        };
        let ty = Some(&value.ty.col);
        self.env().set_user_var(name, stored, ty)?;
        Ok(v)
    }

    /// The value of a user variable. A long string is copied in pieces.
    #[inline(never)]
    fn user_var(&self, name: &str) -> Result<Val<'a>, SqlError> {
        let bytes = match self.env().short_user_var(name, COPY_BYTES) {
            Ok(value) => return Ok(Self::owned(value)),
            Err(bytes) => bytes,
        };
        let piece = |start, end, to: &mut Vec<u8>| self.env().append_user_var(name, start..end, to);
        Ok(Val::string(self.in_pieces(bytes, piece)?))
    }

    pub(crate) fn owned(v: nfold_types::Value) -> Val<'a> {
        match v {
            nfold_types::Value::Bytes(b) => Val::Bytes(Cow::Owned(b)),
            nfold_types::Value::Null => Val::Null,
            nfold_types::Value::Int(v) => Val::Int(v),
            nfold_types::Value::UInt(v) => Val::UInt(v),
            nfold_types::Value::Float(v) => Val::Float(v),
            nfold_types::Value::Double(v) => Val::Double(v),
            nfold_types::Value::Decimal(v) => Val::Decimal(v),
            nfold_types::Value::Date(v) => Val::Date(v),
            nfold_types::Value::DateTime(v) => Val::DateTime(v),
            nfold_types::Value::Timestamp(_) => Val::Null,
            nfold_types::Value::Time(v) => Val::Time(v),
        }
    }

    #[inline]
    fn column(
        &self,
        rows: &'a [RowRef<'a>],
        at: ColumnAt,
        ty: &ExprType,
    ) -> Result<Val<'a>, SqlError> {
        match rows[usize::from(at.table)].get(at.column) {
            Ok(v) => Ok(self.stored(v, ty)),
            Err(e) => Err(row_error(&e)),
        }
    }

    /// AND of a list: false if a member is false, otherwise NULL if a member is NULL.
    pub fn all(&self, list: &'a [Expr]) -> Result<Option<bool>, SqlError> {
        let mut result = Some(true);
        for e in list {
            self.checkpoint(CONDITION_WORK)?;
            match self.bool(e)? {
                Some(false) => return Ok(Some(false)),
                None => result = None,
                Some(true) => {}
            }
        }
        Ok(result)
    }

    /// OR of a list (`e` is the whole expression): true if a member is true, otherwise NULL if a
    /// member is NULL.
    #[inline(never)]
    fn any_of(&self, e: &'a Expr, list: &'a [Expr]) -> Result<Option<bool>, SqlError> {
        if let Some(found) = compare::in_ranges(self, e, list)? {
            return Ok(found);
        }
        let mut result = Some(false);
        for e in list {
            self.checkpoint(CONDITION_WORK)?;
            match self.bool(e)? {
                Some(true) => return Ok(Some(true)),
                None => result = None,
                Some(false) => {}
            }
        }
        Ok(result)
    }

    /// Whether all conditions of a list are true.
    #[inline]
    pub fn passes(&self, list: &'a [Expr]) -> Result<bool, SqlError> {
        for e in list {
            let holds = match e.kind {
                ExprKind::Or(_) => self.holds(e)?,
                _ => self.bool(e)? == Some(true),
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a condition is true. Unlike [`Self::bool`] it does not tell false from NULL, so that
    /// AND ends at a member that is NULL, as in MySQL.
    #[inline(never)]
    fn holds(&self, e: &'a Expr) -> Result<bool, SqlError> {
        match &e.kind {
            ExprKind::And(list) => {
                for e in list {
                    self.checkpoint(CONDITION_WORK)?;
                    if !self.holds(e)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ExprKind::Or(list) => {
                if let Some(found) = compare::in_ranges(self, e, list)? {
                    return Ok(found == Some(true));
                }
                for e in list {
                    self.checkpoint(CONDITION_WORK)?;
                    if self.holds(e)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(self.bool(e)? == Some(true)),
        }
    }

    /// A function's string result. If it exceeds `max_allowed_packet`, NULL with warning 1301.
    pub fn checked_string(&self, text: Vec<u8>, function: &str) -> Result<Val<'a>, SqlError> {
        let max = self.env().max_allowed_packet();
        if text.len() > max {
            self.warn(
                ErrorCode::ER_WARN_ALLOWED_PACKET_OVERFLOWED,
                &[&function, &max],
            );
            return Ok(Val::Null);
        }
        self.checkpoint(text.len() as u64)?;
        Ok(Val::string(text))
    }
}
