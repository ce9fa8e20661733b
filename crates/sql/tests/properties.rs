//! Properties of every text: nothing panics, the digest and the parser agree, and a parameterized
//! tree is the plain tree with values replaced by parameters.

use nfold_sql::ast::Statement;
use nfold_sql::digest::{Digested, LiteralRole, SlotKind};
use nfold_sql::digest_text::digest_text;
use nfold_sql::lexer::{LexMode, Lexer, TokenKind};
use nfold_sql::parser;
use proptest::prelude::*;

const MODES: [LexMode; 4] = [
    LexMode::ANSI_QUOTES,
    LexMode::NO_BACKSLASH_ESCAPES,
    LexMode::PIPES_AS_CONCAT.with(LexMode::HIGH_NOT_PRECEDENCE),
    LexMode::IGNORE_SPACE,
];

/// Runs everything that reads a text on this one.
fn read_all(text: &[u8], mode: LexMode) {
    let mut lexer = Lexer::new(text, mode);
    let mut at = 0;
    loop {
        let token = lexer.next_token();
        assert!(token.start as usize >= at, "tokens go forward");
        assert!(token.end >= token.start && token.end as usize <= text.len());
        at = token.end as usize;
        if token.kind == TokenKind::End {
            break;
        }
    }
    let mut digested = Digested::new();
    digested.read(text, mode);
    for (n, slot) in digested.slots().iter().enumerate() {
        if matches!(slot.kind, SlotKind::List | SlotKind::Rows) {
            let expected = if slot.rows {
                slot.count * slot.width
            } else {
                slot.count
            };
            assert_eq!(digested.list(n as u32, text).count(), expected as usize);
        }
        if let SlotKind::Literal(_) = slot.kind {
            assert!(digested.literal(n as u32, text).is_some());
        }
    }
    let plain = parser::parse(text, mode);
    let parameterised = parser::parse_parameterised(text, &digested, false);
    assert_eq!(
        plain.is_ok(),
        parameterised.is_ok(),
        "both accept it, or neither"
    );
    if let (Err(a), Err(b)) = (plain, parameterised) {
        assert_eq!(a, b);
    }
    digest_text(text, mode);
}

fn word() -> impl Strategy<Value = String> {
    let words: Vec<&str> = "select from where group by order limit insert into values update set delete in like between and or \
        not is null true a b t `x y` 1 2.5 .5 1e3 'a' 'it''s' \"q\" x'41' 0x41 b'1' ( ) , . ; * + - / % ^ ~ ! & && | || << >> = \
        <=> <> < <= > >= := -> ->> @a @@b ? case when then else end exists join left on using as distinct all union interval day \
        cast char date count max if create table int primary key alter add drop index show tables /* */ /*! -- # {d } \
        _utf8mb4 n'x' default on duplicate partition replace with grant to user window over collate binary row escape regexp"
        .split_ascii_whitespace()
        .collect();
    proptest::sample::select(words).prop_map(str::to_string)
}

/// 2,000 cases, or `PROPTEST_CASES` if that is more.
fn many() -> ProptestConfig {
    let asked = ProptestConfig::default();
    ProptestConfig {
        cases: asked.cases.max(2_000),
        ..asked
    }
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn random_bytes_never_panic(text in proptest::collection::vec(any::<u8>(), 0..200), mode in 0..4usize) {
        read_all(&text, MODES[mode]);
        read_all(&text, LexMode::default());
    }

    #[test]
    fn random_words_never_panic(words in proptest::collection::vec(word(), 0..25), mode in 0..4usize) {
        let text = words.join(" ");
        read_all(text.as_bytes(), MODES[mode]);
        read_all(text.as_bytes(), LexMode::default());
    }

    #[test]
    fn damaged_statements_never_panic(which in 0..1_400usize, cut in 0..100usize, byte in any::<u8>()) {
        let lines: Vec<&str> = include_str!("data/statements.sql").lines().collect();
        let mut text = lines[which % lines.len()].as_bytes().to_vec();
        let at = cut % text.len().max(1);
        read_all(&text[..at.min(text.len())], LexMode::default());
        if let Some(b) = text.get_mut(at) {
            *b = byte;
        }
        read_all(&text, LexMode::default());
    }

    #[test]
    fn equal_keys_have_equal_trees(a in 0..1_000u32, b in 0..1_000u32, s in "[a-z']{0,5}", n in 1..20usize) {
        let quoted = s.replace('\'', "''");
        let text = |x: u32, s: &str, n: usize| {
            let list = vec![x.to_string(); n].join(", ");
            format!("select c, d from t where a = {x} and b in ({list}) and c <> '{s}' limit {x}")
        };
        let (one, two) = (text(a, &quoted, n), text(b, "other", 3));
        let read = |text: &str| {
            let mut digested = Digested::new();
            digested.read(text.as_bytes(), LexMode::default());
            let parsed = parser::parse_parameterised(text.as_bytes(), &digested, false).expect("parses");
            (digested.key().to_vec(), parsed)
        };
        let (one, two) = (read(&one), read(&two));
        prop_assert_eq!(one.0, two.0);
        prop_assert_eq!(&one.1.roles, &two.1.roles);
        prop_assert!(one.1.roles.iter().all(|r| *r == LiteralRole::Parameter));
        prop_assert_eq!(one.1.statement, two.1.statement);
    }
}

/// Every statement without a literal among its parameters parses to the same tree in both ways.
#[test]
fn structural_trees_equal_plain_trees() {
    let mut compared = 0;
    for line in include_str!("data/statements.sql").lines() {
        let mut digested = Digested::new();
        digested.read(line.as_bytes(), LexMode::default());
        let Ok(parsed) = parser::parse_parameterised(line.as_bytes(), &digested, false) else {
            continue;
        };
        let plain = parser::parse(line.as_bytes(), LexMode::default()).expect("parses plainly too");
        if parsed.roles.iter().all(|r| *r == LiteralRole::Structural) {
            assert_eq!(parsed.statement, plain, "{line}");
            compared += 1;
        }
    }
    assert!(compared > 500, "only {compared}");
}

/// The printer's output parses, and prints the same text again, because it contains all
/// parentheses.
#[test]
fn printed_queries_print_the_same_again() {
    let mut compared = 0;
    let operators = include_str!("data/operators.txt")
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split('\t');
            (fields.next() == Some("")).then(|| format!("select {}", fields.next().unwrap_or("")))
        });
    let statements = include_str!("data/statements.sql")
        .lines()
        .map(str::to_string);
    for text in operators.chain(statements) {
        let Ok(Statement::Query(query)) = parser::parse(text.as_bytes(), LexMode::default()) else {
            continue;
        };
        if text.contains("over (") && text.contains("rows between") {
            // This test does not cover window frames.
            continue;
        }
        let printed = query.to_string();
        match parser::parse(printed.as_bytes(), LexMode::default()) {
            Ok(Statement::Query(again)) => assert_eq!(again.to_string(), printed, "{text}"),
            other => panic!("{text}\n{printed}\n{other:?}"),
        }
        compared += 1;
    }
    assert!(compared > 2_000, "only {compared}");
}
