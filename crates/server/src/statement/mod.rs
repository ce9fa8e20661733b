//! One statement, from its text to its answer.
//!
//! ```text
//! handler (commands) ─▶ dispatch (statements) ─┬─▶ run: plan cache, planner, executor
//!                                              ├─▶ set, account, component, select_into, diagnostics
//!                                              ├─▶ result_file: INTO OUTFILE and DUMPFILE
//!                                              ├─▶ load: LOAD DATA, from server_file or the client
//!                                              ├─▶ handler_tables: HANDLER
//!                                              ├─▶ xa: XA
//!                                              ├─▶ replica: the replication channel
//!                                              ├─▶ binlog_dump: events for replicas; binary_logs: FLUSH, PURGE, RESET
//!                                              ├─▶ binlog_events: BINLOG '...'
//!                                              └─▶ ddl, introspection: the folders below
//! applied: statements of a replication source
//! ```

mod account;
mod applied;
mod binary_logs;
mod binlog_dump;
mod binlog_events;
mod client_text;
mod component;
mod cursor;
mod diagnostics;
mod dispatch;
mod explain_connection;
mod factory;
mod gate;
mod handler;
mod handler_tables;
mod kind;
mod load;
mod optimizer_trace;
mod replica;
mod result_file;
mod run;
mod scalar;
mod select_into;
mod server_file;
mod server_locks;
mod set;
mod xa;

pub use factory::{Sessions, server_state};
