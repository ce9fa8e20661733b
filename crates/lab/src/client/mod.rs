//! A MySQL client. A blocking [`Connection`] serves administration. [`drive`] loads a server from
//! many connections on few threads.
//!
//! ```text
//!  Source (one per connection) ──▶ Command ──▶ bytes ──▶ socket      drive: epoll, many sockets a
//!  thread
//!                    ▲                                     │
//!                    └────── Answer ◀── Response ◀── bytes ┘          rows are counted or hashed
//! ```
//!
//! # Not here
//! Compression, which is never requested.

mod auth;
mod command;
pub(crate) mod connection;
pub mod drive;
pub mod pipeline;
mod response;
mod stream;

pub use command::{Command, Param, Values};
pub use connection::{Connection, ResultSet};
pub(crate) use response::hash;
pub use response::{Answer, Response, RowSink, ServerError};
pub use stream::Stream;
