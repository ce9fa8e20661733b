//! The rows of LOAD DATA: what the fields of a file become.

use nfold_sql::ast::FileFormat;

use super::clauses::Assignment;

/// The rows of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRows {
    pub format: FileFormat,
    /// `IGNORE n LINES`
    pub skip_lines: u64,
    /// The target of each field, in the order of the fields.
    pub targets: Vec<FileTarget>,
    /// Evaluated when the fields of a row are stored. Slot 0 is the new row.
    pub set: Vec<Assignment>,
}

/// The place where a field is stored.
#[derive(Debug, Clone, PartialEq)]
pub enum FileTarget {
    /// The column with this ordinal.
    Column(usize),
    /// A user variable, in lower case.
    Variable(Box<str>),
}

impl FileRows {
    /// Whether the fields have fixed lengths and nothing between them.
    pub fn is_fixed(&self) -> bool {
        self.format.field_end.is_empty() && self.format.enclosed.is_empty()
    }
}
