//! Conversions between values, with MySQL's rules: what a text means as a number, how a number reads as a text, what a column
//! makes of a value.

pub mod long_number;
pub mod number;
pub mod store;

pub use store::{StoreCx, StoreMode, implicit_default, store_value};

#[cfg(test)]
mod tests;
