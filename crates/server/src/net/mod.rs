//! Connections: sockets, login, workers and fibers.
//!
//! ```text
//! listen ── accepts ──▶ worker (epoll) ── owns ──▶ conn (login, commands) ──▶ fiber
//! ```
//! - `fiber`: what a command runs on, its buffers, and the boundary to sessions.
//! - `auth`, `tls`: what a login needs.

pub mod auth;
pub mod conn;
pub mod fiber;
pub(crate) mod listen;
pub(crate) mod tls;
pub mod worker;
