//! Conversions between values by MySQL's rules: strings to numbers, numbers to strings, and values
//! to a column's type.

mod shown;
pub mod store;

pub use crate::{long_number, number};
pub use shown::{append_binary, shown};
pub use store::{StoreCx, StoreMode, implicit_default, store_value};

#[cfg(test)]
mod tests;
