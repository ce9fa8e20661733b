//! Lexer and digest, parser, syntax tree. No catalog, no I/O.
//!
//! A statement's way through this crate:
//!
//! 1. [`lexer`] walks the text once and yields tokens as slices.
//! 2. [`digest`] turns that walk into the plan cache's key and the literals' places ([`digest::Digested`]).
//! 3. Only when the plan cache has no entry, [`parser`] builds the tree of [`ast`], with every literal that is not
//!    structural replaced by a parameter.
//! 4. When a plan is run, [`digest::Digested`] hands out the literals' values one by one, straight from the text.
#![forbid(unsafe_code)]

pub mod ast;
pub mod digest;
pub mod digest_text;
pub mod keywords;
pub mod lexer;
pub mod list;
pub mod literal;
pub mod parser;
pub mod printer;
mod time_limit;
mod watch;

pub use time_limit::begins_query;
