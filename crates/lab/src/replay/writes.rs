//! Decides which statements only read. Every statement that is not known to read counts as writing.
//! Stored functions that write are not detected.

use nfold_sql::keywords::Kw;
use nfold_sql::lexer::{LexMode, Lexer, SERVER_VERSION, TokenKind};

/// Returns false only if the statement is known to change nothing but the session.
pub fn writes(text: &[u8], mode: LexMode) -> bool {
    if hides(text) {
        return true;
    }
    let mut lexer = Lexer::new(text, mode);
    let mut first = lexer.next_token();
    while first.kind == TokenKind::LParen {
        first = lexer.next_token();
    }
    match first.kw {
        Kw::SHOW
        | Kw::USE
        | Kw::BEGIN
        | Kw::START
        | Kw::COMMIT
        | Kw::ROLLBACK
        | Kw::SAVEPOINT
        | Kw::RELEASE => return false,
        Kw::SELECT
        | Kw::VALUES
        | Kw::TABLE
        | Kw::WITH
        | Kw::EXPLAIN
        | Kw::DESCRIBE
        | Kw::DESC
        | Kw::SET => {}
        _ => return true,
    }
    let explain = matches!(first.kw, Kw::EXPLAIN | Kw::DESCRIBE | Kw::DESC);
    let (mut found, mut analyze, mut before) = (false, false, first.kw);
    loop {
        let token = lexer.next_token();
        if token.kind == TokenKind::End {
            break;
        }
        let word = if token.kind == TokenKind::Word {
            token.text(text)
        } else {
            b""
        };
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        found |= match token.kw {
            Kw::INTO | Kw::DELETE => true,
            // FOR UPDATE locks rows, but does not write.
            Kw::UPDATE => before != Kw::FOR,
            // INSERT() and REPLACE() are also functions.
            Kw::INSERT | Kw::REPLACE => lexer.clone().next_token().kind != TokenKind::LParen,
            _ if first.kw == Kw::SET => [&b"GLOBAL"[..], b"PERSIST", b"PERSIST_ONLY", b"PASSWORD"]
                .iter()
                .any(|name| is(name) || names_scope(token.text(text), name)),
            // MariaDB's sequences.
            _ => is(b"NEXTVAL") || is(b"SETVAL") || is(b"VALUE") && before == Kw::NEXT,
        };
        analyze |= token.kw == Kw::ANALYZE;
        before = token.kw;
    }
    if explain && !analyze { false } else { found }
}

/// `@@global` is a single token.
fn names_scope(text: &[u8], scope: &[u8]) -> bool {
    text.strip_prefix(b"@@").is_some_and(|name| {
        name.len() >= scope.len() && name[..scope.len()].eq_ignore_ascii_case(scope)
    })
}

/// Whether a text contains comments that another server would execute and our lexer skips.
fn hides(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"/*M!").is_some()
        || memchr::memmem::find_iter(text, b"/*!").any(|at| {
            let digits: Vec<u8> = text[at + 3..]
                .iter()
                .copied()
                .take_while(u8::is_ascii_digit)
                .take(7)
                .collect();
            std::str::from_utf8(&digits)
                .ok()
                .and_then(|d| d.parse::<u32>().ok())
                .is_some_and(|version| version > SERVER_VERSION)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_possible_writes_are_distinguished() {
        for text in [
            "SELECT 1",
            "(select a from t)",
            " /* x */ SELECT /*!40001 SQL_NO_CACHE */ * FROM t",
            "with c as (select 1) select * from c",
            "SHOW CREATE TABLE t",
            "explain update t set a=1",
            "desc t",
            "BEGIN",
            "commit",
            "set @a = 1",
            "SET NAMES utf8mb4",
            "SET SESSION sort_buffer_size = 1",
            "use shop",
            "SELECT * FROM t FOR UPDATE",
            "SELECT REPLACE(a, 'x', 'into'), INSERT(a,1,1,'')",
            "select `update`, t.`into` from t",
            "TABLE t",
            "VALUES ROW(1)",
            "EXPLAIN ANALYZE SELECT 1",
            "select value from t",
        ] {
            assert!(!writes(text.as_bytes(), LexMode::default()), "{text}");
        }
        for text in [
            "UPDATE t SET a=1",
            "insert into t values (1)",
            "delete from t",
            "CALL p()",
            "SELECT * FROM t INTO OUTFILE '/tmp/x'",
            "select 1 into @x",
            "with c as (select 1) delete from t",
            "WITH c AS (SELECT 1) UPDATE t SET a=1",
            "SET GLOBAL x=1",
            "SET @@global.x=1",
            "set @@GLOBAL . x = 1",
            "SET PERSIST x=1",
            "set password='x'",
            "ANALYZE TABLE t",
            "EXPLAIN ANALYZE DELETE FROM t",
            "analyze update t set a=1",
            "LOCK TABLES t READ",
            "FLUSH TABLES",
            "KILL 3",
            "DO f()",
            "",
            ";",
            "?",
            "SELECT NEXTVAL(s)",
            "select next value for s",
            "SELECT 1 /*M! INTO OUTFILE 'x' */",
            "select 1 /*!100100 into outfile 'x' */",
            "SELECT 1 /*! INTO OUTFILE 'x' */",
            "TRUNCATE t",
            "\u{0}",
            "REPLACE INTO t VALUES (1)",
            "LOAD DATA INFILE 'x' INTO TABLE t",
            "HANDLER t OPEN",
            "PREPARE s FROM 'x'",
            "EXECUTE s",
        ] {
            assert!(writes(text.as_bytes(), LexMode::default()), "{text}");
        }
    }
}
