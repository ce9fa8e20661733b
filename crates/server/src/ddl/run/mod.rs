//! Runs DDL statements. `dispatch` has done the implicit commit before.

mod auto_increment;
mod copy;
mod create_select;
mod database;
mod histogram;
mod histogram_data;
mod maintenance;
mod row_env;
pub mod table;
mod temporary;
mod view;
