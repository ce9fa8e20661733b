//! Sessions, system variables, authentication, workers, system views, configuration.
//!
//! ```text
//! listen ── accepts ──▶ worker (epoll, fibers) ── owns ──▶ conn (login, commands) ── calls ──▶ handler::SessionHandler
//! config, auth, tls: what they are given
//!
//! SessionHandler: statement ─▶ introspection ─▶ ddl ─▶ session
//! ```

pub mod auth;
pub mod config;
pub mod conn;
pub mod database;
pub mod ddl;
pub mod embedded;
mod general_log;
pub mod handler;
pub mod heavy;
pub mod introspection;
mod listen;
mod log_file;
pub mod pool_list;
pub mod server;
pub mod session;
pub mod slow_log;
pub mod statement;
mod tls;
pub mod worker;
