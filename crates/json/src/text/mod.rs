//! Documents as text: the parser and the printer.

mod number;
mod parse;
mod print;

pub use parse::{ParseError, is_valid, parse, unquote};
pub use print::{print, print_pretty, print_unquoted, quote, write_quoted};
