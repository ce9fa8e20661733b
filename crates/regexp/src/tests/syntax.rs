//! One test for each part of the syntax; the answers are MySQL's.

use std::convert::Infallible;

use crate::{Flags, Limits, PatternError, Regexp, Scratch, Search};

fn found_with<'t>(pattern: &str, flags: Flags, text: &'t str) -> Option<&'t str> {
    let regexp = Regexp::new(pattern, flags, &mut |_| true).expect("the pattern is well formed");
    let mut scratch = Scratch::default();
    let found = Search::new(&regexp, text, 0, Limits::default(), &mut scratch)
        .next(&mut |_| Ok::<(), Infallible>(()))
        .expect("the match ends");
    found.map(|(start, end)| &text[start..end])
}

fn found<'t>(pattern: &str, text: &'t str) -> Option<&'t str> {
    found_with(pattern, Flags::default(), text)
}

fn error(pattern: &str) -> Option<PatternError> {
    Regexp::new(pattern, Flags::default(), &mut |_| true).err()
}

#[test]
fn look_around_finds_its_place() {
    assert_eq!(found("(?<=a)b(?=c)", "xb abc"), Some("b"));
    assert_eq!(found("(?<!a)b", "ab b"), Some("b"));
    assert_eq!(found("a(?!b).", "abac"), Some("ac"));
    assert_eq!(found("(?<=\\p{L}{1,3})1", "é1"), Some("1"));
    assert_eq!(error("(?<=a*)b"), Some(PatternError::LookBehindLimit));
    assert_eq!(error("(?<=a??)b"), Some(PatternError::LookBehindLimit));
}

#[test]
fn back_reference_repeats_its_group() {
    assert_eq!(found("(a|b)c\\1", "acbcb"), Some("bcb"));
    assert_eq!(found("(?<x>a|b)c\\k<x>", "acbcb"), Some("bcb"));
    assert_eq!(found("(?i)(ss)\\1", "xSSsS"), Some("SSsS"));
    assert_eq!(error("(a)\\2"), Some(PatternError::InvalidBackReference));
}

#[test]
fn quantifiers_are_greedy_lazy_or_possessive() {
    assert_eq!(found("a+", "aaa"), Some("aaa"));
    assert_eq!(found("a+?", "aaa"), Some("a"));
    assert_eq!(found("a{2}?", "aaa"), Some("aa"));
    assert_eq!(found("a++a", "aaa"), None);
    assert_eq!(found("(?>a|ab)c", "abc"), None);
    assert_eq!(found("(a|ab)(c|bcd)(d*)", "abcd"), Some("abcd"));
    assert_eq!(error("a{2,1}"), Some(PatternError::MaxBelowMin));
    let column_three = PatternError::Syntax { line: 1, column: 3 };
    assert_eq!(error("a**"), Some(column_three));
}

#[test]
fn sets_have_operators() {
    assert_eq!(found("[[a-z]--[aeiou]]+", "aeixyz"), Some("xyz"));
    assert_eq!(found("[a-m&&g-z]+", "abghz"), Some("gh"));
    assert_eq!(found("[[:digit:][:upper:]]+", "ab1Cd"), Some("1C"));
    assert_eq!(found("[]a]+", "b]a"), Some("]a"));
    assert_eq!(found("[^\\W\\d]+", "12_a"), Some("_a"));
    assert_eq!(error("[[:<:]]a"), Some(PatternError::IllegalArgument));
    assert_eq!(error("[a"), Some(PatternError::MissingCloseBracket));
}

#[test]
fn line_ends_are_those_of_unicode() {
    let multi_line = Flags {
        multi_line: true,
        ..Flags::default()
    };
    assert_eq!(found("a.b", "a\u{2028}b"), None);
    assert_eq!(found("a$", "a\r\n"), Some("a"));
    assert_eq!(found("a\\z", "a\n"), None);
    assert_eq!(found_with("^b$", multi_line, "a\u{85}b\r\nc"), Some("b"));
    let unix = Flags {
        unix_lines: true,
        ..Flags::default()
    };
    assert_eq!(found_with("a.b", unix, "a\rb"), Some("a\rb"));
    assert_eq!(found("a\\Rb", "a\r\nb"), Some("a\r\nb"));
}

#[test]
fn case_folds_in_full() {
    let insensitive = Flags {
        case_insensitive: true,
        ..Flags::default()
    };
    assert_eq!(found_with("STRASSE", insensitive, "straße"), Some("straße"));
    assert_eq!(found_with("ß", insensitive, "SS"), Some("SS"));
    assert_eq!(found_with("s+", insensitive, "ß"), None);
    assert_eq!(found_with("[k]", insensitive, "\u{212a}"), Some("\u{212a}"));
    assert_eq!(found_with("σ", insensitive, "Σς"), Some("Σ"));
    assert_eq!(found("(?i:a)b", "Ab"), Some("Ab"));
}

#[test]
fn escapes_and_comments_are_read() {
    assert_eq!(found("\\x41\\u0042\\x{43}\\0104", "ABCD"), Some("ABCD"));
    assert_eq!(found("\\Qa.b*\\E+", "a.b**"), Some("a.b**"));
    assert_eq!(found("(?x) a b # comment\n c", "abc"), Some("abc"));
    assert_eq!(found("a(?#comment)+", "aa"), Some("aa"));
    assert_eq!(found("\\ud83d\\ude00", "😀"), Some("😀"));
    assert_eq!(error("\\"), Some(PatternError::BadEscape));
    assert_eq!(error(""), Some(PatternError::IllegalArgument));
}

#[test]
fn words_and_graphemes_have_boundaries() {
    assert_eq!(found("\\bb\\w", "ab bc"), Some("bc"));
    assert_eq!(found("\\Bb", "b ab"), Some("b"));
    assert_eq!(found("e\\b", "e\u{301} e"), Some("e"));
    assert_eq!(found("\\X", "e\u{301}x"), Some("e\u{301}"));
    assert_eq!(found("^\\X$", "👩\u{200d}👩"), Some("👩\u{200d}👩"));
}
