//! How accounts prove who they are.

use super::tokens::Tokens;
use super::{Result, unsupported};
use crate::lexer::TokenKind;

const NATIVE: &str = "MYSQL_NATIVE_PASSWORD";

/// Translates the clauses IDENTIFIED of CREATE USER and ALTER USER.
pub(super) fn identified(t: &mut Tokens) -> Result<()> {
    let mut from = 0;
    while let Some(at) = t.find(from, "IDENTIFIED") {
        clause(t, at)?;
        from = at + 1;
    }
    Ok(())
}

/// Translates the clause at `at`:
///
/// ```text
/// IDENTIFIED BY PASSWORD 'hash'                       IDENTIFIED WITH mysql_native_password AS 'hash'
/// IDENTIFIED VIA plugin [USING 'hash'] [OR plugin..]  IDENTIFIED WITH plugin [AS 'hash']
/// ```
fn clause(t: &mut Tokens, at: usize) -> Result<()> {
    if t.word(at + 1) == "BY" && t.word(at + 2) == "PASSWORD" {
        t.replace(at + 1, at + 3, "WITH mysql_native_password AS");
        return Ok(());
    }
    if !matches!(t.word(at + 1), "VIA" | "WITH") {
        return Ok(());
    }
    // Of several ways, the one that a client of MySQL has.
    let mut ways = vec![at + 2];
    let end = t.find_comma(at);
    while let Some(or) = t.find_before(ways[ways.len() - 1], end, "OR") {
        ways.push(or + 1);
    }
    if ways.len() > 1 {
        let native = ways.iter().position(|&w| t.word(w) == NATIVE);
        let Some(n) = native else {
            return Err(unsupported("IDENTIFIED VIA with several plugins"));
        };
        if let Some(next) = ways.get(n + 1) {
            let last = way_end(t, ways[ways.len() - 1]);
            t.remove(next - 1, last);
        }
        t.remove(at + 2, ways[n]);
    }
    t.replace(at + 1, at + 2, "WITH");
    if matches!(t.word(at + 3), "USING" | "AS") {
        if t.word(at + 4) == "PASSWORD" {
            return Err(unsupported("IDENTIFIED VIA ... USING PASSWORD()"));
        }
        t.replace(at + 3, at + 4, "AS");
    }
    Ok(())
}

/// The end of the plugin at `at` with its value.
fn way_end(t: &Tokens, at: usize) -> usize {
    match t.word(at + 1) {
        "USING" | "AS" => at + 3,
        _ => at + 1,
    }
}

/// Translates GRANT. A password in it is set by ALTER USER.
pub(super) fn grant(mut t: Tokens) -> Result<Vec<Vec<u8>>> {
    let Some(at) = t.find(0, "IDENTIFIED") else {
        return Ok(vec![t.print()]);
    };
    let to = t.find(0, "TO").filter(|to| *to < at);
    let to = to.ok_or_else(|| unsupported("this form of GRANT"))?;
    if (to..at).any(|n| t.kind(n) == TokenKind::Comma) {
        return Err(unsupported("GRANT with a password to several accounts"));
    }
    clause(&mut t, at)?;
    let ends = ["REQUIRE", "WITH"];
    // WITH behind IDENTIFIED is a part of the clause.
    let end =
        (at + 2..t.len()).find(|&n| t.kind(n) == TokenKind::Comma || ends.contains(&t.word(n)));
    let end = end.unwrap_or(t.len());
    if t.kind(end) == TokenKind::Comma {
        return Err(unsupported("GRANT with a password to several accounts"));
    }
    let account = t.print_range(to + 1, at);
    let mut create = b"CREATE USER IF NOT EXISTS ".to_vec();
    create.extend_from_slice(&account);
    let mut alter = b"ALTER USER ".to_vec();
    alter.extend_from_slice(&t.print_range(to + 1, end));
    t.remove(at, end);
    Ok(vec![create, alter, t.print()])
}
