//! The rows of a JSON_TABLE.
//!
//! A row has the values of a path's match and of the matches that contain it. Sibling NESTED paths
//! produce separate rows, in which the columns of the others are NULL. If none of them matches,
//! there is one row with NULL in all their columns.

use nfold_json::{Doc, Scalar, Work};
use nfold_plan::expr::Class;
use nfold_plan::json_table::{JsonFallback, JsonRows, JsonTable, JsonTableShape, JsonValueColumn};
use nfold_types::row::RowLayout;
use nfold_types::{CollationId, ErrorCode, SqlError, TypeKind, Value, ValueRef};

use crate::expr::eval::{EvalCx, Val, json, tuple};
use crate::expr::func::json_document;
use crate::operators::column_values::ColumnValues;
use crate::runtime::Runtime;
use nfold_json::scalar_value::{self, Converted, Unfit};

/// A consumer of row images.
pub(crate) type PushRow<'p> = dyn FnMut(&[u8]) -> Result<(), SqlError> + 'p;

/// Calls `push` with the rows of `table` for the outer row of `cx`, in `layout`.
///
/// # Errors
/// 3141 and 3146 for the document; 3665, 3666, 3669, 3155 and 3156 for columns with ERROR ON EMPTY
/// or ERROR ON ERROR.
pub(crate) fn rows<'a>(
    rt: &Runtime<'_>,
    cx: &EvalCx<'a>,
    table: &'a JsonTable,
    layout: &RowLayout,
    push: &mut PushRow<'_>,
) -> Result<(), SqlError> {
    let document = std::slice::from_ref(&table.document);
    let Some(bytes) = json_document(cx, document, 0, "json_table")? else {
        return Ok(());
    };
    let work = json::work(cx);
    let mut reader = Reader {
        rt,
        work: &work,
        shape: &table.shape,
        strict: ColumnValues::of_table_function(rt, true),
        lenient: ColumnValues::of_table_function(rt, false),
        layout,
        row: vec![Value::Null; table.shape.columns.len()],
        image: Vec::new(),
    };
    reader.rows(&table.shape.rows, Doc::new(&bytes)?, push)?;
    Ok(())
}

struct Reader<'r, 's> {
    rt: &'r Runtime<'s>,
    work: &'r Work<'r>,
    shape: &'r JsonTableShape,
    strict: ColumnValues,
    /// For EXISTS PATH: a value that does not fit is adjusted, with a warning.
    lenient: ColumnValues,
    layout: &'r RowLayout,
    row: Vec<Value>,
    image: Vec<u8>,
}

impl Reader<'_, '_> {
    /// Produces the rows of one path below `doc`; false if there are none.
    fn rows(
        &mut self,
        rows: &JsonRows,
        doc: Doc<'_>,
        push: &mut PushRow<'_>,
    ) -> Result<bool, SqlError> {
        let mut matches = Vec::new();
        nfold_json::seek(doc, &rows.path, self.work, &mut matches)?;
        for (n, value) in matches.iter().enumerate() {
            for &column in &rows.ordinals {
                self.row[column] = Value::Int(n as i64 + 1);
            }
            for column in &rows.values {
                self.row[column.column] = self.column(column, *value)?;
            }
            let mut nested_rows = false;
            for nested in &rows.nested {
                nested_rows |= self.rows(nested, *value, push)?;
                self.clear(nested);
            }
            if !nested_rows {
                self.push(push)?;
            }
        }
        Ok(!matches.is_empty())
    }

    /// Sets the columns of a nested path to NULL.
    fn clear(&mut self, rows: &JsonRows) {
        let values = rows.values.iter().map(|value| value.column);
        for column in rows.ordinals.iter().copied().chain(values) {
            self.row[column] = Value::Null;
        }
        rows.nested.iter().for_each(|nested| self.clear(nested));
    }

    fn push(&mut self, push: &mut PushRow<'_>) -> Result<(), SqlError> {
        let values = self.row.iter().map(|v| Val::from_ref(v.as_ref()));
        let values: Vec<Val<'_>> = values.collect();
        self.image.clear();
        tuple::encode_row(self.layout, &values, &mut self.image)?;
        push(&self.image)
    }

    /// The value of a column in the row of `doc`.
    fn column(&self, column: &JsonValueColumn, doc: Doc<'_>) -> Result<Value, SqlError> {
        let mut found = Vec::new();
        nfold_json::seek(doc, &column.path, self.work, &mut found)?;
        let def = &self.shape.columns[column.column];
        if column.exists {
            let number = ValueRef::Int(i64::from(!found.is_empty()));
            let from = CollationId::BINARY;
            return self.lenient.store_ref(self.rt, def, number, from, 1);
        }
        let missing = |code| SqlError::new(code, &[&def.name]);
        let value = match found.as_slice() {
            [] => {
                return self.fallback(column, &column.on_empty, || {
                    missing(ErrorCode::ER_MISSING_JSON_TABLE_VALUE)
                });
            }
            [one] => *one,
            several if def.ty.is_json() => {
                let elements = several.iter().map(|value| value.to_json(self.work));
                let array = nfold_json::Json::Array(elements.collect::<Result<_, _>>()?);
                return nfold_json::binary::encode(&array, self.work).map(Value::Bytes);
            }
            _ => {
                return self.fallback(column, &column.on_error, || {
                    missing(ErrorCode::ER_WRONG_JSON_TABLE_VALUE)
                });
            }
        };
        if matches!(value.scalar()?, Some(Scalar::Null)) {
            return Ok(Value::Null);
        }
        if value.scalar()?.is_none() && !def.ty.is_json() {
            return self.fallback(column, &column.on_error, || {
                missing(ErrorCode::ER_WRONG_JSON_TABLE_VALUE)
            });
        }
        match self.stored(column, value)? {
            Ok(value) => Ok(value),
            Err(error) => self.fallback(column, &column.on_error, || error),
        }
    }

    fn fallback(
        &self,
        column: &JsonValueColumn,
        fallback: &JsonFallback,
        error: impl FnOnce() -> SqlError,
    ) -> Result<Value, SqlError> {
        match fallback {
            JsonFallback::Null => Ok(Value::Null),
            JsonFallback::Error => Err(error()),
            JsonFallback::Default(doc) => match Doc::new(doc)? {
                null if matches!(null.scalar()?, Some(Scalar::Null)) => Ok(Value::Null),
                value => self.stored(column, value)?,
            },
        }
    }

    /// Converts a value of the document to the column's type. The inner error: it does not fit.
    fn stored(
        &self,
        column: &JsonValueColumn,
        doc: Doc<'_>,
    ) -> Result<Result<Value, SqlError>, SqlError> {
        let def = &self.shape.columns[column.column];
        let unfit = |unfit: Unfit, target: &str| {
            let code = match unfit {
                Unfit::Invalid => ErrorCode::ER_INVALID_JSON_VALUE_FOR_CAST,
                Unfit::OutOfRange => ErrorCode::ER_NUMERIC_JSON_VALUE_OUT_OF_RANGE,
            };
            SqlError::new(code, &[&target, &"", &def.name, &1])
        };
        let mut text = Vec::new();
        let value = match Class::of(&def.ty) {
            Class::Json => {
                doc.write_to(&mut text)?;
                return Ok(Ok(Value::Bytes(text)));
            }
            Class::Int => match converted(scalar_value::integer(doc), unfit, "INTEGER")? {
                Ok(v) => match i64::try_from(v) {
                    Ok(v) => ValueRef::Int(v),
                    Err(_) => ValueRef::UInt(v as u64),
                },
                Err(e) => return Ok(Err(e)),
            },
            Class::Double => match converted(scalar_value::double(doc), unfit, "DOUBLE")? {
                Ok(v) => ValueRef::Double(v),
                Err(e) => return Ok(Err(e)),
            },
            Class::Decimal => match converted(scalar_value::decimal(doc), unfit, "DECIMAL")? {
                Ok(v) => ValueRef::Decimal(v),
                Err(e) => return Ok(Err(e)),
            },
            _ => match scalar_value::temporal(doc)? {
                Some(temporal) if !def.ty.is_string() => temporal.value(),
                _ => {
                    nfold_json::print_unquoted(doc, self.work, &mut text)?;
                    ValueRef::Bytes(&text)
                }
            },
        };
        let from = match def.ty.kind {
            TypeKind::Bit(_) => CollationId::BINARY,
            _ => CollationId::UTF8MB4_BIN,
        };
        let stored = self.strict.store_ref(self.rt, def, value, from, 1);
        let out_of_range = ErrorCode::ER_JT_VALUE_OUT_OF_RANGE;
        Ok(stored.map_err(|_| SqlError::new(out_of_range, &[&def.name])))
    }
}

fn converted<T>(
    value: Converted<T>,
    unfit: impl FnOnce(Unfit, &str) -> SqlError,
    target: &str,
) -> Result<Result<T, SqlError>, SqlError> {
    Ok(value?.map_err(|e| unfit(e, target)))
}
