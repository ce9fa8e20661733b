//! Definitions of databases, tables and views: `bind` checks a statement and makes definitions of
//! it, `run` carries it out, `show` prints definitions as statements.

pub mod bind;
pub(crate) mod run;
pub mod show;
