//! The storage engine's facade: open, recover, tables, dictionary.
#![forbid(unsafe_code)]

mod batch;
pub mod record;

pub use batch::{Bound, KeyRange, PointSet, RowBatch};
