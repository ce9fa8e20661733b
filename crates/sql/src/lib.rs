//! The SQL front end: lexer, digest, parser and syntax tree. No catalog, no I/O.
//!
//! A statement passes through this crate as follows:
//!
//! 1. [`lexer`] walks the text once and produces tokens as ranges of the text.
//! 2. From that walk, [`digest`] computes the plan-cache key and the positions of the literals
//!    ([`digest::Digested`]).
//! 3. Only if the plan cache has no entry, [`parser`] builds the tree of [`ast`]. Every literal
//!    that is not structural is replaced by a parameter.
//! 4. When a plan is executed, [`digest::Digested`] returns the literals' values one by one,
//!    directly from the text.
#![forbid(unsafe_code)]

pub mod ast;
pub mod digest;
pub mod digest_text;
pub mod keywords;
pub mod lexer;
pub mod list;
pub mod literal;
pub mod mariadb;
pub mod parser;
mod plan_hint;
pub mod printer;
pub mod stored;
mod time_limit;
mod watch;

pub use time_limit::begins_query;
