//! Stored expressions: CHECK constraints, DEFAULT (expression) and generated columns, as a
//! definition holds them.
//!
//! An expression is stored as text in MySQL's normal form. The normal form depends on no SQL mode:
//! every operation is in parentheses, every name in backquotes, and every string has an
//! introducer. A column that an expression names can be neither dropped nor renamed, so the text
//! stays true.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use nfold_types::ColumnType;

use crate::schema::{ColumnDefault, TableDef, eq_name};

/// An expression of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredExpr {
    /// In MySQL's normal form, as SHOW CREATE TABLE prints it.
    pub text: Box<str>,
    /// The columns that it names, each once.
    pub columns: Vec<Arc<str>>,
    /// The SQL modes of the definition, which decide how operands are typed (bits of the planner).
    pub mode: u32,
}

impl StoredExpr {
    /// Whether it names the column.
    pub fn names(&self, column: &str) -> bool {
        self.columns.iter().any(|c| eq_name(c, column))
    }
}

/// One CHECK constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckDef {
    /// Unique in the database.
    pub name: Arc<str>,
    pub expr: StoredExpr,
    /// Not `NOT ENFORCED`.
    pub enforced: bool,
}

impl CheckDef {
    /// The name that the constraint has once its table is called `new`: a generated name goes with
    /// the table's.
    pub fn renamed(&self, old: &str, new: &str) -> Arc<str> {
        match check_number(&self.name, old) {
            Some(n) => check_name(new, n),
            None => self.name.clone(),
        }
    }
}

/// The name of CHECK constraint number `n` of a table, where none was written.
pub fn check_name(table: &str, n: u32) -> Arc<str> {
    format!("{table}_chk_{n}").into()
}

/// The number of a generated name.
pub fn check_number(name: &str, table: &str) -> Option<u32> {
    let rest = name.strip_prefix(table)?.strip_prefix("_chk_")?;
    let digits = !rest.starts_with('0') && rest.bytes().all(|b| b.is_ascii_digit());
    rest.parse().ok().filter(|_| digits)
}

/// The expression of a generated column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedColumn {
    pub expr: StoredExpr,
    /// `STORED`, not `VIRTUAL`. Rows hold the value either way.
    pub stored: bool,
    /// The type of the elements, if the column holds the elements of a multi-valued key part
    /// (`CAST(... AS ... ARRAY)`). Its rows hold packed key parts (`nfold_types::key::Elements`).
    pub array_of: Option<ColumnType>,
}

/// The bound form of a definition's stored expressions. The planner makes it at the first use and
/// every session shares it; the catalog does not know its type.
///
/// It is no part of the definition: it does not count for equality, and a copy starts without it.
#[derive(Default)]
pub struct BoundExprs(OnceLock<Arc<dyn Any + Send + Sync>>);

impl BoundExprs {
    /// The bound form, if it was made.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.get()?.clone().downcast().ok()
    }

    /// Keeps the bound form, unless another session was faster.
    pub fn set<T: Any + Send + Sync>(&self, bound: Arc<T>) {
        let _another_was_faster = self.0.set(bound);
    }
}

impl Clone for BoundExprs {
    fn clone(&self) -> Self {
        BoundExprs::default()
    }
}

impl PartialEq for BoundExprs {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for BoundExprs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BoundExprs")
    }
}

impl TableDef {
    /// The CHECK constraint called `name`.
    pub fn check(&self, name: &str) -> Option<usize> {
        self.checks.iter().position(|c| eq_name(&c.name, name))
    }

    /// All stored expressions.
    pub fn stored_exprs(&self) -> impl Iterator<Item = &StoredExpr> {
        let columns = self.columns.iter().flat_map(|c| {
            let default = match &c.default {
                ColumnDefault::Expr(e) => Some(&**e),
                _ => None,
            };
            default
                .into_iter()
                .chain(c.generated.as_ref().map(|g| &g.expr))
        });
        self.checks.iter().map(|c| &c.expr).chain(columns)
    }
}
