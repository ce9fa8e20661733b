//! Which statements `max_execution_time` applies to, and the optimizer hint of that name.

use crate::ast::{Query, QueryBody, Statement};
use crate::keywords::Kw;
use crate::lexer::{LexMode, Lexer, TokenKind};

/// Whether a text begins as a query does, or as the EXPLAIN of one. Of WITH only the parser knows.
pub fn begins_query(text: &[u8], mode: LexMode) -> bool {
    let mut lexer = Lexer::new(text, mode);
    loop {
        let token = lexer.next_token();
        match token.kind {
            TokenKind::LParen => {}
            TokenKind::Word => {
                return matches!(
                    token.kw,
                    Kw::SELECT
                        | Kw::WITH
                        | Kw::TABLE
                        | Kw::VALUES
                        | Kw::EXPLAIN
                        | Kw::DESCRIBE
                        | Kw::DESC
                );
            }
            _ => return false,
        }
    }
}

/// Milliseconds of each `MAX_EXECUTION_TIME(…)` in a hint, `/*+` and `*/` included, up to the first
/// that is malformed.
pub(crate) fn of_hint(hint: &[u8]) -> Vec<u32> {
    let inner = hint.strip_prefix(b"/*+").unwrap_or(hint);
    let inner = inner.strip_suffix(b"*/").unwrap_or(inner);
    let mut lexer = Lexer::new(inner, LexMode::default());
    let mut found = Vec::new();
    loop {
        let token = lexer.next_token();
        let name = token.text(inner);
        match token.kind {
            TokenKind::End | TokenKind::Invalid => return found,
            TokenKind::Word if name.eq_ignore_ascii_case(b"max_execution_time") => {}
            _ => continue,
        }
        let (open, value) = (lexer.next_token(), lexer.next_token());
        let digits = std::str::from_utf8(value.text(inner)).unwrap_or_default();
        match digits.parse() {
            Ok(ms) if open.kind == TokenKind::LParen && value.kind == TokenKind::Int => {
                found.push(ms);
            }
            _ => return found,
        }
    }
}

impl Statement {
    /// Milliseconds of the hint MAX_EXECUTION_TIME behind the first SELECT of a query. The hint has
    /// no effect in other statements, and none in the other blocks of a query.
    pub fn max_execution_ms(&self) -> Option<u32> {
        match self {
            Statement::Query(query) => query.max_execution_ms(),
            Statement::Explain { statement, .. } => statement.max_execution_ms(),
            _ => None,
        }
    }
}

impl Query {
    fn max_execution_ms(&self) -> Option<u32> {
        let mut body = &self.body;
        loop {
            body = match body {
                QueryBody::Select(select) => return select.options.max_execution_ms,
                QueryBody::SetOperation { left, .. } => left,
                QueryBody::Paren(query) => &query.body,
                QueryBody::Values(_) | QueryBody::Table(_) => return None,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_query_looks_at_the_first_word() {
        let begins = |text: &str| begins_query(text.as_bytes(), LexMode::default());
        for text in [
            "select 1",
            " /* x */ ( (SELECT 1))",
            "WITH t AS (SELECT 1) DELETE FROM u",
            "VALUES ROW(1)",
            "TABLE t",
            "explain select 1",
        ] {
            assert!(begins(text), "{text}");
        }
        for text in ["INSERT INTO t SELECT 1", "DO 1", "SET @a = 1", "", "1"] {
            assert!(!begins(text), "{text}");
        }
    }

    #[test]
    fn hint_sets_limit_of_first_block() {
        let limit = |text: &str| {
            let statement = crate::parser::parse(text.as_bytes(), LexMode::default());
            statement.expect(text).max_execution_ms()
        };
        for (text, expected) in [
            ("SELECT /*+ MAX_EXECUTION_TIME(100) */ 1", Some(100)),
            ("SELECT /*+ NO_ICP(t) max_execution_time (7) */ 1", Some(7)),
            (
                "SELECT /*+ MAX_EXECUTION_TIME(5) MAX_EXECUTION_TIME(9) */ 1",
                Some(5),
            ),
            (
                "(SELECT /*+ MAX_EXECUTION_TIME(5) */ 1) UNION SELECT 2",
                Some(5),
            ),
            (
                "WITH t AS (SELECT 1) SELECT /*+ MAX_EXECUTION_TIME(5) */ 1",
                Some(5),
            ),
            ("EXPLAIN SELECT /*+ MAX_EXECUTION_TIME(5) */ 1", Some(5)),
            ("SELECT /*+ MAX_EXECUTION_TIME(0) */ 1", None),
            ("SELECT /*+ MAX_EXECUTION_TIME(-1) */ 1", None),
            ("SELECT /*+ MAX_EXECUTION_TIME(99999999999) */ 1", None),
            ("SELECT /*+ MAX_EXECUTION_TIME */ 1", None),
            ("SELECT 1 UNION SELECT /*+ MAX_EXECUTION_TIME(5) */ 2", None),
            (
                "SELECT 1 FROM (SELECT /*+ MAX_EXECUTION_TIME(5) */ 2) t",
                None,
            ),
            (
                "WITH t AS (SELECT /*+ MAX_EXECUTION_TIME(5) */ 1) SELECT 1",
                None,
            ),
            ("INSERT /*+ MAX_EXECUTION_TIME(5) */ INTO t SELECT 1", None),
            ("INSERT INTO t SELECT /*+ MAX_EXECUTION_TIME(5) */ 1", None),
        ] {
            assert_eq!(limit(text), expected, "{text}");
        }
    }

    #[test]
    fn misplaced_and_second_hints_are_noted() {
        use crate::parser::{Deprecated, parse_stoppable};
        use Deprecated::{MisplacedTimeLimit as MISPLACED, SecondTimeLimit};
        for (text, expected) in [
            ("SELECT /*+ MAX_EXECUTION_TIME(5) */ 1", &[][..]),
            (
                "SELECT /*+ MAX_EXECUTION_TIME(5) MAX_EXECUTION_TIME(9) */ 1",
                &[SecondTimeLimit(9)],
            ),
            (
                "SELECT (SELECT /*+ MAX_EXECUTION_TIME(5) */ 1)",
                &[MISPLACED],
            ),
            ("DELETE /*+ MAX_EXECUTION_TIME(5) */ FROM t", &[MISPLACED]),
            // The table's definition is parsed again where it may be recursive.
            (
                "WITH c AS (SELECT /*+ MAX_EXECUTION_TIME(5) */ 1) SELECT * FROM c",
                &[MISPLACED],
            ),
        ] {
            let mut noted = Vec::new();
            let (mode, checkpoint) = (LexMode::default(), nfold_types::NoCheckpoint);
            parse_stoppable(text.as_bytes(), mode, &checkpoint, &mut noted).expect(text);
            assert_eq!(noted, expected, "{text}");
        }
    }
}
