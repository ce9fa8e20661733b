//! Statements that change definitions. Each begins with an implicit commit, which `dispatch` has done.

mod copy;
mod database;
mod maintenance;
pub mod table;
