//! Errors and warnings as a MySQL client sees them.

mod codes;
mod signal;

pub use codes::ErrorCode;
pub use signal::{SignalItem, Signaled};
use std::fmt::{self, Display, Write};

impl ErrorCode {
    /// MySQL's number of this error.
    pub fn errno(self) -> u16 {
        self as u16
    }

    /// The code with this errno, if the table has it.
    pub fn from_errno(errno: u16) -> Option<ErrorCode> {
        let all = ErrorCode::ALL;
        all.binary_search_by_key(&errno, |c| c.errno())
            .ok()
            .map(|i| all[i])
    }
}

/// An error with its formatted message, ready for an ERR packet.
#[derive(Clone, PartialEq, Eq)]
pub struct SqlError {
    /// Which error.
    pub code: ErrorCode,
    /// The message, without the number and the SQLSTATE.
    pub message: Box<str>,
}

impl SqlError {
    /// An error of the table; `args` fill the template's placeholders in order.
    ///
    /// A missing argument leaves nothing in its place, a surplus one is dropped.
    pub fn new(code: ErrorCode, args: &[&dyn Display]) -> SqlError {
        SqlError {
            code,
            message: format_template(code.template(), args).into(),
        }
    }

    /// An error with a message of the caller's own (for those that MySQL itself words freely, as
    /// 1105 and 1815).
    pub fn with_message(code: ErrorCode, message: impl Into<Box<str>>) -> SqlError {
        SqlError {
            code,
            message: message.into(),
        }
    }

    /// Error 1235: "This version of MySQL doesn't yet support '<what>'".
    pub fn not_supported(what: impl Display) -> SqlError {
        SqlError::new(ErrorCode::ER_NOT_SUPPORTED_YET, &[&what])
    }

    /// MySQL's number.
    pub fn errno(&self) -> u16 {
        self.code.errno()
    }

    /// The five characters of the SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        self.code.sqlstate()
    }
}

impl Display for SqlError {
    /// As the `mysql` client prints it: `ERROR 1062 (23000): Duplicate entry ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ERROR {} ({}): {}",
            self.errno(),
            self.sqlstate(),
            self.message
        )
    }
}

impl fmt::Debug for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.code.symbol())
    }
}

impl std::error::Error for SqlError {}

/// Fills printf placeholders (`%s`, `%-.192s`, `%d`, `%lu`, `%.*s`, `%%`) in order. A precision on
/// `%s` truncates, counted in characters.
pub fn format_template(template: &str, args: &[&dyn Display]) -> String {
    let mut out = String::with_capacity(template.len() + 32);
    let mut args = args.iter();
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest
            .find(|c: char| c.is_ascii_alphabetic() || c == '%')
            .unwrap_or(rest.len());
        let spec = &rest[..end];
        let conversion = rest[end..].chars().next();
        rest = rest.get(end + 1..).unwrap_or("");
        match conversion {
            Some('%') => out.push('%'),
            Some('l') => {
                // %ld %lu %lld %llu
                rest = rest.trim_start_matches('l').get(1..).unwrap_or("");
                push_arg(&mut out, args.next(), None);
            }
            Some('s') => {
                let precision = spec
                    .split_once('.')
                    .and_then(|(_, p)| p.parse::<usize>().ok());
                push_arg(&mut out, args.next(), precision);
            }
            Some(_) => push_arg(&mut out, args.next(), None),
            None => {}
        }
    }
    out.push_str(rest);
    out
}

fn push_arg(out: &mut String, arg: Option<&&dyn Display>, precision: Option<usize>) {
    let Some(arg) = arg else { return };
    match precision {
        // Writing to a String cannot fail.
        None => write!(out, "{arg}").unwrap_or(()),
        Some(limit) => {
            let text = arg.to_string();
            out.extend(text.chars().take(limit));
        }
    }
}

/// The level of a condition as `SHOW WARNINGS` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// `Note`
    Note,
    /// `Warning`
    Warning,
    /// `Error`
    Error,
}

impl Level {
    /// The word in `SHOW WARNINGS`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// One row of `SHOW WARNINGS`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// Note, warning or error.
    pub level: Level,
    /// Which condition.
    pub code: ErrorCode,
    /// The formatted message.
    pub message: Box<str>,
    /// For a condition of SIGNAL: its own number, SQLSTATE and items.
    pub signaled: Option<Box<Signaled>>,
}

impl Warning {
    /// The number that clients see.
    pub fn errno(&self) -> u16 {
        self.signaled
            .as_ref()
            .map_or(self.code.errno(), |s| s.errno)
    }

    /// The five characters of the SQLSTATE.
    pub fn sqlstate(&self) -> &str {
        match &self.signaled {
            Some(signaled) => &signaled.sqlstate,
            None => self.code.sqlstate(),
        }
    }
}

/// Where a statement's warnings go: keeps the first `limit` (`max_error_count`), counts all.
#[derive(Clone, Debug)]
pub struct Warnings {
    list: Vec<Warning>,
    total: u64,
    limit: usize,
    strict: bool,
    raised: Option<SqlError>,
}

/// A position in the list of [`Warnings`].
#[derive(Clone, Copy, Debug)]
pub struct WarningsMark {
    listed: usize,
    total: u64,
    raised: bool,
}

impl WarningsMark {
    /// The position after `n` conditions were inserted before it.
    pub fn moved_by(self, n: usize) -> WarningsMark {
        WarningsMark {
            listed: self.listed + n,
            total: self.total + n as u64,
            ..self
        }
    }
}

impl Default for Warnings {
    fn default() -> Self {
        Warnings::with_limit(1024)
    }
}

impl Warnings {
    /// An empty list that keeps at most `limit` conditions.
    pub fn with_limit(limit: usize) -> Warnings {
        Warnings {
            list: Vec::new(),
            total: 0,
            limit,
            strict: false,
            raised: None,
        }
    }

    /// From now on, or no more, warnings that say that a value was lost are errors: how a statement
    /// that changes rows runs in strict mode (MySQL's `Strict_error_handler`). The first of them
    /// waits in [`Warnings::take_raised`]; forgets one that waits.
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
        self.raised = None;
    }

    /// See [`Warnings::set_strict`].
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// An error of a place that cannot end the statement: it fails when it is over.
    pub fn raise(&mut self, error: SqlError) {
        self.raised.get_or_insert(error);
    }

    /// The first error of [`Warnings::raise`], or the first warning that strict mode made an error.
    pub fn take_raised(&mut self) -> Option<SqlError> {
        self.raised.take()
    }

    /// Whether strict mode makes an error of this condition.
    fn raises(&self, level: Level, code: ErrorCode) -> bool {
        use ErrorCode::*;
        self.strict
            && level == Level::Warning
            && matches!(
                code,
                ER_TRUNCATED_WRONG_VALUE
                    | ER_WARN_DATA_OUT_OF_RANGE
                    | ER_DIVISION_BY_ZERO
                    | ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
                    | WARN_DATA_TRUNCATED
                    | ER_DATA_TOO_LONG
                    | ER_BAD_NULL_ERROR
                    | ER_NO_DEFAULT_FOR_FIELD
                    | ER_CUT_VALUE_GROUP_CONCAT
                    | ER_DATETIME_FUNCTION_OVERFLOW
                    | ER_WARN_ALLOWED_PACKET_OVERFLOWED
                    | ER_WRONG_VALUE_FOR_TYPE
                    | ER_INVALID_ARGUMENT_FOR_LOGARITHM
                    | ER_WARN_TOO_FEW_RECORDS
                    | ER_WARN_TOO_MANY_RECORDS
                    | ER_WARN_NULL_TO_NOTNULL
            )
    }

    /// Keeps at most `limit` conditions from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Adds a condition; beyond the limit it is only counted. The message is formatted only when it
    /// is kept.
    pub fn push(&mut self, level: Level, code: ErrorCode, args: &[&dyn Display]) {
        if self.raises(level, code) {
            self.raised.get_or_insert_with(|| SqlError::new(code, args));
            return;
        }
        self.total += 1;
        if self.list.len() < self.limit {
            let message = format_template(code.template(), args).into();
            self.list.push(Warning {
                level,
                code,
                message,
                signaled: None,
            });
        }
    }

    /// Adds a condition of level Warning.
    pub fn warn(&mut self, code: ErrorCode, args: &[&dyn Display]) {
        self.push(Level::Warning, code, args);
    }

    /// Adds an error as the condition of this level (an error that IGNORE turned into a warning, or
    /// the error itself).
    pub fn push_error(&mut self, level: Level, error: &SqlError) {
        if self.raises(level, error.code) {
            self.raised.get_or_insert_with(|| error.clone());
            return;
        }
        self.total += 1;
        if self.list.len() < self.limit {
            self.list.push(Warning {
                level,
                code: error.code,
                message: error.message.clone(),
                signaled: None,
            });
        }
    }

    /// Adds the condition of a SIGNAL.
    pub fn push_signaled(&mut self, level: Level, error: &SqlError, signaled: Box<Signaled>) {
        self.total += 1;
        if self.list.len() < self.limit {
            self.list.push(Warning {
                level,
                code: error.code,
                message: error.message.clone(),
                signaled: Some(signaled),
            });
        }
    }

    /// The kept conditions, oldest first.
    pub fn list(&self) -> &[Warning] {
        &self.list
    }

    /// How many were raised, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The position behind all conditions so far.
    pub fn mark(&self) -> WarningsMark {
        WarningsMark {
            listed: self.list.len(),
            total: self.total,
            raised: self.raised.is_some(),
        }
    }

    /// Forgets the conditions behind a mark.
    pub fn return_to(&mut self, mark: WarningsMark) {
        self.list.truncate(mark.listed);
        self.total = mark.total;
        if !mark.raised {
            self.raised = None;
        }
    }

    /// As [`push_error`](Self::push_error), for a condition that belongs before those behind
    /// `mark`.
    pub fn insert_error(&mut self, mark: WarningsMark, level: Level, error: &SqlError) {
        let later = self.list.split_off(mark.listed.min(self.list.len()));
        self.push_error(level, error);
        self.list.extend(later);
        self.list.truncate(self.limit);
    }

    /// Forgets all of them; keeps the allocation.
    pub fn clear(&mut self) {
        self.list.clear();
        self.total = 0;
    }
}

#[cfg(test)]
mod tests;
