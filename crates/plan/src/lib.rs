//! Binding, points and ranges, cost: a description, no engine handles.
//!
//! 1. [`bind`] resolves names against a schema snapshot and types every expression.
//! 2. `access` looks at the conditions and chooses an access path per table, `join` the order of tables.
//! 3. The result, [`query::Plan`], is shared by all sessions that ask the same question with other values.
#![forbid(unsafe_code)]

mod access;
pub mod bind;
pub mod explain;
pub mod foreign;
mod logical;
pub mod query;
mod reads;
pub mod results;
mod size;
mod walk;

pub use bind::plan_statement;
pub use logical::context::{ParamType, PlanCx, PlanInfo, hex_type, param_types};
pub use logical::mode::SqlMode;
pub use logical::{collate, expr, func};
pub use nfold_sql::ast::VarScope;
pub use nfold_types::Value;
pub use query::Plan;
pub use reads::Reads;
