//! What is found wrong, and why a copy ends early.

use std::fmt;

use nfold_replica::SourceError;

/// Something that the user should know about the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether it prevents the copy.
    pub is_error: bool,
    pub what: String,
    pub what_to_do: String,
}

impl Finding {
    pub fn error(what: impl Into<String>, what_to_do: impl Into<String>) -> Finding {
        Finding {
            is_error: true,
            ..Finding::warning(what, what_to_do)
        }
    }

    pub fn warning(what: impl Into<String>, what_to_do: impl Into<String>) -> Finding {
        Finding {
            is_error: false,
            what: what.into(),
            what_to_do: what_to_do.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_error { "error" } else { "warning" };
        write!(f, "{kind}: {}; {}", self.what, self.what_to_do)
    }
}

/// Why a command ends, as one line for the user.
#[derive(Debug)]
pub struct CopyError(pub String);

impl CopyError {
    /// An error of one side while it did `doing`.
    pub fn at(doing: impl fmt::Display) -> impl FnOnce(SourceError) -> CopyError {
        move |e| match &e {
            SourceError::Server { code, message } => {
                CopyError(format!("{doing}: error {code}: {message}"))
            }
            other => CopyError(format!("{doing}: {other}")),
        }
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CopyError {}

impl From<SourceError> for CopyError {
    fn from(e: SourceError) -> Self {
        CopyError(e.to_string())
    }
}
