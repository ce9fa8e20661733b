//! Operators: from batches of rows to batches of rows. They know no query: what runs a
//! query for them is handed to them.

pub(crate) mod aggregate;
pub(crate) mod cells;
pub(crate) mod column_values;
pub(crate) mod distinct;
pub(crate) mod group;
pub(crate) mod hash;
pub(crate) mod heads;
pub(crate) mod json_table;
pub(crate) mod output;
pub(crate) mod plain;
pub(crate) mod row_out;
pub(crate) mod sort;
pub(crate) mod step;
pub(crate) mod window;
