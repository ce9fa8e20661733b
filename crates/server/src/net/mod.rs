//! Connections: sockets, login, workers and fibers.
//!
//! ```text
//! listen ── accepts ──▶ worker (epoll) ── owns ──▶ conn (login, commands) ──▶ fiber
//! ```
//! - `fiber`: the coroutine of a command, its buffers, and the interface to sessions.
//! - `auth`, `tls`: used by the login.

pub mod auth;
pub mod conn;
pub mod fiber;
pub(crate) mod listen;
pub(crate) mod tls;
pub mod worker;
