//! What the server reports of itself.
//!
//! - `show`: SHOW and DESCRIBE statements.
//! - `views`: results of SHOW statements about tables, made from the schema.
//! - `system`: `information_schema` and `performance_schema`.

pub mod show;
pub(crate) mod system;
mod table_facts;
pub mod views;
