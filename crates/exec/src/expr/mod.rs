//! Expressions: evaluation over row images, built-in functions, kernels, and index keys.
//!
//! - `eval`: values, conversions, comparisons; knows no functions.
//! - `func`: the built-in functions, over `eval`.
//! - `evaluate`, `print`: the evaluator and the printer, over both.
//! - `kernels`: conditions and sums compiled for row images.
//! - `keys`: encodes the values of an access path as keys and ranges of an index.

pub mod documents;
pub mod eval;
pub(crate) mod evaluate;
pub mod func;
pub(crate) mod kernels;
pub(crate) mod keys;
pub(crate) mod print;
