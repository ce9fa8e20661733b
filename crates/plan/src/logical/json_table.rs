//! JSON_TABLE: a document whose members are rows.

use std::sync::Arc;

use nfold_catalog::ColumnDef;
use nfold_json::Path;

use super::expr::Expr;

/// The rows of a JSON_TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTable {
    /// Over the tables before it in FROM, and those of enclosing queries.
    pub document: Expr,
    pub shape: Arc<JsonTableShape>,
}

/// The columns of a JSON_TABLE, and where their values are in the document.
#[derive(Debug, PartialEq)]
pub struct JsonTableShape {
    pub columns: Vec<ColumnDef>,
    pub rows: JsonRows,
}

/// A path whose values are rows. Columns are named by their number.
#[derive(Debug, PartialEq)]
pub struct JsonRows {
    pub path: Path,
    /// `FOR ORDINALITY`: the row's number, from 1.
    pub ordinals: Vec<usize>,
    pub values: Vec<JsonValueColumn>,
    /// NESTED PATH, in the order written.
    pub nested: Vec<JsonRows>,
}

/// A column whose value is at a path below its row.
#[derive(Debug, PartialEq)]
pub struct JsonValueColumn {
    pub column: usize,
    pub path: Path,
    /// EXISTS PATH: 1 where the path finds something, otherwise 0.
    pub exists: bool,
    pub on_empty: JsonFallback,
    pub on_error: JsonFallback,
}

/// A column's value where the path finds nothing, or something that does not convert.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonFallback {
    Null,
    Error,
    /// A document, in the binary layout.
    Default(Box<[u8]>),
}
