//! Random patterns beside random texts, with the answers of MySQL 9.7. Recorded by
//! `tests/differential/run --shapes regexp --record`.

use std::convert::Infallible;

use crate::{
    Flags, Limits, MatchError, PatternError, Regexp, ReplaceError, Scratch, Search, Span, expand,
};

const RECORDED: &str = include_str!("recorded.tsv");

#[derive(Debug)]
enum Failure {
    Pattern(PatternError),
    Match(MatchError<Infallible>),
    Replacement(ReplaceError),
    Position,
}

impl Failure {
    /// MySQL's error number, and for a syntax error where it is.
    fn answer(&self) -> String {
        let number = match self {
            Failure::Pattern(PatternError::Syntax { line, column }) => {
                return format!("E3688\t{line}\t{column}");
            }
            Failure::Pattern(e) => pattern_error(*e),
            Failure::Match(MatchError::TimeOut) => 3699,
            Failure::Match(_) => 3698,
            Failure::Position | Failure::Replacement(ReplaceError::NoSuchGroup) => 3686,
            Failure::Replacement(ReplaceError::InvalidGroupName) => 3887,
        };
        format!("E{number}")
    }
}

fn pattern_error(error: PatternError) -> u16 {
    match error {
        PatternError::IllegalArgument => 3685,
        PatternError::Internal | PatternError::Stopped => 3687,
        PatternError::Syntax { .. } => 3688,
        PatternError::BadEscape => 3689,
        PatternError::Unimplemented => 3690,
        PatternError::MismatchedParen => 3691,
        PatternError::BadInterval => 3692,
        PatternError::MaxBelowMin => 3693,
        PatternError::InvalidBackReference => 3694,
        PatternError::LookBehindLimit => 3695,
        PatternError::MissingCloseBracket => 3696,
        PatternError::InvalidRange => 3697,
        PatternError::TooBig => 3700,
        PatternError::InvalidGroupName => 3887,
        PatternError::InvalidFlag => 3900,
        PatternError::NumberTooBig => 4007,
        PatternError::UnknownCharacterName => 1139,
        PatternError::NotSupported(_) => 1235,
    }
}

/// A field as it was before it was written with escapes.
fn unescaped(field: &str) -> String {
    let mut out = String::new();
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let letter = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        match letter {
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let end = rest.find('}').expect("a brace closes the escape");
                let code = u32::from_str_radix(&rest[1..end], 16).expect("digits");
                out.push(char::from_u32(code).expect("a character"));
                rest = &rest[end + 1..];
            }
            other => out.push(char::from(other)),
        }
    }
    out.push_str(rest);
    out
}

fn escaped(text: &str) -> String {
    let one = |c: char| match c {
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        ' '..='~' => c.to_string(),
        c => format!("\\u{{{:x}}}", u32::from(c)),
    };
    text.chars().map(one).collect()
}

fn flags(letters: &str) -> Flags {
    let mut flags = Flags {
        case_insensitive: true,
        ..Flags::default()
    };
    for letter in letters.chars() {
        match letter {
            'c' => flags.case_insensitive = false,
            'i' => flags.case_insensitive = true,
            'm' => flags.multi_line = true,
            'n' => flags.dot_all = true,
            _ => flags.unix_lines = true,
        }
    }
    flags
}

fn nth(search: &mut Search<'_>, occurrence: usize) -> Result<Option<Span>, Failure> {
    for _ in 1..occurrence {
        search.next(&mut |_| Ok(())).map_err(Failure::Match)?;
    }
    search.next(&mut |_| Ok(())).map_err(Failure::Match)
}

fn replace(
    search: &mut Search<'_>,
    text: &str,
    occurrence: usize,
    replacement: &str,
) -> Result<String, Failure> {
    let replacement: Vec<char> = replacement.chars().collect();
    let (mut out, mut copied) = (String::new(), 0);
    let mut found = nth(search, occurrence)?;
    while let Some((start, end)) = found {
        out.push_str(&text[copied..start]);
        expand(search, &replacement, &mut out).map_err(Failure::Replacement)?;
        copied = end;
        // Only the first occurrence is checked.
        if occurrence > 1 {
            break;
        }
        found = nth(search, 1)?;
    }
    out.push_str(&text[copied..]);
    Ok(out)
}

/// What the functions answer: start, end, replaced text, whether there is a match at all.
fn answer(fields: &[&str]) -> Result<String, Failure> {
    let (pattern, text) = (unescaped(fields[1]), unescaped(fields[2]));
    let position: usize = fields[3].parse().expect("a number");
    let occurrence: usize = fields[4].parse().expect("a number");
    let regexp =
        Regexp::new(&pattern, flags(fields[0]), &mut |_| true).map_err(Failure::Pattern)?;
    let mut places = text.char_indices().map(|(at, _)| at);
    let from = places.nth(position - 1);
    let from = from.or((text.is_empty() && position == 1).then_some(0));
    let from = from.ok_or(Failure::Position)?;
    let mut scratch = Scratch::default();
    let limits = Limits::default();
    // REGEXP_INSTR sees the rest of the text alone.
    let rest = &text[from..];
    let found = nth(
        &mut Search::new(&regexp, rest, 0, limits, &mut scratch),
        occurrence,
    )?;
    let number = |at: usize| position + rest[..at].chars().count();
    let (start, end) = found.map_or((0, 0), |(start, end)| (number(start), number(end)));
    let mut search = Search::new(&regexp, &text, from, limits, &mut scratch);
    // MySQL replaces nothing in an empty text.
    let replaced = if text.is_empty() {
        String::new()
    } else {
        replace(&mut search, &text, occurrence, &unescaped(fields[5]))?
    };
    let matches = nth(&mut Search::new(&regexp, &text, 0, limits, &mut scratch), 1)?;
    let matches = u8::from(matches.is_some());
    Ok(format!("{start}\t{end}\t{}\t{matches}", escaped(&replaced)))
}

#[test]
fn recorded_cases_get_the_answers_of_mysql() {
    let mut failures = Vec::new();
    for line in RECORDED.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let ours = answer(&fields).unwrap_or_else(|e| e.answer());
        let theirs = fields[6..].join("\t");
        if ours != theirs {
            failures.push(format!("{line}\n    ours: {ours}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(RECORDED.lines().count(), 3000);
}
