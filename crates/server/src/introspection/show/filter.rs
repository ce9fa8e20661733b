//! LIKE of SHOW statements, applied to rows in memory. `Session::show` applies WHERE.

use nfold_sql::ast::ShowFilter;
use nfold_types::Value;
use nfold_types::collation::CollationId;

use crate::session::response::RowSet;

/// Names in the dictionary are compared without regard to case, and so is `Variable_name`.
const NAMES: CollationId = CollationId::UTF8MB3_GENERAL_CI;

/// Whether `text` matches the LIKE pattern `pattern`.
pub fn like(text: &[u8], pattern: &[u8]) -> bool {
    NAMES.known().like(text, pattern, Some('\\'))
}

/// Removes the rows whose value in `column` does not match the filter's LIKE. A WHERE removes none.
pub fn apply(set: &mut RowSet, filter: Option<&ShowFilter>, column: usize) {
    if let Some(ShowFilter::Like(pattern)) = filter {
        let matches = |v: &Value| matches!(v, Value::Bytes(text) if like(text, pattern));
        set.rows.retain(|row| matches(&row[column]));
    }
}
