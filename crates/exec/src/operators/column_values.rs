//! Converts values for columns as MySQL does: strict mode, defaults, and NULL.

use std::cell::RefCell;

use nfold_catalog::{ColumnDef, ColumnDefault};
use nfold_json::Work;
use nfold_plan::SqlMode;
use nfold_plan::expr::{Class, ExprType};
use nfold_types::convert::store::{StoreCx, StoreMode, implicit_default, store_value_in};
use nfold_types::{
    Checkpoint, CollationId, ErrorCode, Level, SqlError, Timestamp, TypeKind, Value, ValueRef,
    Warnings,
};

use crate::env::{SessionEnv, store_mode};
use crate::expr::documents;
use crate::expr::eval::{EvalCx, Val, convert, json};
use crate::runtime::Runtime;

/// Converts the values that one statement writes into columns.
pub(crate) struct ColumnValues {
    pub mode: StoreMode,
    /// Whether NULL for a NOT NULL column is an error (strict mode, or a single row). Otherwise it
    /// becomes the zero value of the type.
    pub null_is_error: bool,
    /// Empty buffers for strings, whose memory values of earlier rows have used.
    pub buffers: RefCell<Vec<Vec<u8>>>,
    sql_mode: SqlMode,
}

/// A value's buffer of more bytes is not used again.
const REUSED_BYTES: usize = 4096;

impl ColumnValues {
    pub fn new(rt: &Runtime<'_>, ignore: bool, single_row: bool) -> ColumnValues {
        let values = ColumnValues::of_env(rt.env, ignore, single_row);
        rt.strict.set(values.mode.strict && !ignore);
        values
    }

    /// As [`Self::new`], for use outside of a statement.
    pub fn of_env(env: &dyn SessionEnv, ignore: bool, single_row: bool) -> ColumnValues {
        let sql_mode = env.sql_mode();
        let strict = sql_mode.has(SqlMode::STRICT);
        ColumnValues {
            mode: store_mode(env, strict, ignore),
            null_is_error: !ignore && (strict || single_row),
            buffers: RefCell::default(),
            sql_mode,
        }
    }

    /// For the columns of a JSON_TABLE. `strict`: a value that does not fit is an error.
    pub fn of_table_function(rt: &Runtime<'_>, strict: bool) -> ColumnValues {
        ColumnValues {
            mode: store_mode(rt.env, strict, false),
            null_is_error: false,
            buffers: RefCell::default(),
            sql_mode: rt.env.sql_mode(),
        }
    }

    /// Whether zero in an AUTO_INCREMENT column is stored as zero.
    pub fn zero_is_a_value(&self) -> bool {
        self.sql_mode.has(SqlMode::NO_AUTO_VALUE_ON_ZERO)
    }

    /// Takes the memory of a row that is stored, and empties the row.
    pub fn reuse(&self, row: &mut Vec<Value>) {
        let mut buffers = self.buffers.borrow_mut();
        let most = row.len();
        for value in row.drain(..) {
            if let Value::Bytes(mut bytes) = value
                && (1..=REUSED_BYTES).contains(&bytes.capacity())
                && buffers.len() < most
            {
                bytes.clear();
                buffers.push(bytes);
            }
        }
    }

    /// Converts a parameter or the value of another column.
    #[inline]
    pub fn store_ref(
        &self,
        rt: &Runtime<'_>,
        column: &ColumnDef,
        value: ValueRef<'_>,
        from: CollationId,
        row: u64,
    ) -> Result<Value, SqlError> {
        self.store_with((rt.warnings, rt), column, value, from, row)
    }

    /// As [`Self::store_ref`], also for use outside of a statement.
    #[inline(always)]
    fn store_with(
        &self,
        (warnings, checkpoint): (&RefCell<Warnings>, &dyn Checkpoint),
        column: &ColumnDef,
        value: ValueRef<'_>,
        from: CollationId,
        row: u64,
    ) -> Result<Value, SqlError> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        if column.ty.is_json() {
            return documents::of_value(value, from, &column.name, &Work::new(checkpoint));
        }
        let mut warnings = warnings.borrow_mut();
        let mut cx = StoreCx {
            mode: &self.mode,
            column: &column.name,
            row,
            from: CollationId::UTF8MB4_BIN,
            warnings: &mut warnings,
        };
        let buffer = match column.ty.is_string() {
            true => self.buffers.borrow_mut().pop().unwrap_or_default(),
            false => Vec::new(),
        };
        store_value_in(value, from, &column.ty, &mut cx, buffer)
    }

    /// Converts an evaluated value.
    pub fn store(
        &self,
        cx: &EvalCx<'_>,
        column: &ColumnDef,
        v: Val<'_>,
        ty: &ExprType,
        row: u64,
    ) -> Result<Value, SqlError> {
        if v.is_null() {
            return Ok(Value::Null);
        }
        let to = (cx.st.warnings, cx.st.checkpoint);
        if column.ty.is_json() {
            return self.document(cx, column, v, ty);
        }
        if ty.col.is_json() {
            let text = json::text(cx, convert::bytes_of(&v), false)?;
            let from = CollationId::UTF8MB4_BIN;
            return self.store_with(to, column, ValueRef::Bytes(&text), from, row);
        }
        // An invalid member can only come from a column that stores it already.
        if v == Val::UInt(0)
            && matches!(ty.col.kind, TypeKind::Enum(_))
            && ty.col.kind == column.ty.kind
        {
            return Ok(Value::UInt(0));
        }
        let hex = ty.col.zerofill
            && matches!(ty.col.kind, TypeKind::VarBinary(_))
            && column.ty.is_numeric();
        if hex {
            let number = convert::to_integer(cx, &v, ty).unwrap_or(0);
            return self.store_with(
                to,
                column,
                ValueRef::UInt(number as u64),
                CollationId::BINARY,
                row,
            );
        }
        if let Val::UInt(n) = v
            && ty.col.is_enum_or_set()
            && column.ty.is_numeric()
        {
            let number = ValueRef::UInt(n);
            return self.store_with(to, column, number, CollationId::BINARY, row);
        }
        if ty.col.is_enum_or_set() && ty.col != column.ty {
            let from = ty.col.collation;
            let text = convert::to_bytes(cx, v, ty).unwrap_or_default();
            return self.store_with(to, column, ValueRef::Bytes(&text), from, row);
        }
        // A date or time that an expression of string type returns is stored by its text.
        let temporal = matches!(v, Val::Date(_) | Val::DateTime(_) | Val::Time(_));
        if temporal && ty.class() == Class::String && !column.ty.is_string() {
            let text = convert::to_bytes(cx, v, ty).unwrap_or_default();
            let from = CollationId::UTF8MB4_BIN;
            return self.store_with(to, column, ValueRef::Bytes(&text), from, row);
        }
        let from = convert::string_collation(cx, ty);
        // A BLOB stores the value as it is shown; a short string stores the digits of the number.
        if column.ty.is_blob() && (convert::is_bits(ty) || convert::is_year(&ty.col)) {
            let text = convert::to_bytes(cx, v, ty).unwrap_or_default();
            return self.store_with(to, column, ValueRef::Bytes(&text), from, row);
        }
        self.store_with(to, column, v.as_value_ref(), from, row)
    }

    /// Converts a value for a JSON column. Errors 3140, 3144.
    fn document(
        &self,
        cx: &EvalCx<'_>,
        column: &ColumnDef,
        v: Val<'_>,
        ty: &ExprType,
    ) -> Result<Value, SqlError> {
        if let (Val::Bytes(doc), true) = (&v, ty.col.is_json()) {
            return Ok(Value::Bytes(doc.to_vec()));
        }
        if ty.class() != Class::String {
            return Err(documents::no_text(&column.name));
        }
        if ty.collation() == CollationId::BINARY {
            let code = ErrorCode::ER_INVALID_JSON_CHARSET;
            return Err(SqlError::new(code, &[&"binary"]));
        }
        let text = json::utf8(cx, &v, ty);
        let work = Work::new(cx.st.checkpoint);
        documents::parsed(text.as_bytes(), &column.name, &work).map(Value::Bytes)
    }

    /// Converts NULL for this column. Error 1048.
    pub fn null(
        &self,
        warnings: &RefCell<Warnings>,
        column: &ColumnDef,
    ) -> Result<Value, SqlError> {
        if column.nullable {
            return Ok(Value::Null);
        }
        if self.null_is_error {
            return Err(SqlError::new(ErrorCode::ER_BAD_NULL_ERROR, &[&column.name]));
        }
        warnings
            .borrow_mut()
            .warn(ErrorCode::ER_BAD_NULL_ERROR, &[&column.name]);
        Ok(Self::of_null(column))
    }

    /// As [`Self::null`], for INSERT, which warns once about each column.
    pub fn null_once(
        &self,
        warnings: &RefCell<Warnings>,
        column: &ColumnDef,
    ) -> Result<Value, SqlError> {
        if column.nullable || self.null_is_error {
            return self.null(warnings, column);
        }
        let warning = SqlError::new(ErrorCode::ER_BAD_NULL_ERROR, &[&column.name]);
        let mut warnings = warnings.borrow_mut();
        let mut known = warnings.list().iter();
        if !known.any(|w| w.errno() == warning.errno() && *w.message == *warning.message) {
            warnings.push_error(Level::Warning, &warning);
        }
        Ok(Self::of_null(column))
    }

    /// The value that a NOT NULL column has in place of NULL.
    fn of_null(column: &ColumnDef) -> Value {
        match column.ty.kind {
            // The invalid member 0; the first member is only for columns that the statement does
            // not name.
            TypeKind::Enum(_) => Value::UInt(0),
            _ => implicit_default(&column.ty),
        }
    }

    /// The default value of a column. Error 1364.
    pub fn default_value(&self, rt: &Runtime<'_>, column: &ColumnDef) -> Result<Value, SqlError> {
        match &column.default {
            ColumnDefault::Null => Ok(Value::Null),
            ColumnDefault::Literal(v) => Ok(v.clone()),
            ColumnDefault::CurrentTimestamp(fsp) => Ok(now_value(rt, column, *fsp)),
            // The expressions of a row are evaluated after its other columns have values.
            ColumnDefault::Expr(_) => Ok(placeholder(column)),
            ColumnDefault::None if column.generated.is_some() => Ok(placeholder(column)),
            ColumnDefault::None if column.nullable => Ok(Value::Null),
            ColumnDefault::None if column.auto_increment => Ok(Value::Int(0)),
            // The implicit default of an ENUM is its first member.
            ColumnDefault::None if matches!(column.ty.kind, TypeKind::Enum(_)) => {
                Ok(Value::UInt(1))
            }
            ColumnDefault::None => {
                if self.mode.strict && !self.mode.ignore {
                    return Err(SqlError::new(
                        ErrorCode::ER_NO_DEFAULT_FOR_FIELD,
                        &[&column.name],
                    ));
                }
                rt.warnings
                    .borrow_mut()
                    .warn(ErrorCode::ER_NO_DEFAULT_FOR_FIELD, &[&column.name]);
                Ok(implicit_default(&column.ty))
            }
        }
    }
}

/// The value of CURRENT_TIMESTAMP for a column.
pub(crate) fn now_value(rt: &Runtime<'_>, column: &ColumnDef, fsp: u8) -> Value {
    let now = rt.env.now();
    let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
    let cut = Timestamp::from_micros(now.micros().div_euclid(unit) * unit, fsp);
    match column.ty.kind {
        TypeKind::Timestamp(_) => Value::Timestamp(cut),
        _ => Value::DateTime(
            rt.env
                .time_zone()
                .to_local(cut)
                .unwrap_or_default()
                .truncate(fsp),
        ),
    }
}

/// A placeholder for a column whose expression is evaluated later.
pub(crate) fn placeholder(column: &ColumnDef) -> Value {
    match column.nullable {
        true => Value::Null,
        false => implicit_default(&column.ty),
    }
}
