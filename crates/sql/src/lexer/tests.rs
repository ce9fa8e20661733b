use super::TokenKind::*;
use super::*;

fn kinds(text: &str, mode: LexMode) -> Vec<TokenKind> {
    let mut lexer = Lexer::new(text.as_bytes(), mode);
    let mut kinds = Vec::new();
    loop {
        let token = lexer.next_token();
        kinds.push(token.kind);
        if token.kind == End {
            return kinds;
        }
    }
}

#[track_caller]
fn check(text: &str, expected: &[TokenKind]) {
    let mut found = kinds(text, LexMode::default());
    assert_eq!(found.pop(), Some(End));
    assert_eq!(found, expected, "{text}");
}

#[test]
fn numbers_end_as_in_mysql() {
    check(
        "1 1. .5 1.5 1e5 1.e5 1.5e-3",
        &[Int, Decimal, Decimal, Decimal, Float, Float, Float],
    );
    check(
        "1a 1e 1e+ 0x1F 0x1g 0X1 0b01 0b2",
        &[
            Word, Word, Word, Plus, HexNumber, Word, Word, BitNumber, Word,
        ],
    );
    check("1.5e", &[Invalid]);
    check("1.5.5", &[Decimal, Decimal]);
    check("x'1f' b'01' n'a'", &[HexString, BitString, NStr]);
    assert_eq!(kinds("X'1'", LexMode::default())[0], Invalid);
    assert_eq!(kinds("B'2'", LexMode::default())[0], Invalid);
}

#[test]
fn words_and_numbers_after_a_dot_are_names() {
    let text = "t.select t.1a t . select select.a";
    let mut lexer = Lexer::new(text.as_bytes(), LexMode::default());
    let mut keywords = Vec::new();
    loop {
        let token = lexer.next_token();
        match token.kind {
            End => break,
            Word => keywords.push(token.kw),
            kind => assert_eq!(kind, Dot),
        }
    }
    let name = Kw::Other;
    assert_eq!(
        keywords,
        [name, name, name, name, name, Kw::SELECT, name, name]
    );
}

#[test]
fn function_words_require_a_parenthesis() {
    let first = |text: &str, mode| Lexer::new(text.as_bytes(), mode).next_token().kw;
    assert_eq!(first("count(*)", LexMode::default()), Kw::COUNT);
    assert_eq!(first("count (*)", LexMode::default()), Kw::Other);
    assert_eq!(first("count (*)", LexMode::IGNORE_SPACE), Kw::COUNT);
    assert_eq!(first("if (1)", LexMode::default()), Kw::IF);
}

#[test]
fn comments_are_skipped_executed_or_hints() {
    check("1 -- x\n2 # y\n3 /* z */ 4", &[Int, Int, Int, Int]);
    check("1--2", &[Int, Minus, Minus, Int]);
    check(
        "/*! 1 */ /*!50000 2 */ /*!99999 3 /* 4 */ 5 */ 6",
        &[Int, Int, Int],
    );
    check("/*!501 1 */", &[Int, Int]);
    check("select /*+ x */ 1 /*+ y */", &[Word, Hint, Int]);
    check("/* open", &[Invalid]);
    check("/*! 1", &[Int, Invalid]);
}

#[test]
fn quotes_follow_the_mode() {
    check(r#"'a\'b' "c" `d``e`"#, &[Str, Str, QuotedIdent]);
    check("'a", &[Invalid]);
    check("'a\\", &[Invalid]);
    assert_eq!(kinds("\"c\"", LexMode::ANSI_QUOTES), [QuotedIdent, End]);
    assert_eq!(
        kinds(r"'a\' b", LexMode::NO_BACKSLASH_ESCAPES),
        [Str, Word, End]
    );
    check(
        "@a.b @'x' @`y` @@z _utf8mb4'q' _nosuch'q'",
        &[
            UserVar, UserVar, UserVar, AtAt, Word, Introducer, Str, Word, Str,
        ],
    );
}

#[test]
fn operators_are_as_long_as_in_mysql() {
    check(
        "a<=>b<>c!=d<<e>>f<=g>=h",
        &[
            Word, NullSafeEq, Word, Ne, Word, Ne, Word, ShiftLeft, Word, ShiftRight, Word, Le,
            Word, Ge, Word,
        ],
    );
    check("a=!b", &[Word, Invalid, Word]);
    check("!!a", &[Bang, Word]);
    check(
        "a->>'x' b->'y' := && || | &",
        &[
            Word, LongArrow, Str, Word, Arrow, Str, Assign, AmpAmp, PipePipe, Pipe, Amp,
        ],
    );
    check("a\0b", &[Word, Invalid, Word]);
}
