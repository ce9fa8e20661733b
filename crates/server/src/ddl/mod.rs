//! DDL for databases, tables and views. `bind` checks a statement and computes definitions, `run`
//! executes it, `show` prints definitions as statements.

pub mod bind;
pub(crate) mod run;
pub mod show;
