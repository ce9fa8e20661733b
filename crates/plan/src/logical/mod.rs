//! The logical trees: typed expressions with resolved names, queries and statements over them, and
//! the context in which they are bound. This folder knows no access path and imports no other
//! folder of the crate.

pub mod changed_view;
pub(crate) mod clauses;
pub mod collate;
pub(crate) mod column_uses;
pub mod common_type;
pub mod context;
pub(crate) mod describe;
pub mod expr;
pub mod file_rows;
pub mod fulltext;
pub mod func;
pub mod json_table;
pub mod literals;
pub mod mode;
pub(crate) mod pad;
pub(crate) mod print;
pub(crate) mod query;
pub mod results;
pub(crate) mod statement;
pub mod table_exprs;
pub(crate) mod tame;
pub mod trace;
pub(crate) mod truth;
pub mod types;
pub(crate) mod walk;
pub(crate) mod window;
