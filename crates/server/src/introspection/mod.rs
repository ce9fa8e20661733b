//! Information about the server and its schema.
//!
//! - `show`: SHOW and DESCRIBE statements.
//! - `views`: the results of SHOW statements about tables.
//! - `system`: `information_schema` and `performance_schema`.

pub mod show;
pub(crate) mod system;
mod table_facts;
pub mod views;
