//! Conversions between values, with MySQL's rules: what a text means as a number, how a number reads as a text, what a column
//! makes of a value.

pub mod number;

#[cfg(test)]
mod tests;
