//! SQL types, values, collations, DECIMAL, temporal, row and key encoding.

pub mod charset;
pub mod collation;
