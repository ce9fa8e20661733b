//! Evaluation of bound expressions over row images.
//!
//! An evaluation borrows: columns come straight from the row image, parameters from the statement's
//! arena; only strings that an expression makes itself are owned. Three-valued logic is
//! `Option<bool>`, NULL being `None`.

pub(crate) mod arith;
pub(crate) mod bits;
pub(crate) mod branches;
pub mod compare;
pub mod convert;
pub(crate) mod json;
pub(crate) mod json_scalar;
pub(crate) mod list;
pub(crate) mod moment;
pub(crate) mod prepared;
pub(crate) mod ranges;
mod scope;
mod subquery;
mod temporal;
pub(crate) mod tuple;

use std::borrow::Cow;
use std::cell::RefCell;

use nfold_plan::expr::{Expr, ExprKind, ExprType};
use nfold_types::row::RowLayout;
use nfold_types::{
    Checkpoint, Date, DateTime, Decimal, ErrorCode, SqlError, Time, Value, ValueRef, Warnings,
};

use crate::env::SessionEnv;
use crate::env::params::Params;
pub use scope::Scope;
pub use subquery::{Member, NoSubqueries, Subqueries};

/// A value while an expression is evaluated. TIMESTAMP columns arrive as DATETIME in the session's
/// time zone; ENUM and SET as `UInt`, which [`EvalCx::bytes`] turns into their text.
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
    /// Whether it is NULL.
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

    /// The same value; a text is not copied.
    pub fn borrowed(&self) -> Val<'_> {
        match self {
            Val::Bytes(text) => Val::Bytes(Cow::Borrowed(text)),
            other => other.clone(),
        }
    }

    /// As a stored value.
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

    /// As [`Self::to_value`]; a text that it owns is not copied.
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

    /// From a value as the session or a row hands it over. TIMESTAMP values must have been
    /// converted before.
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

/// One row slot: a row image and how to read it. `image` None: the row is all NULL (the inner side
/// of a left join).
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a> {
    pub layout: &'a RowLayout,
    pub image: Option<&'a [u8]>,
    /// Place in `layout` of each of the slot's columns, where the image does not hold all of them
    /// in order ([`ABSENT`]: not there).
    pub places: Option<&'a [u16]>,
}

/// In [`RowRef::places`]: the image lacks this column.
pub const ABSENT: u16 = u16::MAX;

impl<'a> RowRef<'a> {
    /// The value of column `column` of the slot.
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

/// What stays the same during one execution of a statement.
#[derive(Clone, Copy)]
pub struct StmtState<'a> {
    pub params: &'a Params,
    pub env: &'a dyn SessionEnv,
    pub warnings: &'a RefCell<Warnings>,
    pub subqueries: &'a dyn Subqueries,
    /// For long computations: see [`EvalCx::checkpoint`].
    pub checkpoint: &'a dyn Checkpoint,
    /// Sorted forms of long IN lists, made at the first use.
    pub lists: &'a compare::ListCache,
    /// An error of strict mode instead of a warning (division by zero, bad dates in INSERT and
    /// UPDATE).
    pub strict: bool,
    /// What columns are called, for messages.
    pub scope: Scope<'a>,
    /// UPDATE or DELETE: a row that its key finds has to match as well, so constants are not
    /// rounded to find it.
    pub changes: bool,
}

pub use compare::ListCache;

/// Everything an evaluation sees. Cheap to make for each row.
#[derive(Clone, Copy)]
pub struct EvalCx<'a> {
    pub rows: &'a [RowRef<'a>],
    /// Rows of the enclosing queries, innermost last.
    pub outer: &'a [&'a [RowRef<'a>]],
    pub st: &'a StmtState<'a>,
}

/// Work of a condition in a list.
pub(crate) const CONDITION_WORK: u64 = 20;

/// Bytes of a large text that are copied between two checkpoints, and the work of it: the memory is
/// new, and the system clears it.
pub(crate) const COPY_BYTES: usize = 64 << 10;
const COPY_WORK: u64 = COPY_BYTES as u64 / 2;

/// A built-in function: arguments are evaluated by itself, through `cx`.
pub type EvalFn = for<'a> fn(&EvalCx<'a>, &'a [Expr], &'a ExprType) -> Result<Val<'a>, SqlError>;

impl<'a> EvalCx<'a> {
    /// The session.
    pub fn env(&self) -> &'a dyn SessionEnv {
        self.st.env
    }

    /// To be called from loops over large values, with the steps done since the last call: ends a
    /// statement that is killed or out of time, and gives way to other sessions ([`Checkpoint`]).
    #[inline]
    pub fn checkpoint(&self, work: u64) -> Result<(), SqlError> {
        self.st.checkpoint.checkpoint(work)
    }

    /// As [`Self::checkpoint`] for what cannot fail; false: it gives up, and the statement fails
    /// soon.
    pub fn goes_on(&self, work: u64) -> bool {
        self.checkpoint(work).is_ok()
    }

    /// Appends a text, with checkpoints if it is large.
    #[inline]
    pub fn append(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
        if text.len() <= COPY_BYTES {
            out.extend_from_slice(text);
            return Ok(());
        }
        out.reserve(text.len());
        for piece in text.chunks(COPY_BYTES) {
            out.extend_from_slice(piece);
            self.checkpoint(COPY_WORK)?;
        }
        Ok(())
    }

    /// An owned text, made of pieces that `append` adds to it, given where each begins and ends.
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

    /// The truth of an expression.
    pub fn bool(&self, e: &'a Expr) -> Result<Option<bool>, SqlError> {
        if let ExprKind::Compare { .. } = e.kind {
            return compare::eval(self, e);
        }
        let v = self.val(e)?;
        Ok(convert::to_bool(self, &v, &e.ty))
    }

    /// Its value as an integer of either sign, rounded; strings by their leading number, with
    /// warning 1292.
    pub fn integer(&self, e: &'a Expr) -> Result<Option<i128>, SqlError> {
        let v = self.val(e)?;
        Ok(self.whole_number(e, &v))
    }

    /// The integer of the value `v` of `e`. MySQL reads it from the text of a user variable without
    /// a warning.
    fn whole_number(&self, e: &Expr, v: &Val<'_>) -> Option<i128> {
        match (&e.kind, v) {
            (ExprKind::UserVar(_), Val::Bytes(text)) if !e.ty.col.is_json() => {
                Some(convert::leading_integer(self, text))
            }
            _ => convert::to_integer(self, v, &e.ty),
        }
    }

    /// Its value as a signed 64-bit integer; larger ones are cut, a DECIMAL with warning 1292.
    pub fn int(&self, e: &'a Expr) -> Result<Option<i64>, SqlError> {
        let v = self.val(e)?;
        convert::warn_beyond(self, &v, false);
        Ok(self
            .whole_number(e, &v)
            .map(|v| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64))
    }

    /// As [`Self::int`] for a length. MySQL reads a constant one, but no user variable, to describe
    /// the result, too, and warns of it then.
    pub fn length(&self, e: &'a Expr) -> Result<Option<i64>, SqlError> {
        let variable = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_));
        if nfold_plan::expr::is_constant(e) && !e.any(&mut |e| variable(e)) {
            self.int(e)?;
        }
        self.int(e)
    }

    /// Its value as a double.
    pub fn f64(&self, e: &'a Expr) -> Result<Option<f64>, SqlError> {
        let v = self.val(e)?;
        Ok(convert::to_f64(self, &v, &e.ty))
    }

    /// Its value as a DECIMAL.
    pub fn decimal(&self, e: &'a Expr) -> Result<Option<Decimal>, SqlError> {
        let v = self.val(e)?;
        Ok(convert::to_decimal(self, &v, &e.ty))
    }

    /// Its value as text, in the character set of the expression's type (the connection's for
    /// numbers and dates).
    pub fn bytes(&self, e: &'a Expr) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
        let v = self.val(e)?;
        Ok(convert::to_bytes(self, v, &e.ty))
    }

    /// Its value as text in the character set of `collation`.
    pub fn text(
        &self,
        e: &'a Expr,
        collation: nfold_types::CollationId,
    ) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
        let v = self.val(e)?;
        Ok(convert::to_text(self, v, &e.ty, collation))
    }

    /// Its value as text in the character set of the text that a function searches or changes.
    ///
    /// # Errors
    /// 3854 if it has characters that this set lacks.
    pub fn text_for(
        &self,
        e: &'a Expr,
        subject: nfold_types::CollationId,
    ) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
        let v = self.val(e)?;
        convert::to_text_for(self, v, &e.ty, subject)
    }

    /// Its value as DATETIME; NULL with warning 1292 where it is none.
    pub fn datetime(&self, e: &'a Expr) -> Result<Option<DateTime>, SqlError> {
        let v = self.val(e)?;
        Ok(convert::to_datetime(self, &v, &e.ty))
    }

    /// Its value as DATE; NULL with warning 1292 where it is none.
    pub fn date(&self, e: &'a Expr) -> Result<Option<Date>, SqlError> {
        Ok(self.datetime(e)?.map(DateTime::date))
    }

    /// Its value as TIME; NULL with warning 1292 where it is none.
    pub fn time(&self, e: &'a Expr) -> Result<Option<Time>, SqlError> {
        let v = self.val(e)?;
        Ok(convert::to_time(self, &v, &e.ty))
    }

    /// The session's local time at the start of the statement, cut to `fsp` digits.
    pub fn now(&self, fsp: u8) -> DateTime {
        convert::local(self, self.st.env.now(), fsp)
    }
}

/// What a damaged row image is to the client.
pub(crate) fn row_error(e: &nfold_types::row::RowError) -> SqlError {
    SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, format!("row image: {e}"))
}
