//! Plans compiled to operators over batches; expressions; rows to the wire.
#![forbid(unsafe_code)]

mod aggregate;
mod batch;
mod block;
mod cells;
mod column_values;
mod distinct;
mod dml;
pub mod documents;
pub mod env;
pub mod eval;
pub mod func;
mod group;
mod hash;
mod heads;
mod kernels;
mod keys;
mod operator_pool;
mod output;
pub mod params;
mod plain;
mod query;
mod runtime;
mod scratch;
mod sort;
mod spill;
mod statement;
mod step;
mod stoppable_sort;
mod subquery;
#[cfg(test)]
mod tests;
mod tuple;
mod window;

pub use dml::no_referenced_row;
pub use env::{Checkpoints, ExecCx, Interrupt, RowSink, SessionEnv, WireFormat};
pub use nfold_regexp::Limits as RegexpLimits;
pub use operator_pool::OperatorPool;
pub use output::ResultText;
pub use params::Params;
pub use runtime::{drive, engine_error};
pub use statement::{
    ChangeSummary, Executable, StatementResult, execute, full_table, plan_columns, write_texts,
};
