//! Following a replication source: the connection to it, and what a channel remembers.
//!
//! # Picture
//! ```text
//! ChannelConfig ─▶ Source::connect ─ login ─ checks ─ COM_BINLOG_DUMP[_GTID] ─▶ packets, heartbeats
//!                                                                                    │
//! Coordinates ◀── committed with each transaction ◀── the server's applier ◀── nfold-binlog
//! ```
//! # Invariants
//! - R1: nothing here changes a table. The server's applier does, and commits [`Coordinates`] in
//!   the transaction that it applies.
//!
//! # Not here
//! The format of events is in `nfold-binlog`; the statements and threads of a channel are in
//! `nfold-server`.
#![forbid(unsafe_code)]

mod channel;
mod client;
mod login;
mod semi_sync;
mod source;
mod stream;
mod tls;

pub use channel::{BranchStep, ChannelConfig, Coordinates, Filters};
pub use client::{Client, Done, RowValues, TextRows};
pub use source::{Source, SourceError, StartAt};
pub use tls::TlsFiles;
