//! What stops a command of the lab: each prints as one clear line.

use std::fmt;
use std::io;

/// What stops a command.
#[derive(Debug)]
pub enum LabError {
    /// The user asked for something that cannot be: the whole message.
    Usage(String),
    /// A file or a socket: what was done to what, and the system's answer.
    Io { doing: String, error: io::Error },
    /// The server refused: its error number (MySQL's) and message.
    Server { code: u16, message: String },
    /// A server took the connection and refused the login.
    Refused {
        /// Its DSN, without the password.
        server: String,
        code: u16,
        message: String,
    },
    /// What came is not what the protocol or a file format allows: the whole message.
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
