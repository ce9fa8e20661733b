//! Limits of one connection.

use std::time::Duration;

/// Time and size limits of one connection. The session changes its own with
/// `FiberCx::set_limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// An idle connection is closed after this.
    pub wait_timeout: Duration,
    /// A command that has begun to arrive must be whole within this.
    pub net_read_timeout: Duration,
    /// A client that takes nothing of its result for this long is dropped.
    pub net_write_timeout: Duration,
    /// Largest command in bytes.
    pub max_allowed_packet: usize,
}
