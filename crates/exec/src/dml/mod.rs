//! INSERT, REPLACE, UPDATE and DELETE: every statement that changes rows.
//!
//! # Picture
//! ```text
//!  insert.rs ──▶ one row at a time from VALUES, a parameter list, a query or a file
//!     │              auto_increment.rs   the automatic value
//!     │              later_inserts.rs    rows that are inserted several at a time
//!     │              conflict.rs         REPLACE and ON DUPLICATE KEY UPDATE
//!     │              file_rows.rs        LOAD DATA ── file_reader.rs   the fields of a file
//!  update.rs ──▶ rows found by one block ── target_rows.rs ──▶ assignment.rs   the new image
//!  delete.rs ──▶ rows found by one block ── target_rows.rs
//!  multi_table.rs ──▶ rows of several tables found by a join ── encounters.rs ──▶ changed table by table
//!  row_events.rs ──▶ rows of a replication source, found by key
//!     │
//!     └──▶ pipeline.rs   row_exprs.rs   generated columns, CHECK ──▶ changes a row ──▶ foreign.rs   its parents, its children, cascades
//!                                                                      └──▶ change_log.rs   its row event, if there is a binary log
//! ```
//!
//! # Invariants
//! - D1. Only [`pipeline::TableChanges`] and the cascades of `foreign` change rows. So a step that
//!   belongs to every change (CHECK, foreign keys, triggers, row events) has one place.
//! - D2. A failed statement has no effect: `statement::execute` rolls back to the savepoint that it
//!   set before the first change.

mod array_elements;
mod assignment;
mod auto_increment;
pub mod change_log;
mod conflict;
mod copied_rows;
mod delete;
mod duplicate;
mod encounters;
mod file_reader;
mod file_rows;
mod foreign;
mod insert;
mod later_inserts;
mod multi_table;
mod pipeline;
mod row_events;
mod row_exprs;
mod target_rows;
mod update;

pub use copied_rows::CopiedRows;
pub(crate) use delete::delete;
pub use foreign::no_referenced_row;
pub(crate) use insert::insert;
pub(crate) use multi_table::{delete as multi_table_delete, update as multi_table_update};
pub use row_events::ExpectedRows;
pub(crate) use row_events::apply_row_event;
pub(crate) use update::update;
