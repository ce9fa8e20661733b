//! Evaluation of bound expressions over row images.
//!
//! Values are borrowed: columns from the row image, parameters from the statement's arena. Only
//! strings that an expression computes are owned. Conditions have three-valued logic:
//! `Option<bool>`, with `None` for NULL.

pub(crate) mod arith;
pub(crate) mod array_elements;
pub(crate) mod bits;
pub(crate) mod branches;
pub mod compare;
pub(crate) mod constant_checks;
pub mod convert;
pub mod held_rows;
pub(crate) mod json;
pub(crate) mod list;
pub(crate) mod prepared;
pub(crate) mod ranges;
mod row_counts;
mod scope;
mod subquery;
mod temporal;
pub(crate) mod temporal_list;
pub(crate) mod tuple;

use std::borrow::Cow;
use std::cell::RefCell;

use nfold_plan::expr::{Expr, ExprKind, ExprType};
use nfold_types::row::RowLayout;
use nfold_types::{
    Checkpoint, Date, DateTime, Decimal, ErrorCode, SqlError, Time, Value, ValueRef, Warnings,
    append_in_pieces,
};

use crate::env::SessionEnv;
use crate::env::params::Params;
pub use row_counts::RowCounts;
pub use scope::Scope;
pub use subquery::{Member, NoSubqueries, Subqueries};

/// A value during evaluation. A TIMESTAMP column is read as a DATETIME in the session's time zone,
/// ENUM and SET as `UInt`; [`EvalCx::bytes`] converts the latter to text.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Val<'a> {
    #[default]
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Decimal(Decimal),
    Bytes(Cow<'a, [u8]>),
    Date(Date),
    DateTime(DateTime),
    Time(Time),
}

impl<'a> Val<'a> {
    /// Whether the value is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Val::Null)
    }

    /// An owned string.
    pub fn string(v: Vec<u8>) -> Val<'a> {
        Val::Bytes(Cow::Owned(v))
    }

    /// 1, 0 or NULL.
    pub fn from_bool(v: Option<bool>) -> Val<'a> {
        v.map_or(Val::Null, |b| Val::Int(i64::from(b)))
    }

    /// The same value, borrowed: a string is not copied.
    pub fn borrowed(&self) -> Val<'_> {
        match self {
            Val::Bytes(text) => Val::Bytes(Cow::Borrowed(text)),
            other => other.clone(),
        }
    }

    /// The value in its stored form.
    pub fn as_value_ref(&self) -> ValueRef<'_> {
        match self {
            Val::Null => ValueRef::Null,
            Val::Int(v) => ValueRef::Int(*v),
            Val::UInt(v) => ValueRef::UInt(*v),
            Val::Float(v) => ValueRef::Float(*v),
            Val::Double(v) => ValueRef::Double(*v),
            Val::Decimal(v) => ValueRef::Decimal(*v),
            Val::Bytes(v) => ValueRef::Bytes(v),
            Val::Date(v) => ValueRef::Date(*v),
            Val::DateTime(v) => ValueRef::DateTime(*v),
            Val::Time(v) => ValueRef::Time(*v),
        }
    }

    /// As [`Self::to_value`], but an owned string is moved, not copied.
    pub fn into_value(self) -> Value {
        match self {
            Val::Bytes(Cow::Owned(text)) => Value::Bytes(text),
            other => other.to_value(),
        }
    }

    /// An owned copy.
    pub fn to_value(&self) -> Value {
        self.as_value_ref().to_owned()
    }

    /// Converts a value of the session or of a row. TIMESTAMP values must be converted to local
    /// time before.
    pub fn from_ref(v: ValueRef<'a>) -> Val<'a> {
        match v {
            ValueRef::Null => Val::Null,
            ValueRef::Int(v) => Val::Int(v),
            ValueRef::UInt(v) => Val::UInt(v),
            ValueRef::Float(v) => Val::Float(v),
            ValueRef::Double(v) => Val::Double(v),
            ValueRef::Decimal(v) => Val::Decimal(v),
            ValueRef::Bytes(v) => Val::Bytes(Cow::Borrowed(v)),
            ValueRef::Date(v) => Val::Date(v),
            ValueRef::DateTime(v) => Val::DateTime(v),
            ValueRef::Timestamp(_) => Val::Null,
            ValueRef::Time(v) => Val::Time(v),
        }
    }
}

/// A row slot: a row image with its layout. If `image` is `None`, all columns are NULL (the inner
/// side of an outer join).
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a> {
    pub layout: &'a RowLayout,
    pub image: Option<&'a [u8]>,
    /// For images that do not hold all columns of the slot in order: for each column, its position
    /// in `layout`, or [`ABSENT`].
    pub places: Option<&'a [u16]>,
}

/// In [`RowRef::places`]: the image lacks this column.
pub const ABSENT: u16 = u16::MAX;

impl<'a> RowRef<'a> {
    /// The value of a column of the slot.
    #[inline]
    pub fn get(&self, column: u16) -> Result<ValueRef<'a>, nfold_types::row::RowError> {
        let Some(image) = self.image else {
            return Ok(ValueRef::Null);
        };
        let at = match self.places {
            None => column,
            Some(places) => places[usize::from(column)],
        };
        self.layout.get(image, usize::from(at))
    }
}

/// The state that is constant during one execution of a statement.
#[derive(Clone, Copy)]
pub struct StmtState<'a> {
    pub params: &'a Params,
    pub env: &'a dyn SessionEnv,
    pub warnings: &'a RefCell<Warnings>,
    pub subqueries: &'a dyn Subqueries,
    /// For long computations: see [`EvalCx::checkpoint`].
    pub checkpoint: &'a dyn Checkpoint,
    /// The sorted forms of long IN lists, built at their first use.
    pub lists: &'a compare::ListCache,
    /// The rows that were sent, for warnings that name a row.
    pub counts: &'a RowCounts,
    /// Whether a lost value is an error, not a warning: division by zero, or an invalid date, in a
    /// statement that changes rows in strict mode.
    pub strict: bool,
    /// The meaning of the columns, for names in messages.
    pub scope: Scope<'a>,
    /// Whether the statement is an UPDATE or DELETE. The conditions are tested again on each row
    /// found by key, so constants are not rounded for the lookup.
    pub changes: bool,
}

pub use compare::ListCache;

/// The context of an evaluation. It is cheap to create for each row.
#[derive(Clone, Copy)]
pub struct EvalCx<'a> {
    pub rows: &'a [RowRef<'a>],
    /// The current rows of the enclosing queries, innermost last.
    pub outer: &'a [&'a [RowRef<'a>]],
    pub st: &'a StmtState<'a>,
}

/// The work of testing one condition of a list.
pub(crate) const CONDITION_WORK: u64 = 20;

/// The number of bytes of a large string that are copied between two checkpoints, and the work of
/// copying them: the memory is new, and the system has to clear it.
pub(crate) const COPY_BYTES: usize = 64 << 10;
const COPY_WORK: u64 = COPY_BYTES as u64 / 2;

/// Evaluates a call of a built-in function. The function evaluates its arguments itself, through
/// `cx`.
pub type EvalFn = for<'a> fn(&EvalCx<'a>, &'a [Expr], &'a ExprType) -> Result<Val<'a>, SqlError>;

impl<'a> EvalCx<'a> {
    /// The session.
    pub fn env(&self) -> &'a dyn SessionEnv {
        self.st.env
    }

    /// Counts the steps that a loop over a large value has done since the last call. Fails if the
    /// statement is killed or out of time; yields to other sessions from time to time
    /// ([`Checkpoint`]).
    #[inline]
    pub fn checkpoint(&self, work: u64) -> Result<(), SqlError> {
        self.st.checkpoint.checkpoint(work)
    }

    /// As [`Self::checkpoint`], for a function that cannot fail. False: the function must return
    /// early; the statement fails afterwards.
    pub fn goes_on(&self, work: u64) -> bool {
        self.checkpoint(work).is_ok()
    }

    /// Appends text, with checkpoints if it is long.
    #[inline]
    pub fn append(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
        append_in_pieces(text, out, self.st.checkpoint)
    }

    /// Builds a string of pieces: `append` is called with the start and end of each piece.
    pub fn in_pieces(
        &self,
        bytes: usize,
        mut append: impl FnMut(usize, usize, &mut Vec<u8>),
    ) -> Result<Vec<u8>, SqlError> {
        let mut text = Vec::with_capacity(bytes);
        while text.len() < bytes {
            let start = text.len();
            let end = bytes.min(start + COPY_BYTES);
            append(start, end, &mut text);
            if text.len() < end {
                break;
            }
            self.checkpoint(COPY_WORK)?;
        }
        Ok(text)
    }

    /// Adds a warning.
    pub fn warn(&self, code: ErrorCode, args: &[&dyn std::fmt::Display]) {
        self.st.warnings.borrow_mut().warn(code, args);
    }

    /// Evaluates a condition.
    pub fn bool(&self, e: &'a Expr) -> Result<Option<bool>, SqlError> {
        if let ExprKind::Compare { .. } = e.kind {
            return compare::eval(self, e);
        }
        let (v, ty) = self.numeric(e)?;
        Ok(convert::to_bool(self, &v, ty))
    }

    /// The value as a signed or unsigned integer, rounded. A string counts as the number at its
    /// start, with warning 1292 about the rest.
    pub fn integer(&self, e: &'a Expr) -> Result<Option<i128>, SqlError> {
        if let Some(v) = self.stored_integer(e) {
            return Ok(Some(v));
        }
        let (v, ty) = self.numeric(e)?;
        self.check_range(e, &v)?;
        Ok(self.whole_number(e, &v, ty))
    }

    /// The value of a constant, a parameter or a column of an integer type. None: it is NULL, or
    /// the general way evaluates it. That way moves values of all types through several results,
    /// which takes longer than reading an integer.
    #[inline]
    fn stored_integer(&self, e: &'a Expr) -> Option<i128> {
        if !e.ty.col.is_integer() {
            return None;
        }
        let value = match &e.kind {
            ExprKind::Const(v) => v.as_ref(),
            ExprKind::Param(n) => self.st.params.get(*n),
            ExprKind::Column(at) => {
                let row = self.rows.get(usize::from(at.table))?;
                row.get(at.column).ok()?
            }
            _ => return None,
        };
        match value {
            ValueRef::Int(v) => Some(i128::from(v)),
            ValueRef::UInt(v) => Some(i128::from(v)),
            _ => None,
        }
    }

    /// Converts the value `v` of `e` to an integer. A user variable with a string value causes no
    /// warning, as in MySQL.
    fn whole_number(&self, e: &Expr, v: &Val<'_>, ty: &ExprType) -> Option<i128> {
        match (&e.kind, v) {
            (ExprKind::UserVar(_) | ExprKind::VaryingUserVar(_), Val::Bytes(text))
                if !e.ty.col.is_json() =>
            {
                Some(convert::leading_integer(self, text))
            }
            (ExprKind::Call { func, .. }, Val::Decimal(d)) if Self::cuts_fraction(*func) => {
                d.truncate(0).to_i64().map(i128::from)
            }
            (_, Val::DateTime(_) | Val::Time(_)) if Self::rounds_as_number(e) => {
                Some(i128::from(convert::rounded_number(v)?))
            }
            _ => convert::to_integer(self, v, ty),
        }
    }

    /// The value as a BIGINT. A larger value is clamped; a DECIMAL then causes warning 1292.
    pub fn int(&self, e: &'a Expr) -> Result<Option<i64>, SqlError> {
        let clamped = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        if let Some(v) = self.stored_integer(e) {
            return Ok(Some(clamped(v)));
        }
        let (v, ty) = self.numeric(e)?;
        convert::warn_beyond(self, &v, false);
        self.check_range(e, &v)?;
        Ok(self.whole_number(e, &v, ty).map(clamped))
    }

    /// As [`Self::int`], for the length of a string. If the length is constant, but no user
    /// variable, MySQL evaluates it once more to describe the result, and warns twice.
    pub fn length(&self, e: &'a Expr) -> Result<Option<i64>, SqlError> {
        let variable = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_));
        if nfold_plan::expr::is_constant(e) && !e.any(&mut |e| variable(e)) {
            self.int(e)?;
        }
        self.int(e)
    }

    /// The value as a double.
    pub fn f64(&self, e: &'a Expr) -> Result<Option<f64>, SqlError> {
        let (v, ty) = self.numeric(e)?;
        Ok(convert::to_f64(self, &v, ty))
    }

    /// The value as a DECIMAL.
    pub fn decimal(&self, e: &'a Expr) -> Result<Option<Decimal>, SqlError> {
        let (v, ty) = self.numeric(e)?;
        Ok(convert::to_decimal(self, &v, ty))
    }

    /// The value as text in the character set of the expression's type; numbers and dates are in
    /// the connection's.
    pub fn bytes(&self, e: &'a Expr) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
        let v = self.val_for_text(e)?;
        Ok(convert::to_bytes(self, v, &e.ty))
    }

    /// The value as text in the character set of `collation`.
    pub fn text(
        &self,
        e: &'a Expr,
        collation: nfold_types::CollationId,
    ) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
        let v = self.val_for_text(e)?;
        Ok(convert::to_text(self, v, &e.ty, collation))
    }

    /// Calls `f` with a context whose warnings are ignored.
    pub(crate) fn silently<R>(&self, f: impl FnOnce(&EvalCx<'_>) -> R) -> R {
        let ignored = RefCell::new(Warnings::default());
        let state = StmtState {
            warnings: &ignored,
            ..*self.st
        };
        f(&EvalCx {
            st: &state,
            ..*self
        })
    }

    /// The value as text in the character set of the string that a function searches or changes.
    ///
    /// # Errors
    /// 3854 if the value has characters that this set lacks.
    pub fn text_for(
        &self,
        e: &'a Expr,
        subject: nfold_types::CollationId,
    ) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
        let v = self.val(e)?;
        convert::to_text_for(self, v, &e.ty, subject)
    }

    /// The value as a DATETIME. An invalid value is NULL with warning 1292.
    pub fn datetime(&self, e: &'a Expr) -> Result<Option<DateTime>, SqlError> {
        let (v, ty) = self.alternative(e)?;
        Ok(convert::to_datetime(self, &v, ty))
    }

    /// The value as a DATE. An invalid value is NULL with warning 1292.
    pub fn date(&self, e: &'a Expr) -> Result<Option<Date>, SqlError> {
        Ok(self.datetime(e)?.map(DateTime::date))
    }

    /// The value as a TIME. An invalid value is NULL with warning 1292.
    pub fn time(&self, e: &'a Expr) -> Result<Option<Time>, SqlError> {
        let (v, ty) = self.time_source(e)?;
        Ok(convert::to_time(self, &v, ty))
    }

    /// The session's local time at the start of the statement, truncated to `fsp` digits.
    pub fn now(&self, fsp: u8) -> DateTime {
        convert::local(self, self.st.env.now(), fsp)
    }
}

/// The client's error for a damaged row image.
pub(crate) fn row_error(e: &nfold_types::row::RowError) -> SqlError {
    SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, format!("row image: {e}"))
}
