//! Expressions: evaluation over row images, functions, kernels, and keys that expressions give.
//!
//! - `eval`: values, conversions, comparisons; knows no functions.
//! - `func`: the built-in functions, over `eval`.
//! - `evaluate`, `print`: the evaluator and the printer, over both.
//! - `kernels`: conditions and sums compiled for row images.
//! - `keys`: the keys that an access by index looks for.

pub mod documents;
pub mod eval;
pub(crate) mod evaluate;
pub mod func;
pub(crate) mod kernels;
pub(crate) mod keys;
pub(crate) mod print;
