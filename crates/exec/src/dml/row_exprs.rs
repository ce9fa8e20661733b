//! Evaluates the stored expressions of a changed row: generated columns, CHECK constraints, and
//! DEFAULT (expression).
//!
//! This is the last step before the engine changes the row, so the expressions see the final values
//! of all other columns.

use std::cell::RefCell;
use std::sync::Arc;

use nfold_catalog::{ColumnDef, FulltextOptions, TableDef, Visibility};
use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::table_exprs::{ColumnExpr, TableExprs};
use nfold_types::key::KeyError;
use nfold_types::row::RowLayout;
use nfold_types::{ErrorCode, Level, SqlError, Value, Warnings};

use super::array_elements;
use crate::expr::documents;
use crate::expr::eval::array_elements::{Target, ends_statement};
use crate::expr::eval::{EvalCx, NoSubqueries, RowRef, StmtState, row_error};
use crate::expr::func::json_document;
use crate::fulltext::entries::DocumentWords;
use crate::fulltext::words::Tokenizer;
use crate::operators::column_values::ColumnValues;
use crate::runtime::Runtime;

/// The work of finding the words in a byte of text.
const WORD_WORK: u64 = 20;

/// The stored expressions of a table whose rows a statement changes.
pub(super) struct RowExprs {
    pub exprs: Arc<TableExprs>,
    values: ColumnValues,
    /// IGNORE: a row that a constraint forbids is skipped.
    pub ignore: bool,
    /// The number of rows completed so far, for messages.
    rows: u64,
    scratch: Vec<u8>,
}

impl RowExprs {
    /// `None` if the rows of the table need neither completion nor checks.
    pub fn new(
        rt: &Runtime<'_>,
        exprs: Option<&Arc<TableExprs>>,
        ignore: bool,
    ) -> Option<RowExprs> {
        let exprs = exprs?;
        if exprs.checks.is_empty() && exprs.generated.is_empty() {
            return None;
        }
        Some(RowExprs {
            exprs: exprs.clone(),
            values: ColumnValues::new(rt, ignore, false),
            ignore,
            rows: 0,
            scratch: Vec::new(),
        })
    }

    /// Computes the generated columns of a row image, then checks the constraints.
    ///
    /// # Errors
    /// 3819 if a constraint is false, and the errors of the expressions.
    pub fn complete(
        &mut self,
        rt: &Runtime<'_>,
        (def, layout): (&TableDef, &RowLayout),
        image: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        self.rows += 1;
        let state = rt.state(&NoSubqueries);
        let row = CompletedRow {
            def,
            layout,
            values: &self.values,
            state: &state,
            number: self.rows,
        };
        row.generate(&self.exprs.generated, image, &mut self.scratch)?;
        row.check(&self.exprs, image)
    }
}

/// One row, and the context in which its expressions are evaluated.
pub(crate) struct CompletedRow<'r> {
    pub def: &'r TableDef,
    pub layout: &'r RowLayout,
    pub values: &'r ColumnValues,
    pub state: &'r StmtState<'r>,
    /// The number of the row, from 1, for messages.
    pub number: u64,
}

impl CompletedRow<'_> {
    /// Computes the generated columns from left to right: a later one may read an earlier one.
    pub fn generate(
        &self,
        generated: &[ColumnExpr],
        image: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        for g in generated {
            let value = match (&g.element, self.def.columns[g.column].visibility) {
                (Some(_), _) if self.fulltext(g.column).is_some() => self.words(g, image)?,
                (Some(element), _) => self.array_value(g, element, image)?,
                (None, Visibility::Hidden) => self.key_value(g, image)?,
                _ => self.value(&g.expr, g.column, image)?,
            };
            scratch.clear();
            let changed = |c| (c == g.column).then(|| value.as_ref());
            let encoded = self.layout.encode_changed(image, changed, scratch);
            encoded.map_err(|e| row_error(&e))?;
            std::mem::swap(image, scratch);
        }
        Ok(())
    }

    /// The value of a functional key part, which has its own error numbers.
    ///
    /// # Errors
    /// 3752 if the value is out of range, 3751 for other failures.
    fn key_value(&self, g: &ColumnExpr, image: &[u8]) -> Result<Value, SqlError> {
        let raised = RefCell::new(Warnings::default());
        let strict = self.state.warnings.borrow().is_strict();
        raised.borrow_mut().set_strict(strict);
        let state = StmtState {
            warnings: &raised,
            ..*self.state
        };
        let row = CompletedRow {
            state: &state,
            ..*self
        };
        let value = row.value(&g.expr, g.column, image);
        let first = raised.borrow_mut().take_raised();
        let failed = match value {
            Ok(value) => match first {
                None => {
                    for warning in raised.borrow().list() {
                        let error = self.key_error(g, warning.code);
                        let mut warnings = self.state.warnings.borrow_mut();
                        warnings.push_error(Level::Warning, &error);
                    }
                    return Ok(value);
                }
                Some(e) => e,
            },
            Err(e) if ends_statement(&e) => return Err(e),
            Err(e) => e,
        };
        Err(self.key_error(g, failed.code))
    }

    /// The error or warning of a functional key part for that of its expression.
    fn key_error(&self, g: &ColumnExpr, code: ErrorCode) -> SqlError {
        use ErrorCode::*;
        let index = self.index_name(g.column);
        let code = match code {
            ER_INVALID_JSON_VALUE_FOR_CAST => {
                return SqlError::new(ER_INVALID_JSON_VALUE_FOR_FUNC_INDEX, &[&index]);
            }
            ER_NUMERIC_JSON_VALUE_OUT_OF_RANGE => {
                return SqlError::new(ER_JSON_VALUE_OUT_OF_RANGE_FOR_FUNC_INDEX, &[&index]);
            }
            ER_WARN_DATA_OUT_OF_RANGE => ER_WARN_DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX,
            _ => ER_WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX,
        };
        SqlError::new(code, &[&index, &self.number])
    }

    /// The packed elements of a multi-valued key part.
    ///
    /// # Errors
    /// Those of the expression and of [`array_elements::packed`].
    fn array_value(
        &self,
        g: &ColumnExpr,
        element: &ColumnDef,
        image: &[u8],
    ) -> Result<Value, SqlError> {
        let rows = self.row_slot(image);
        let cx = self.context(&rows);
        let Some(doc) = json_document(&cx, std::slice::from_ref(&g.expr), 0, "cast_as_array")?
        else {
            return Ok(Value::Null);
        };
        let to = Target {
            element: &element.ty,
            column: &element.name,
            index: self.index_name(g.column),
            row: self.number,
        };
        array_elements::packed(&cx, &self.values.mode, &to, &doc).map(Value::Bytes)
    }

    /// The options of the full-text index whose hidden column this is.
    fn fulltext(&self, column: usize) -> Option<FulltextOptions> {
        let mut indexes = self.def.indexes.iter();
        indexes.find_map(|index| {
            let options = index.fulltext()?;
            let hidden = index.parts.first()?;
            (hidden.column == column).then_some(options)
        })
    }

    /// The packed entries of a full-text index.
    fn words(&self, g: &ColumnExpr, image: &[u8]) -> Result<Value, SqlError> {
        let rows = self.row_slot(image);
        let cx = self.context(&rows);
        let (Some(options), ExprKind::Call { args, .. }) = (self.fulltext(g.column), &g.expr.kind)
        else {
            return Ok(Value::Null);
        };
        let mut words = DocumentWords::default();
        // The first argument is the separator.
        for column in args.iter().skip(1) {
            let Some(text) = cx.bytes(column)? else {
                continue;
            };
            let tokenizer = Tokenizer {
                options,
                collation: column.ty.collation().known(),
            };
            cx.checkpoint(text.len() as u64 * WORD_WORK)?;
            words.add(&tokenizer, &text);
        }
        let packed = words.pack();
        let failed =
            |e: KeyError| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, e.to_string());
        packed.map(Value::Bytes).map_err(failed)
    }

    /// The row as expressions read it: row slot 0.
    fn row_slot<'i>(&'i self, image: &'i [u8]) -> [RowRef<'i>; 1] {
        [RowRef {
            layout: self.layout,
            image: Some(image),
            places: None,
        }]
    }

    fn context<'i>(&'i self, rows: &'i [RowRef<'i>]) -> EvalCx<'i> {
        EvalCx {
            rows,
            outer: &[],
            st: self.state,
        }
    }

    /// The name of the index that the hidden column belongs to.
    fn index_name(&self, column: usize) -> &str {
        let mut indexes = self.def.indexes.iter();
        let index = indexes.find(|i| i.parts.iter().any(|p| p.column == column));
        index.map_or("", |i| &*i.name)
    }

    /// Evaluates `e` over the row, and converts the value to the type of the column.
    pub fn value(&self, e: &Expr, column: usize, image: &[u8]) -> Result<Value, SqlError> {
        let def = &self.def.columns[column];
        let rows = self.row_slot(image);
        let cx = self.context(&rows);
        let v = cx.val(e)?;
        let stored = self.values.store(&cx, def, v, &e.ty, self.number);
        let value = stored.map_err(|e| documents::with_table(e, &self.def.name, &def.name))?;
        match value.is_null() && !def.nullable {
            true => self.values.null(self.state.warnings, def),
            false => Ok(value),
        }
    }

    /// Error 3819 if a constraint is false, or fails to evaluate.
    pub fn check(&self, exprs: &TableExprs, image: &[u8]) -> Result<(), SqlError> {
        if exprs.checks.is_empty() {
            return Ok(());
        }
        let rows = [RowRef {
            layout: self.layout,
            image: Some(image),
            places: None,
        }];
        // A condition that fails in strict mode violates the constraint.
        let conditions = RefCell::new(Warnings::default());
        let strict = self.state.warnings.borrow().is_strict();
        conditions.borrow_mut().set_strict(strict);
        let state = StmtState {
            warnings: &conditions,
            ..*self.state
        };
        let cx = EvalCx {
            rows: &rows,
            outer: &[],
            st: &state,
        };
        for (name, condition) in &exprs.checks {
            let fails = match cx.bool(condition) {
                Ok(value) => {
                    value == Some(false) || conditions.borrow_mut().take_raised().is_some()
                }
                Err(e) if ends_statement(&e) => return Err(e),
                Err(_) => true,
            };
            if fails {
                let code = ErrorCode::ER_CHECK_CONSTRAINT_VIOLATED;
                return Err(SqlError::new(code, &[name]));
            }
        }
        let mut warnings = self.state.warnings.borrow_mut();
        for w in conditions.borrow().list() {
            warnings.push_error(w.level, &SqlError::with_message(w.code, w.message.clone()));
        }
        Ok(())
    }
}
