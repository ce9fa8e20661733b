//! The executor: compiles plans to operators over batches, evaluates expressions, and sends rows to
//! the client.
//!
//! Imports go one way, from a folder to those below it:
//!
//! ```text
//! statement, operator_pool   what the session calls
//! explain                    plans as text
//! dml                        row changes
//! query                      blocks, set operations, subqueries
//! operators                  from batches to batches
//! runtime                    one execution of a statement, spill files
//! expr                       evaluation, functions, kernels, keys
//! env                        the session, the fiber, parameters, memory
//! ```
#![forbid(unsafe_code)]

mod dml;
pub mod env;
mod explain;
mod expr;
mod fulltext;
mod operator_pool;
mod operators;
mod query;
mod runtime;
mod statement;
#[cfg(test)]
mod tests;

pub use dml::ExpectedRows;
pub use dml::change_log::{change_kind, logged_columns};
pub use dml::{CopiedRows, no_referenced_row};
pub use env::params::Params;
pub use env::{
    Checkpoints, EncodedColumns, FileSource, Interrupt, LoggedChanges, RowImages, RowSink,
    SessionEnv, StatementFiber, WireFormat,
};
pub use explain::plan_text;
pub use expr::{documents, eval, func};
pub use fulltext::words::STOPWORDS;
pub use nfold_regexp::Limits as RegexpLimits;
pub use operator_pool::{ExecCx, OperatorPool};
pub use operators::output::ResultText;
pub use operators::text_rows::write_texts;
pub use runtime::result::{ChangeSummary, StatementResult, full_table};
pub use runtime::spill::{nameless_file, temporary_file_error};
pub use runtime::{drive, engine_error};
pub use statement::{Executable, apply_row_event, execute, plan_columns};
