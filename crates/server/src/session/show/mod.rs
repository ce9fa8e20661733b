//! SHOW statements: rows made from what the session and the server know.

pub mod filter;
