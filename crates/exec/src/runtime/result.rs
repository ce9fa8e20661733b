//! The result of a statement.

use nfold_types::{ErrorCode, SqlError};

/// The result of a statement, for the OK packet and the session's functions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatementResult {
    /// Whether a result set was sent. Then only `rows` and `found_rows` are meaningful.
    pub is_query: bool,
    /// `FOUND_ROWS()` is `found_rows` from now on, also if there is no result set.
    pub sets_found_rows: bool,
    /// The number of rows sent.
    pub rows: u64,
    /// `FOUND_ROWS()`.
    pub found_rows: u64,
    /// The number of changed rows. A row changed by ON DUPLICATE KEY UPDATE counts twice.
    pub affected: u64,
    /// UPDATE: the number of rows found; ON DUPLICATE KEY UPDATE: `affected` and the rows found
    /// but not changed. The client sees it as `affected` under CLIENT_FOUND_ROWS.
    pub matched: u64,
    /// For the OK packet: the first automatic value, otherwise the last explicit one.
    pub last_insert_id: u64,
    /// The new value of `LAST_INSERT_ID()`, if the statement generated one.
    pub generated_id: Option<u64>,
    /// The numbers in the OK packet's text about a change of several rows.
    pub summary: Option<ChangeSummary>,
    /// The number of rows read from tables.
    pub examined: u64,
}

/// The numbers in the text of an OK packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeSummary {
    Insert {
        records: u64,
        duplicates: u64,
        /// Rows that count as duplicates, too, under CLIENT_FOUND_ROWS.
        unchanged: u64,
        warnings: u64,
    },
    Update {
        matched: u64,
        changed: u64,
        warnings: u64,
    },
    /// LOAD DATA
    Load {
        records: u64,
        deleted: u64,
        skipped: u64,
        warnings: u64,
    },
}

impl StatementResult {
    /// The result of a change whose rows count for `FOUND_ROWS()`: those that the query of INSERT
    /// ... SELECT has read, or those that UPDATE has found.
    pub(crate) fn with_found_rows(self) -> StatementResult {
        let found_rows = match self.summary {
            Some(ChangeSummary::Insert { records, .. }) => records,
            Some(ChangeSummary::Update { matched, .. }) => matched,
            Some(ChangeSummary::Load { .. }) | None => return self,
        };
        StatementResult {
            found_rows,
            sets_found_rows: true,
            ..self
        }
    }

    /// The text of the OK packet (ER_INSERT_INFO, ER_UPDATE_INFO, ER_LOAD_INFO); empty without a
    /// summary. `found_rows`: CLIENT_FOUND_ROWS.
    pub fn info(&self, found_rows: bool) -> String {
        let parts: &[(&str, u64)] = match self.summary {
            None => return String::new(),
            Some(ChangeSummary::Insert {
                records,
                duplicates,
                unchanged,
                warnings,
            }) => &[
                ("Records: ", records),
                (
                    "  Duplicates: ",
                    duplicates + if found_rows { unchanged } else { 0 },
                ),
                ("  Warnings: ", warnings),
            ],
            Some(ChangeSummary::Update {
                matched,
                changed,
                warnings,
            }) => &[
                ("Rows matched: ", matched),
                ("  Changed: ", changed),
                ("  Warnings: ", warnings),
            ],
            Some(ChangeSummary::Load {
                records,
                deleted,
                skipped,
                warnings,
            }) => &[
                ("Records: ", records),
                ("  Deleted: ", deleted),
                ("  Skipped: ", skipped),
                ("  Warnings: ", warnings),
            ],
        };
        // The names, and numbers of up to 20 digits.
        let mut text = String::with_capacity(128);
        let mut digits = itoa::Buffer::new();
        for (name, number) in parts {
            text.push_str(name);
            text.push_str(digits.format(*number));
        }
        text
    }
}

/// Adds the table's name to an error of the storage layer, which does not know it.
pub fn full_table(error: SqlError, table: &str) -> SqlError {
    if error == SqlError::new(ErrorCode::ER_RECORD_FILE_FULL, &[&"table"]) {
        return SqlError::new(ErrorCode::ER_RECORD_FILE_FULL, &[&table]);
    }
    error
}
