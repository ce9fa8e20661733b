//! Statements that change definitions. Each begins with an implicit commit, which `dispatch` has
//! done.

mod copy;
mod create_select;
mod database;
mod maintenance;
mod row_env;
pub mod table;
mod temporary;
mod view;
