//! Kernels: conditions and sums over many rows, compiled for one execution. They work
//! on the bytes of row images, and create no value for each row. The evaluator ([`crate::eval`])
//! defines every result, error and warning; a kernel covers only cases in which it computes the
//! same result without a warning.

mod filter;
mod images;
mod number;
mod threshold;

pub(crate) use filter::RowFilter;
pub(crate) use images::{Images, NumberColumn};
pub(crate) use number::{NO_GROUP, Number, NumberProgram, PartialSum, Vectors};
