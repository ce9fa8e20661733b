//! One statement, from its text to its answer.
//!
//! ```text
//! handler (commands) ─▶ dispatch (statements) ─┬─▶ run: plan cache, planner, executor
//!                                              ├─▶ set, account, select_into
//!                                              └─▶ ddl, introspection: the folders below
//! ```

mod account;
mod dispatch;
mod factory;
mod handler;
mod run;
mod scalar;
mod select_into;
mod set;

pub use factory::{Sessions, server_state};
