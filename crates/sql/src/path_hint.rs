//! The optimizer hints that choose or forbid access paths of one table.

use crate::ast::{PathHint, PathHintKind};
use crate::lexer::{LexMode, Lexer, Token, TokenKind};

const KINDS: [(&[u8], PathHintKind); 4] = [
    (b"index_merge", PathHintKind::IndexMerge),
    (b"no_index_merge", PathHintKind::NoIndexMerge),
    (b"skip_scan", PathHintKind::SkipScan),
    (b"no_skip_scan", PathHintKind::NoSkipScan),
];

/// The hints `NAME(table index, …)` in a hint comment, `/*+` and `*/` included, up to the first
/// malformed one. A hint that names a query block is left out.
pub(crate) fn of_hint(hint: &[u8]) -> Vec<PathHint> {
    let inner = hint.strip_prefix(b"/*+").unwrap_or(hint);
    let inner = inner.strip_suffix(b"*/").unwrap_or(inner);
    let mut lexer = Lexer::new(inner, LexMode::default());
    let mut found = Vec::new();
    loop {
        let token = lexer.next_token();
        if matches!(token.kind, TokenKind::End | TokenKind::Invalid) {
            return found;
        }
        let name = token.text(inner);
        let kind = KINDS
            .iter()
            .find(|(word, _)| name.eq_ignore_ascii_case(word));
        let Some((_, kind)) = kind else {
            continue;
        };
        if lexer.next_token().kind != TokenKind::LParen {
            return found;
        }
        let mut names = Vec::new();
        loop {
            let token = lexer.next_token();
            match token.kind {
                TokenKind::Comma => {}
                TokenKind::RParen => break,
                _ => match name_of(inner, token) {
                    Some(name) => names.push(name),
                    None => return found,
                },
            }
        }
        if let Some((table, indexes)) = names.split_first()
            && !names.iter().any(|name| name.contains('@'))
        {
            found.push(PathHint {
                kind: *kind,
                table: table.clone(),
                indexes: indexes.to_vec(),
            });
        }
    }
}

/// The name of a table, an index or a query block.
fn name_of(text: &[u8], token: Token) -> Option<String> {
    let word = String::from_utf8_lossy(token.text(text)).into_owned();
    match token.kind {
        TokenKind::Word => Some(word),
        TokenKind::QuotedIdent => Some(word.trim_matches('`').replace("``", "`")),
        _ if word.starts_with('@') => Some(word),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_a_table_and_indexes() {
        let hints =
            of_hint(b"/*+ MAX_EXECUTION_TIME(5) no_index_merge(t) SKIP_SCAN(`u` a, `b`) */");
        let hint = |kind, table: &str, indexes: &[&str]| PathHint {
            kind,
            table: table.into(),
            indexes: indexes.iter().map(|name| (*name).into()).collect(),
        };
        let expected = [
            hint(PathHintKind::NoIndexMerge, "t", &[]),
            hint(PathHintKind::SkipScan, "u", &["a", "b"]),
        ];
        assert_eq!(hints, expected);
        assert_eq!(of_hint(b"/*+ INDEX_MERGE(t@qb a) INDEX_MERGE( */"), []);
    }
}
