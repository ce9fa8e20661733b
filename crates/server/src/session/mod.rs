//! Sessions: from a command to its answer.
//!
//! ```text
//! handler (commands) ─▶ dispatch (statements) ─┬─▶ run: plan cache, planner, executor
//!                                              ├─▶ set, transaction, show, account, ddl, prepared
//!   env: what expressions see                  └─▶ response: rows and OK to the client
//! ```

pub mod cx;
pub mod prepared;
pub mod privilege;
pub mod response;
pub mod show;
pub mod tables;
pub mod vars;
