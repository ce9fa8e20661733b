//! Numbers in very long texts, made short enough to be read at once.

use crate::number::is_space;

/// Digits that are kept: a double needs fewer, and a DECIMAL far fewer.
const MAX_DIGITS: usize = 1100;
/// Bytes between two looks at the statement, and the work of one.
const PIECE_BYTES: usize = 16 << 10;
const BYTE_WORK: u64 = 2;
/// Beyond this an exponent makes no difference.
const MAX_EXPONENT: i64 = 1 << 40;

type GoesOn<'f> = &'f mut dyn FnMut(u64) -> bool;

/// The number of bytes at the start of a text for which `is_of_kind` holds.
fn run(text: &[u8], is_of_kind: impl Fn(u8) -> bool, goes_on: GoesOn<'_>) -> usize {
    let mut at = 0;
    loop {
        let piece = &text[at..text.len().min(at + PIECE_BYTES)];
        let found = piece.iter().take_while(|&&b| is_of_kind(b)).count();
        at += found;
        if found < PIECE_BYTES || !goes_on(PIECE_BYTES as u64 * BYTE_WORK) {
            return at;
        }
    }
}

/// A short text that holds the same number as a long one, and `x` behind it where something other
/// than white space follows the number. `goes_on` is called with the work done since its last call;
/// where it returns false the result has no meaning.
pub fn shortened(text: &[u8], goes_on: GoesOn<'_>) -> Vec<u8> {
    let digit = |b: u8| b.is_ascii_digit();
    let zero = |b: u8| b == b'0';
    let mut out = Vec::new();
    let mut at = run(text, is_space, goes_on);
    if at == text.len() {
        return out;
    }
    if let sign @ (b'+' | b'-') = text[at] {
        out.push(sign);
        at += 1;
    }
    let whole = &text[at..at + run(&text[at..], digit, goes_on)];
    at += whole.len();
    let mut fraction: &[u8] = &[];
    if text.get(at) == Some(&b'.') {
        fraction = &text[at + 1..at + 1 + run(&text[at + 1..], digit, goes_on)];
        at += 1 + fraction.len();
    }
    if whole.is_empty() && fraction.is_empty() {
        return b"x".to_vec();
    }
    let whole = &whole[run(whole, zero, goes_on)..];
    let mut exponent = 0;
    if whole.is_empty() {
        let zeros = run(fraction, zero, goes_on);
        // With a few zeros the text stays as it is, and without digits behind them it is zero.
        if zeros > MAX_DIGITS && zeros < fraction.len() {
            exponent = -(zeros as i64);
            fraction = &fraction[zeros..];
        }
    }
    let kept = &whole[..whole.len().min(MAX_DIGITS)];
    exponent += (whole.len() - kept.len()) as i64;
    out.extend_from_slice(if kept.is_empty() { b"0" } else { kept });
    let mut dropped = &whole[kept.len()..];
    if dropped.is_empty() && !fraction.is_empty() {
        let kept = &fraction[..fraction.len().min(MAX_DIGITS)];
        out.push(b'.');
        out.extend_from_slice(kept);
        dropped = &fraction[kept.len()..];
        if run(dropped, zero, goes_on) < dropped.len() {
            out.push(b'1');
        }
    } else if run(dropped, zero, goes_on) < dropped.len() {
        // One nonzero digit represents all dropped digits, so that rounding stays right.
        out.push(b'1');
        exponent -= 1;
    }
    let (written, len) = written_exponent(&text[at..], goes_on);
    at += len;
    exponent += written;
    if len > 0 || exponent != 0 {
        out.extend_from_slice(format!("e{exponent}").as_bytes());
    }
    if run(&text[at..], is_space, goes_on) < text.len() - at {
        out.push(b'x');
    }
    out
}

/// The exponent at the start of a text, and its length; 0 and 0 where there is none.
fn written_exponent(text: &[u8], goes_on: GoesOn<'_>) -> (i64, usize) {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return (0, 0);
    }
    let sign = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    let digits = &text[1 + sign..];
    let digits = &digits[..run(digits, |b| b.is_ascii_digit(), goes_on)];
    if digits.is_empty() {
        return (0, 0);
    }
    let significant = &digits[run(digits, |b| b == b'0', goes_on)..];
    let mut value = 0;
    for digit in significant {
        value = (value * 10 + i64::from(digit - b'0')).min(MAX_EXPONENT);
        if value == MAX_EXPONENT {
            break;
        }
    }
    let value = if text[1] == b'-' { -value } else { value };
    (value, 1 + sign + digits.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{parse_decimal, parse_double, parse_integer};

    #[test]
    fn shortened_text_is_the_same_number() {
        let zeros = "0".repeat(3000);
        let nines = "9".repeat(3000);
        let texts = [
            format!("{zeros}12"),
            format!("  -{zeros}12.5{zeros}"),
            format!("+{zeros}"),
            format!("0.{zeros}12e3001"),
            format!(".{zeros}12"),
            format!("1.{nines}"),
            format!("{nines}.5"),
            format!("{nines}e-2999"),
            format!("0.5{zeros}1"),
            format!("1{zeros}e-3000"),
            format!("9007199254740993.{zeros}1"),
            format!("9007199254740993.{zeros}0"),
            format!("1e{zeros}2"),
            format!("1e-{nines}"),
            format!("1e{nines}"),
            format!("12{}", " ".repeat(3000)),
            format!("12{}x", " ".repeat(3000)),
            format!("{}x", " ".repeat(3000)),
            " ".repeat(3000),
            format!("12e{zeros}x"),
            format!("{zeros}12abc{zeros}"),
            format!("-{}", "a".repeat(3000)),
            format!("1.{}", "x".repeat(3000)),
        ];
        for text in &texts {
            let text = text.as_bytes();
            let short = shortened(text, &mut |_| true);
            let name = String::from_utf8_lossy(&text[..40]);
            assert!(short.len() < 2300, "{name}");
            assert_eq!(parse_double(&short), parse_double(text), "{name}");
            assert_eq!(parse_decimal(&short), parse_decimal(text), "{name}");
            assert_eq!(parse_integer(&short), parse_integer(text), "{name}");
        }
    }

    #[test]
    fn shortening_stops_where_it_is_told() {
        let text = "0".repeat(1 << 20);
        let mut looks = 0;
        shortened(text.as_bytes(), &mut |work| {
            assert!(work <= 100_000);
            looks += 1;
            looks % 2 == 1
        });
        assert!(looks < 10);
    }
}
