//! Parsing and printing.

use super::{Decimal, MAX_DIGITS, POW10};
use ethnum::U256;
use std::fmt::{self, Debug, Display, Formatter};

/// Digits kept of a text: a literal may have more than 30 after the point.
const MAX_TEXT_DIGITS: i64 = 71;

/// How much of a text was a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsedDecimal {
    /// The number; at the largest magnitude where the text has too many digits.
    pub value: Decimal,
    /// Bytes used, leading spaces and exponent included; 0 when there is no number.
    pub used: usize,
    /// The text has more digits before the point than 65.
    pub overflow: bool,
    /// Digits after the point were cut, because 71 are kept in all.
    pub truncated: bool,
}

impl Decimal {
    /// Reads the number at the front of `text`: spaces, sign, digits, point, digits, exponent.
    /// Trailing text is the caller's business (`used`). A number without any digit is 0 with `used`
    /// 0.
    pub fn parse_prefix(text: &[u8]) -> ParsedDecimal {
        let mut at = text
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C))
            .count();
        let negative = text.get(at) == Some(&b'-');
        if matches!(text.get(at), Some(b'-' | b'+')) {
            at += 1;
        }
        let int = digit_run(text, at);
        let mut end = at + int.len();
        let fraction = if text.get(end) == Some(&b'.') {
            digit_run(text, end + 1)
        } else {
            &[]
        };
        if int.is_empty() && fraction.is_empty() {
            return ParsedDecimal {
                value: Decimal::ZERO,
                used: 0,
                overflow: false,
                truncated: false,
            };
        }
        if text.get(end) == Some(&b'.') {
            end += 1 + fraction.len();
        }
        let (exponent, used) = exponent(text, end);
        build(negative, int, fraction, exponent, used)
    }

    /// Reads a text that is a number and nothing else.
    pub fn parse(text: &str) -> Option<Decimal> {
        let parsed = Decimal::parse_prefix(text.as_bytes());
        (parsed.used == text.len() && parsed.used > 0 && !parsed.overflow).then_some(parsed.value)
    }

    /// Appends the text: sign, at least one digit before the point, exactly `scale` digits after
    /// it.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let mut buf = [0u8; 80];
        let digits = self.digits_text(&mut buf);
        if self.negative {
            out.push(b'-');
        }
        let scale = usize::from(self.scale);
        if digits.len() > scale {
            let (int, fraction) = digits.split_at(digits.len() - scale);
            out.extend_from_slice(int);
            if scale > 0 {
                out.push(b'.');
                out.extend_from_slice(fraction);
            }
        } else {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + scale - digits.len(), b'0');
            out.extend_from_slice(digits);
        }
    }

    /// The digits of the magnitude, at least one.
    fn digits_text<'a>(&self, buf: &'a mut [u8; 80]) -> &'a [u8] {
        let mut at = buf.len();
        let mut rest = self.magnitude();
        let chunk = POW10[19];
        loop {
            let (mut low, last) = match self.small() {
                Some(m) => (m, true),
                None => {
                    let low = (rest % chunk).as_u64();
                    rest /= chunk;
                    (low, rest == U256::ZERO)
                }
            };
            let stop = if last { 0 } else { at - 19 };
            while low > 0 || (!last && at > stop) {
                at -= 1;
                buf[at] = b'0' + (low % 10) as u8;
                low /= 10;
            }
            if last {
                break;
            }
        }
        if at == buf.len() {
            at -= 1;
            buf[at] = b'0';
        }
        &buf[at..]
    }
}

fn digit_run(text: &[u8], from: usize) -> &[u8] {
    let tail = text.get(from..).unwrap_or(&[]);
    &tail[..tail.iter().take_while(|b| b.is_ascii_digit()).count()]
}

/// The exponent at `at`, if a whole one is there, and where it ends.
fn exponent(text: &[u8], at: usize) -> (i64, usize) {
    if !matches!(text.get(at), Some(b'e' | b'E')) {
        return (0, at);
    }
    let sign = text.get(at + 1);
    let start = at + 1 + usize::from(matches!(sign, Some(b'-' | b'+')));
    let run = digit_run(text, start);
    if run.is_empty() {
        return (0, at);
    }
    let value = run
        .iter()
        .fold(0i64, |n, d| (n * 10 + i64::from(d - b'0')).min(100_000));
    (
        if sign == Some(&b'-') { -value } else { value },
        start + run.len(),
    )
}

fn build(negative: bool, int: &[u8], fraction: &[u8], exponent: i64, used: usize) -> ParsedDecimal {
    let all = || int.iter().chain(fraction).map(|d| d - b'0');
    let total = int.len() + fraction.len();
    let zeros = all().take_while(|d| *d == 0).count();
    // The number of significant digits before the decimal point.
    let point = int.len() as i64 - zeros as i64 + exponent;
    let significant = total - zeros;
    if significant == 0 {
        let scale = (fraction.len() as i64 - exponent).clamp(0, MAX_TEXT_DIGITS);
        let value = Decimal {
            scale: scale as u8,
            ..Decimal::ZERO
        };
        return ParsedDecimal {
            value,
            used,
            overflow: false,
            truncated: false,
        };
    }
    if point > 65 {
        let value = Decimal::max_of(65, 0, negative);
        return ParsedDecimal {
            value,
            used,
            overflow: true,
            truncated: false,
        };
    }
    let full_scale = significant as i64 - point;
    let scale = full_scale.clamp(0, MAX_TEXT_DIGITS - point.max(0));
    // Digits kept of the significant ones; with a positive exponent zeros are appended.
    let keep = point + scale;
    let mut m = U256::ZERO;
    if keep > 0 {
        for d in all()
            .skip(zeros)
            .chain(std::iter::repeat(0))
            .take(keep as usize)
        {
            m = m * U256::from(10u8) + U256::from(d);
        }
    }
    let cut = full_scale > scale;
    if cut && keep >= 0 && all().nth(zeros + keep as usize).is_some_and(|d| d >= 5) {
        m += U256::ONE;
    }
    debug_assert!(super::digits(m) <= MAX_DIGITS, "71 digits and a carry fit");
    let value = Decimal::from_parts(negative, m, scale as u8).unwrap_or(Decimal::ZERO);
    let lost = cut && all().skip(zeros + keep.max(0) as usize).any(|d| d != 0);
    ParsedDecimal {
        value,
        used,
        overflow: false,
        truncated: lost,
    }
}

impl Display for Decimal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(72);
        self.write_to(&mut out);
        f.write_str(std::str::from_utf8(&out).unwrap_or(""))
    }
}

impl Debug for Decimal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}
