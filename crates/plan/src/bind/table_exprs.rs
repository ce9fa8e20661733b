//! Stored expressions: CHECK conditions, DEFAULT (expression), generated columns.
//!
//! They depend on the table's definition alone: the SQL mode is that of the definition, and no
//! other setting of the session has an effect. So all sessions share the bound expressions, which
//! are cached beside the definition.

use std::sync::Arc;

use nfold_catalog::{ColumnDef, ColumnDefault, IndexDef, StoredExpr, TableDef};
use nfold_sql::ast;
use nfold_types::SqlError;
use nfold_types::collation::CollationId;

use super::{BindCx, BlockBinder, dml};
use crate::logical::context::PlanCx;
use crate::logical::expr::Expr;
use crate::logical::mode::SqlMode;
use crate::logical::table_exprs::{ColumnExpr, TableExprs};

/// The purpose of a stored expression.
#[derive(Debug, Clone, Copy)]
pub enum StoredUse<'a> {
    /// A condition.
    Check,
    /// The DEFAULT of a column.
    Default(&'a ColumnDef),
    /// The value of a generated column.
    Generated(&'a ColumnDef),
    /// The value of a functional key part.
    Key,
}

/// Binds all stored expressions of a table; `None` if it has none.
///
/// # Errors
/// Those of [`bind_stored`].
pub fn table_exprs(
    cx: &PlanCx<'_>,
    def: &Arc<TableDef>,
) -> Result<Option<Arc<TableExprs>>, SqlError> {
    if !def.has_stored_exprs() {
        return Ok(None);
    }
    if let Some(bound) = def.bound.get::<TableExprs>() {
        return Ok(Some(bound));
    }
    let bind = |e: &StoredExpr, usage| {
        let parsed = nfold_sql::stored::parse(&e.text)?;
        bind_stored(cx, def, (&parsed, SqlMode(e.mode)), usage)
    };
    let mut all = TableExprs::default();
    for check in def.checks.iter().filter(|c| c.enforced) {
        let expr = bind(&check.expr, StoredUse::Check)?;
        all.checks.push((check.name.clone(), expr));
    }
    for (column, c) in def.columns.iter().enumerate() {
        if let ColumnDefault::Expr(e) = &c.default {
            let expr = bind(e, StoredUse::Default(c))?;
            all.defaults.push(ColumnExpr {
                column,
                expr,
                element: None,
            });
        }
        if let Some(g) = &c.generated {
            let expr = match document_text(def, column) {
                Some(text) => bind(&text, StoredUse::Generated(c))?,
                None => bind(&g.expr, StoredUse::Generated(c))?,
            };
            let element = g.array_of.as_ref().map(|ty| {
                Box::new(ColumnDef {
                    ty: ty.clone(),
                    generated: None,
                    ..c.clone()
                })
            });
            all.generated.push(ColumnExpr {
                column,
                expr,
                element,
            });
        }
    }
    let all = Arc::new(all);
    def.bound.set(all.clone());
    Ok(Some(all))
}

/// For the hidden column of a full-text index: a call of CONCAT_WS with the columns of the
/// document. Only its arguments are evaluated.
fn document_text(def: &TableDef, column: usize) -> Option<StoredExpr> {
    let is_hidden = |i: &&IndexDef| {
        i.fulltext().is_some() && i.parts.first().is_some_and(|p| p.column == column)
    };
    let index = def.indexes.iter().find(is_hidden)?;
    let mut text = "concat_ws(' '".to_string();
    for part in index.shown_parts() {
        let name = def.columns[part.column].name.replace('`', "``");
        text.push_str(&format!(",`{name}`"));
    }
    text.push(')');
    Some(StoredExpr {
        text: text.into(),
        columns: Vec::new(),
        mode: 0,
    })
}

/// Binds one stored expression of a table, under the SQL mode of its definition.
///
/// # Errors
/// MySQL's errors for expressions, such as 1054, 1267 and 1582.
pub fn bind_stored(
    cx: &PlanCx<'_>,
    def: &Arc<TableDef>,
    (e, mode): (&ast::Expr, SqlMode),
    usage: StoredUse<'_>,
) -> Result<Expr, SqlError> {
    let plan = PlanCx {
        mode,
        connection: CollationId::UTF8MB4_0900_AI_CI,
        text: &[],
        params: &[],
        column_uses: None,
        group_concat_max_len: 1024,
        div_precision_increment: 4,
        ..*cx
    };
    let cx = BindCx::new(&plan);
    let mut b = BlockBinder::new(&cx, None);
    b.row_of(def)?;
    match usage {
        StoredUse::Generated(column) if is_array(column) => {
            b.clause = "functional index";
            match e {
                ast::Expr::Cast { expr, .. } => b.expr(expr),
                e => b.expr(e),
            }
        }
        StoredUse::Default(column) | StoredUse::Generated(column) => {
            b.clause = match usage {
                StoredUse::Default(_) => "default value expression",
                _ => "generated column function",
            };
            let bound = dml::value(&mut b, e, column)?;
            Ok(bound.unwrap_or_else(Expr::null))
        }
        StoredUse::Check => {
            b.clause = "check constraint expression";
            b.expr(e)
        }
        StoredUse::Key => {
            b.clause = "functional index";
            b.expr(e)
        }
    }
}

/// Whether the column holds the elements of a multi-valued key part. Its stored expression is the
/// document, without the cast to an array.
fn is_array(column: &ColumnDef) -> bool {
    let generated = column.generated.as_ref();
    generated.is_some_and(|g| g.array_of.is_some())
}
