//! The limits of one connection.

use std::time::Duration;

/// The time and size limits of one connection. A session changes its own with
/// `FiberCx::set_limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// An idle connection is closed after this time.
    pub wait_timeout: Duration,
    /// A command must arrive completely within this time.
    pub net_read_timeout: Duration,
    /// A client that does not read its result for this time is disconnected.
    pub net_write_timeout: Duration,
    /// The maximum size of a command in bytes.
    pub max_allowed_packet: usize,
}
