//! Lexer and digest, parser, syntax tree. No catalog, no I/O.
