//! The results of SHOW and DESCRIBE about databases, tables, columns and indexes, built from the
//! schema and the engine. Does no I/O; the engine has its statistics in memory.
//!
//! Source: MySQL manual, "SHOW Statements", with MySQL's names and order of the columns.

pub mod schema;

use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, TextSize, TypeKind, Value};

/// A small result: columns with their types, and rows.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    pub columns: Vec<(String, ColumnType)>,
    pub rows: Vec<Vec<Value>>,
}

impl View {
    fn new(columns: &[(&str, ColumnType)]) -> View {
        View {
            columns: columns
                .iter()
                .map(|(n, t)| ((*n).to_owned(), t.clone()))
                .collect(),
            rows: Vec::new(),
        }
    }

    fn push(&mut self, row: Vec<Value>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a value for each column");
        self.rows.push(row);
    }
}

const UTF8: CollationId = CollationId::UTF8MB4_0900_AI_CI;

fn text(chars: u32) -> ColumnType {
    ColumnType::string(TypeKind::VarChar(chars), UTF8)
}

fn long_text() -> ColumnType {
    ColumnType::string(TypeKind::Text(TextSize::Medium), UTF8)
}

fn number() -> ColumnType {
    ColumnType::bigint().with_unsigned()
}

fn yes_no(yes: bool) -> Value {
    Value::from(if yes { "YES" } else { "NO" })
}
