//! Errors of the lab's commands. Each prints as one clear line.

use std::fmt;
use std::io;

/// An error that ends a command.
#[derive(Debug)]
pub enum LabError {
    /// Invalid arguments or an impossible request. Contains the whole message.
    Usage(String),
    /// A file or socket operation failed: what was done to which file, and the system's error.
    Io { doing: String, error: io::Error },
    /// The server returned an error: MySQL's error number and the message.
    Server { code: u16, message: String },
    /// The server accepted the connection and rejected the login.
    Refused {
        /// The server's DSN, without the password.
        server: String,
        code: u16,
        message: String,
    },
    /// Received bytes violate the protocol or a file format. Contains the whole message.
    Malformed(String),
}

impl LabError {
    /// For `map_err`: `LabError::io(format!("cannot read {path}"))`.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
        let doing = doing.into();
        move |error| LabError::Io { doing, error }
    }

    pub fn usage(message: impl Into<String>) -> LabError {
        LabError::Usage(message.into())
    }

    pub fn malformed(message: impl Into<String>) -> LabError {
        LabError::Malformed(message.into())
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Usage(message) | LabError::Malformed(message) => f.write_str(message),
            LabError::Io { doing, error } => write!(f, "{doing}: {error}"),
            LabError::Server { code, message } => write!(f, "the server says {code}: {message}"),
            LabError::Refused {
                server,
                code,
                message,
            } => write!(f, "{server}: the server says {code}: {message}"),
        }
    }
}

impl std::error::Error for LabError {}
