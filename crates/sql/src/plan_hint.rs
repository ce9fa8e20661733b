//! The optimizer hints that change the plan of one query block.

use crate::ast::{PlanHint, PlanHintKind};
use crate::lexer::{LexMode, Lexer, Token, TokenKind};

const KINDS: [(&[u8], PlanHintKind); 16] = [
    (b"index", PlanHintKind::Index),
    (b"no_index", PlanHintKind::NoIndex),
    (b"index_merge", PlanHintKind::IndexMerge),
    (b"no_index_merge", PlanHintKind::NoIndexMerge),
    (b"skip_scan", PlanHintKind::SkipScan),
    (b"no_skip_scan", PlanHintKind::NoSkipScan),
    (b"merge", PlanHintKind::Merge),
    (b"no_merge", PlanHintKind::NoMerge),
    (b"derived_condition_pushdown", PlanHintKind::Pushdown),
    (b"no_derived_condition_pushdown", PlanHintKind::NoPushdown),
    (b"semijoin", PlanHintKind::Semijoin),
    (b"no_semijoin", PlanHintKind::NoSemijoin),
    (b"join_fixed_order", PlanHintKind::JoinFixedOrder),
    (b"join_order", PlanHintKind::JoinOrder),
    (b"join_prefix", PlanHintKind::JoinPrefix),
    (b"join_suffix", PlanHintKind::JoinSuffix),
];

/// The hints `NAME(name, …)` in a hint comment, `/*+` and `*/` included, up to the first
/// malformed one. A hint that names a query block is left out.
pub(crate) fn of_hint(hint: &[u8]) -> Vec<PlanHint> {
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
        if !names.iter().any(|name| name.contains('@')) {
            found.push(PlanHint { kind: *kind, names });
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
    fn hints_have_names() {
        let text = b"/*+ MAX_EXECUTION_TIME(5) no_index_merge(t) SKIP_SCAN(`u` a, `b`) merge() */";
        let hint = |kind, names: &[&str]| PlanHint {
            kind,
            names: names.iter().map(|name| (*name).into()).collect(),
        };
        let expected = [
            hint(PlanHintKind::NoIndexMerge, &["t"]),
            hint(PlanHintKind::SkipScan, &["u", "a", "b"]),
            hint(PlanHintKind::Merge, &[]),
        ];
        assert_eq!(of_hint(text), expected);
        assert_eq!(of_hint(b"/*+ INDEX_MERGE(t@qb a) INDEX_MERGE( */"), []);
    }
}
