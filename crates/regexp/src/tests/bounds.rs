//! Bounds of time and memory, and that a search can be stopped.

use std::convert::Infallible;

use crate::{Flags, Limits, MatchError, PatternError, Regexp, Scratch, Search, Span};

fn compiled(pattern: &str) -> Result<Regexp, PatternError> {
    Regexp::new(pattern, Flags::default(), &mut |_| true)
}

/// Searches once; the work that was reported.
fn searched(pattern: &str, text: &str) -> (Result<Option<Span>, MatchError<Infallible>>, u64) {
    let regexp = compiled(pattern).expect("the pattern is well formed");
    let mut scratch = Scratch::default();
    let mut work = 0;
    let found = Search::new(&regexp, text, 0, Limits::default(), &mut scratch).next(&mut |n| {
        work += n;
        Ok(())
    });
    (found, work)
}

#[test]
fn nested_repetition_is_linear() {
    let work = |pattern: &str, len: usize| {
        let (found, work) = searched(pattern, &"a".repeat(len));
        assert_eq!(found, Ok(None), "{pattern}");
        work
    };
    for pattern in [
        "(a*)*b",
        "(a|aa)+$b",
        "(?:(?:a+)+)+b",
        "a*a*a*b",
        "(|a|b|)*c",
    ] {
        let (short, long) = (work(pattern, 20_000), work(pattern, 80_000));
        assert!(long < 6 * short.max(20_000), "{pattern}: {short}, {long}");
    }
}

#[test]
fn back_references_run_out_of_time() {
    let (found, _) = searched("(a*)*\\1b", &"a".repeat(10_000));
    assert_eq!(found, Err(MatchError::TimeOut));
}

#[test]
fn deep_backtracking_runs_out_of_stack() {
    let regexp = compiled("(?:(a)|b)*c").unwrap();
    let mut scratch = Scratch::default();
    let limits = Limits {
        time: 0,
        stack_bytes: 10_000,
    };
    let text = "a".repeat(10_000);
    let found = Search::new(&regexp, &text, 0, limits, &mut scratch)
        .next(&mut |_| Ok::<(), Infallible>(()));
    assert_eq!(found, Err(MatchError::StackOverflow));
}

#[test]
fn search_stops_when_progress_fails() {
    let text = "ab".repeat(1 << 20);
    for pattern in ["c", "[^a-z]", "(a|b)*c", ".*\\n", "(?=b)c", "\\bc"] {
        let regexp = compiled(pattern).unwrap();
        let mut scratch = Scratch::default();
        let mut calls = 0;
        let found =
            Search::new(&regexp, &text, 0, Limits::default(), &mut scratch).next(&mut |_| {
                calls += 1;
                if calls < 3 { Ok(()) } else { Err("killed") }
            });
        assert_eq!(found, Err(MatchError::Stopped("killed")), "{pattern}");
    }
}

#[test]
fn compiling_stops_when_progress_fails() {
    let pattern = "[\\w]".repeat(100_000);
    let compiled = Regexp::new(&pattern, Flags::default(), &mut |_| false);
    assert_eq!(compiled.err(), Some(PatternError::Stopped));
}

#[test]
fn large_patterns_compile() {
    let cases = [
        "(a{1000}){1000}".to_owned(),
        "a".repeat(1_000_000),
        "[a-z]".repeat(50_000),
        "a|".repeat(100_000),
        "(?:".repeat(99) + &")".repeat(99),
        "[".repeat(95) + "a" + &"]".repeat(95),
    ];
    for pattern in cases {
        assert!(compiled(&pattern).is_ok(), "{}", &pattern[..8]);
    }
    let nested = "(".repeat(100_000);
    assert_eq!(compiled(&nested).err(), Some(PatternError::Internal));
    let nested = "[".repeat(100_000);
    assert_eq!(compiled(&nested).err(), Some(PatternError::Internal));
}

/// A pattern of pieces of syntax in an order that only the seed decides.
fn random_pattern(seed: u64) -> String {
    const PIECES: [&str; 48] = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "*",
        "+",
        "?",
        "|",
        "\\",
        "^",
        "$",
        ".",
        "(?",
        "(?<",
        "(?:",
        "(?=",
        "(?!",
        "(?<=",
        "(?<!",
        "(?>",
        "[^",
        "[:alpha:]",
        "&&",
        "--",
        "-",
        "(?#",
        "\\x",
        "\\u0",
        "\\Q",
        "\\E",
        "\\k<n>",
        "{2,1}",
        "{1,",
        "(?i)",
        "\\p{L}",
        "\\N{",
        "#",
        "a",
        "b",
        "1",
        "é",
        "😀",
        "\\1",
        "\\b",
        "<n>",
        "\n",
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut pattern = String::new();
    for _ in 0..1 + seed % 30 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        pattern.push_str(PIECES[(state % 48) as usize]);
    }
    pattern
}

#[test]
fn malformed_patterns_are_errors_not_panics() {
    let mut well_formed = 0;
    for seed in 0..50_000 {
        let pattern = random_pattern(seed);
        let Ok(regexp) = compiled(&pattern) else {
            continue;
        };
        well_formed += 1;
        let mut scratch = Scratch::default();
        let mut search = Search::new(&regexp, "ab1é\n😀", 0, Limits::default(), &mut scratch);
        let mut matches = 0;
        while let Ok(Some((start, end))) = search.next(&mut |_| Ok::<(), Infallible>(())) {
            assert!(start <= end && end <= 10, "{pattern}");
            matches += 1;
            assert!(matches <= 7, "{pattern}");
        }
    }
    assert!(well_formed > 1000, "{well_formed} patterns are well formed");
}
