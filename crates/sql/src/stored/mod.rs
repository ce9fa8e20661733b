//! Stored expressions: CHECK, DEFAULT (expression), generated columns and functional key parts.
//!
//! ```text
//!  ast::Expr ── refusal ──▶ what a stored expression may not hold
//!      └────── normal ──▶ ast::Expr in MySQL's normal form ── print ──▶ text ── parse ──▶ ast::Expr
//! ```
//! The normal form has every operation in parentheses, one name for each function, an introducer
//! before each string, and truth values where MySQL puts them. It reads the same under every SQL
//! mode.

mod normal;
mod print;
mod refusal;
mod walk;

#[cfg(test)]
mod tests;

pub use normal::is_boolean;
pub use print::escaped;
pub use refusal::{Refusal, is_volatile, refusal};
pub use walk::{columns, each_child};

use nfold_types::Charset;
use nfold_types::error::SqlError;

use crate::ast::Expr;
use crate::lexer::LexMode;
use crate::parser;

/// The normal form of an expression. `connection`: the character set of strings without an
/// introducer.
pub fn normal(e: &Expr, connection: &'static Charset) -> Expr {
    normal::Normal { connection }.value(e)
}

/// The text of an expression in normal form.
pub fn text(normal: &Expr) -> String {
    print::Printed(normal).to_string()
}

/// Reads a stored text back.
///
/// # Errors
/// 1064 for a text that this module did not print.
pub fn parse(text: &str) -> Result<Expr, SqlError> {
    parser::parse_expression(text.as_bytes(), LexMode::default())
}
