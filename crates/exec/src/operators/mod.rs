//! Operators, which transform batches of rows. They know no queries: their callers pass in what
//! runs a subquery or a derived table.

pub(crate) mod aggregate;
pub(crate) mod cells;
pub(crate) mod column_values;
pub(crate) mod copied_row;
pub(crate) mod distinct;
pub(crate) mod group;
pub(crate) mod hash;
pub(crate) mod json_table;
pub(crate) mod key_prefix;
pub(crate) mod output;
pub(crate) mod raw_rows;
pub(crate) mod row_out;
pub(crate) mod sort;
pub(crate) mod step;
pub(crate) mod text_rows;
pub(crate) mod window;
