//! Statements that change definitions. Each begins with an implicit commit, which `dispatch` has
//! done.

mod copy;
mod create_select;
mod database;
mod maintenance;
pub mod table;
mod temporary;
mod view;
