//! JSON_TABLE: the members of a document as rows.

use std::sync::Arc;

use nfold_catalog::ColumnDef;
use nfold_json::Path;

use super::expr::Expr;

/// A JSON_TABLE in FROM.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTable {
    /// The document, over the tables before it in FROM and those of enclosing queries.
    pub document: Expr,
    pub shape: Arc<JsonTableShape>,
}

/// The columns of a JSON_TABLE, and the paths of their values in the document.
#[derive(Debug, PartialEq)]
pub struct JsonTableShape {
    pub columns: Vec<ColumnDef>,
    pub rows: JsonRows,
}

/// A path that produces rows. Columns are identified by their ordinals.
#[derive(Debug, PartialEq)]
pub struct JsonRows {
    pub path: Path,
    /// `FOR ORDINALITY` columns: the number of the row, from 1.
    pub ordinals: Vec<usize>,
    pub values: Vec<JsonValueColumn>,
    /// NESTED PATH clauses, in the order written.
    pub nested: Vec<JsonRows>,
}

/// A column whose value is at a path relative to its row.
#[derive(Debug, PartialEq)]
pub struct JsonValueColumn {
    pub column: usize,
    pub path: Path,
    /// EXISTS PATH: the value is 1 if the path finds something, otherwise 0.
    pub exists: bool,
    pub on_empty: JsonFallback,
    pub on_error: JsonFallback,
}

/// The value of a column if its path finds nothing (ON EMPTY), or a value that cannot be converted
/// (ON ERROR).
#[derive(Debug, Clone, PartialEq)]
pub enum JsonFallback {
    Null,
    Error,
    /// A document in the binary layout.
    Default(Box<[u8]>),
}
