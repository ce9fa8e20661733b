//! SQL types, values, collations, DECIMAL, temporal, row and key encoding.
