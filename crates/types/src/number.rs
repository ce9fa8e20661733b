//! Numbers and texts.

use crate::decimal::Decimal;

/// A number read from the front of a text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parsed<T> {
    /// The number; 0 where there is none, the nearest bound where it is out of range.
    pub value: T,
    /// Something other than trailing white space follows, or there is no number at all ("Truncated
    /// incorrect ... value").
    pub truncated: bool,
    /// The number is out of the target's range.
    pub overflow: bool,
}

/// White space that MySQL skips before numbers.
#[inline]
pub fn is_space(b: u8) -> bool {
    matches!(b, b' ' | 0x09..=0x0D)
}

fn skip_spaces(text: &[u8]) -> usize {
    text.iter().take_while(|b| is_space(**b)).count()
}

/// Whether a line break or its like stands before the number. MySQL skips only blanks and tabs
/// before an integer.
pub(crate) fn begins_with_break(text: &[u8]) -> bool {
    let blanks = text.iter().take_while(|b| matches!(b, b' ' | b'\t'));
    text.get(blanks.count()).is_some_and(|b| is_space(*b))
}

fn only_spaces(text: &[u8]) -> bool {
    text.iter().all(|b| is_space(*b))
}

fn digits_at(text: &[u8], from: usize) -> usize {
    text.get(from..)
        .unwrap_or(&[])
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count()
}

/// The extent of a floating point literal at the front of `text`: (start of it, its end); empty
/// where there is no digit.
fn double_extent(text: &[u8]) -> (usize, usize) {
    let start = skip_spaces(text);
    let mut at = start + usize::from(matches!(text.get(start), Some(b'+' | b'-')));
    let int = digits_at(text, at);
    at += int;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits_at(text, at + 1);
        if int + fraction > 0 {
            at += 1 + fraction;
        }
    }
    if int + fraction == 0 {
        return (start, start);
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits_at(text, at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    (start, at)
}

/// A text in numeric context: the longest prefix that is a number. Out of range values become the
/// largest double.
pub fn parse_double(text: &[u8]) -> Parsed<f64> {
    let (start, end) = double_extent(text);
    if start == end {
        return Parsed {
            value: 0.0,
            truncated: true,
            overflow: false,
        };
    }
    let digits = std::str::from_utf8(&text[start..end]).unwrap_or("0");
    let value: f64 = digits.parse().unwrap_or(0.0);
    let overflow = value.is_infinite();
    let value = value.clamp(f64::MIN, f64::MAX);
    Parsed {
        value,
        truncated: overflow || !only_spaces(&text[end..]),
        overflow,
    }
}

/// A text as a DECIMAL: the longest prefix that is a number.
pub fn parse_decimal(text: &[u8]) -> Parsed<Decimal> {
    let parsed = Decimal::parse_prefix(text);
    let truncated = parsed.used == 0 || !only_spaces(&text[parsed.used..]);
    Parsed {
        value: parsed.value,
        truncated,
        overflow: parsed.overflow,
    }
}

/// Whether the text begins with a number.
pub fn has_digits(text: &[u8]) -> bool {
    Decimal::parse_prefix(text).used > 0
}

/// A text as an integer the way CAST does it: digits only, neither point nor exponent. The result
/// spans i64 and u64; beyond that `overflow` is set and the value is the nearest bound of the two
/// together.
pub fn parse_integer(text: &[u8]) -> Parsed<i128> {
    let start = skip_spaces(text);
    let negative = text.get(start) == Some(&b'-');
    let at = start + usize::from(matches!(text.get(start), Some(b'+' | b'-')));
    let count = digits_at(text, at);
    if count == 0 || begins_with_break(text) {
        return Parsed {
            value: 0,
            truncated: true,
            overflow: false,
        };
    }
    let mut value = 0i128;
    for d in &text[at..at + count] {
        value = (value * 10 + i128::from(d - b'0')).min(1 << 70);
    }
    let bound = if negative {
        1i128 << 63
    } else {
        i128::from(u64::MAX)
    };
    let overflow = value > bound;
    let value = value.min(bound);
    let truncated = overflow || !only_spaces(&text[at + count..]);
    Parsed {
        value: if negative { -value } else { value },
        truncated,
        overflow,
    }
}

/// A text stored into an integer column: point and exponent count, rounded half away from zero.
/// `overflow` beyond i64 and u64 together, with the nearest bound as the value.
pub fn parse_rounded_integer(text: &[u8]) -> Parsed<i128> {
    let parsed = Decimal::parse_prefix(text);
    if parsed.used == 0 || begins_with_break(text) {
        return Parsed {
            value: 0,
            truncated: true,
            overflow: false,
        };
    }
    let truncated = !only_spaces(&text[parsed.used..]);
    let (low, high) = (i128::from(i64::MIN), i128::from(u64::MAX));
    let rounded = parsed.value.round(0).unwrap_or(parsed.value);
    let wide = i128::try_from(rounded.magnitude().as_u128())
        .ok()
        .filter(|_| rounded.digits() <= 37);
    let value = match wide {
        Some(m) if rounded.is_negative() => -m,
        Some(m) => m,
        None if rounded.is_negative() => i128::MIN,
        None => i128::MAX,
    };
    let overflow = parsed.overflow || value < low || value > high;
    Parsed {
        value: value.clamp(low, high),
        truncated,
        overflow,
    }
}

/// A double as the integer MySQL stores: nearest, halves to even (C's `rint`). `None` out of i64
/// and u64 together.
pub fn double_to_integer(v: f64) -> Option<i128> {
    let r = v.round_ties_even();
    // Both bounds are exact doubles.
    (-9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0)
        .contains(&r)
        .then_some(r as i128)
}

/// Appends an integer.
#[inline]
pub fn write_i64(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

/// Appends an integer.
#[inline]
pub fn write_u64(v: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

/// Appends a DOUBLE: the shortest text that reads back as the same number, `1e15` and up and below
/// `1e-15` with an exponent.
pub fn write_double(v: f64, out: &mut Vec<u8>) {
    if !v.is_finite() {
        // No SQL value is; such a one prints as MySQL's dtoa does.
        return out.extend_from_slice(if v.is_nan() {
            b"nan"
        } else if v > 0.0 {
            b"inf"
        } else {
            b"-inf"
        });
    }
    let mut buf = ryu::Buffer::new();
    write_scientific(buf.format_finite(v).as_bytes(), usize::MAX, out);
}

/// Appends a DOUBLE as an expression turns it into text (CONCAT, CAST AS CHAR): with an exponent
/// also where the plain form is longer than 22 bytes.
pub fn write_double_as_text(v: f64, out: &mut Vec<u8>) {
    if !v.is_finite() {
        return write_double(v, out);
    }
    let mut buf = ryu::Buffer::new();
    write_scientific(buf.format_finite(v).as_bytes(), 22, out);
}

/// Appends a FLOAT as an expression turns it into text: with an exponent also where the plain form
/// is longer than 12 bytes.
pub fn write_float_as_text(v: f32, out: &mut Vec<u8>) {
    if !v.is_finite() {
        return write_double(f64::from(v), out);
    }
    write_scientific(format!("{v:.5e}").as_bytes(), 12, out);
}

/// Appends a DOUBLE in at most `width` bytes: with fewer digits where the shortest exact text is
/// longer. Where no digit fits, the exact text is appended.
pub fn write_double_in(v: f64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    write_double(v, out);
    for digits in (0..17usize).rev() {
        if out.len() - start <= width || !v.is_finite() {
            return;
        }
        out.truncate(start);
        write_scientific(format!("{v:.digits$e}").as_bytes(), width, out);
    }
    if out.len() - start > width {
        out.truncate(start);
        write_double(v, out);
    }
}

/// Appends a FLOAT: at most six significant digits.
pub fn write_float(v: f32, out: &mut Vec<u8>) {
    if !v.is_finite() {
        return write_double(f64::from(v), out);
    }
    write_scientific(format!("{v:.5e}").as_bytes(), usize::MAX, out);
}

/// Appends a FLOAT(M,D) or DOUBLE(M,D): exactly `decimals` digits after the point.
pub fn write_fixed(v: f64, decimals: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{v:.*}", usize::from(decimals)).as_bytes());
}

/// Rewrites a decimal text with optional point and exponent in the form of MySQL's `my_gcvt`: the
/// digits without surplus zeros, plain when the point stands at most 14 digits before or 15 behind
/// the first one and it takes at most `max_plain` bytes, otherwise with an exponent.
fn write_scientific(text: &[u8], max_plain: usize, out: &mut Vec<u8>) {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.iter().position(|b| *b == b'e') {
        Some(at) => (
            &text[..at],
            std::str::from_utf8(&text[at + 1..])
                .ok()
                .and_then(|e| e.parse::<i32>().ok())
                .unwrap_or(0),
        ),
        None => (text, 0),
    };
    let mut digits = [0u8; 40];
    let (mut count, mut point, mut seen_point) = (0, 0i32, false);
    for &b in mantissa {
        if b == b'.' {
            seen_point = true;
        } else if count == 0 && b == b'0' {
            // A leading zero moves the point instead.
            point -= i32::from(seen_point);
        } else if count < digits.len() {
            digits[count] = b;
            count += 1;
            point += i32::from(!seen_point);
        }
    }
    while count > 0 && digits[count - 1] == b'0' {
        count -= 1;
    }
    if negative {
        out.push(b'-');
    }
    if count == 0 {
        return out.push(b'0');
    }
    place_point(
        &digits[..count],
        point + exponent,
        max_plain.saturating_sub(usize::from(negative)),
        out,
    );
}

/// `0.digits * 10^point` in plain or scientific form.
fn place_point(digits: &[u8], point: i32, max_plain: usize, out: &mut Vec<u8>) {
    let before = usize::try_from(point).unwrap_or(0);
    let zeros = point.min(0).unsigned_abs() as usize;
    let plain = if point <= 0 {
        2 + zeros + digits.len()
    } else {
        before.max(digits.len() + usize::from(digits.len() > before))
    };
    let near = (-14..=15).contains(&point) || point > 0 && digits.len() > before;
    if !near || plain > max_plain {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        write_i64(i64::from(point) - 1, out);
    } else if point <= 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + zeros, b'0');
        out.extend_from_slice(digits);
    } else if digits.len() <= before {
        out.extend_from_slice(digits);
        out.resize(out.len() + before - digits.len(), b'0');
    } else {
        out.extend_from_slice(&digits[..before]);
        out.push(b'.');
        out.extend_from_slice(&digits[before..]);
    }
}
