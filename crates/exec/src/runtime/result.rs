//! What a statement has done.

use nfold_types::{ErrorCode, SqlError};

/// What a statement has done, for the OK packet and the session's functions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatementResult {
    /// A result set went to the sink; of what follows only `rows` and `found_rows` count then.
    pub is_query: bool,
    /// Rows sent.
    pub rows: u64,
    /// `FOUND_ROWS()`
    pub found_rows: u64,
    /// Rows changed (2 for one that ON DUPLICATE KEY UPDATE changed).
    pub affected: u64,
    /// UPDATE: rows found; what `affected` is under CLIENT_FOUND_ROWS.
    pub matched: u64,
    /// For the OK packet: the first automatic value, or else the last one given.
    pub last_insert_id: u64,
    /// What `LAST_INSERT_ID()` is from now on, if the statement made a value.
    pub generated_id: Option<u64>,
    /// What the OK packet says about a change of several rows.
    pub summary: Option<ChangeSummary>,
    /// Rows that were read from tables.
    pub examined: u64,
}

/// Numbers for the text of an OK packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeSummary {
    Insert {
        records: u64,
        duplicates: u64,
        warnings: u64,
    },
    Update {
        matched: u64,
        changed: u64,
        warnings: u64,
    },
}

impl StatementResult {
    /// The text of the OK packet (ER_INSERT_INFO, ER_UPDATE_INFO); empty without a summary.
    pub fn info(&self) -> String {
        let parts = match self.summary {
            None => return String::new(),
            Some(ChangeSummary::Insert {
                records,
                duplicates,
                warnings,
            }) => [
                ("Records: ", records),
                ("  Duplicates: ", duplicates),
                ("  Warnings: ", warnings),
            ],
            Some(ChangeSummary::Update {
                matched,
                changed,
                warnings,
            }) => [
                ("Rows matched: ", matched),
                ("  Changed: ", changed),
                ("  Warnings: ", warnings),
            ],
        };
        // Three names, and three numbers of up to 20 digits.
        let mut text = String::with_capacity(104);
        let mut digits = itoa::Buffer::new();
        for (name, number) in parts {
            text.push_str(name);
            text.push_str(digits.format(number));
        }
        text
    }
}

/// The storage layer knows no table's name: it is put into its error here.
pub fn full_table(error: SqlError, table: &str) -> SqlError {
    if error == SqlError::new(ErrorCode::ER_RECORD_FILE_FULL, &[&"table"]) {
        return SqlError::new(ErrorCode::ER_RECORD_FILE_FULL, &[&table]);
    }
    error
}
