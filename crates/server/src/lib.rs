//! Sessions, system variables, authentication, workers, system views, configuration.
//!
//! ```text
//! listen ── accepts ──▶ worker (epoll, fibers) ── owns ──▶ conn (login, commands) ── calls ──▶ handler::SessionHandler
//! config, auth, tls: what they are given
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
mod listen;
mod log_file;
pub mod pool_list;
pub mod server;
pub mod session;
pub mod slow_log;
mod system;
mod tls;
pub mod views;
pub mod worker;
