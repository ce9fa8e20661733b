//! Dates and times read from texts and numbers in expressions.

use nfold_types::temporal::MICROS_PER_SECOND;
use nfold_types::{Date, DateTime, Time};

use super::convert;

/// Reads `YYYY-MM-DD[ hh:mm:ss[.ffffff]]` with any punctuation between, or digits alone. The second member says that text was left
/// over. `None`: no valid date.
pub fn parse_datetime(text: &[u8]) -> Option<(DateTime, bool)> {
    let text = text.trim_ascii();
    if text.iter().all(u8::is_ascii_digit) && text.len() >= 5 {
        return digits(text);
    }
    let mut at = 0;
    let mut fields = [0u32; 6];
    let mut widths = [0usize; 6];
    let mut n = 0;
    while n < 6 {
        let start = at;
        while at < text.len()
            && text[at].is_ascii_digit()
            && at - start < if n == 0 { 4 } else { 2 }
        {
            fields[n] = fields[n] * 10 + u32::from(text[at] - b'0');
            at += 1;
        }
        if at == start {
            break;
        }
        widths[n] = at - start;
        n += 1;
        let more = match text.get(at) {
            Some(b'.') if n == 6 => false,
            Some(b'T' | b' ') if n == 3 => true,
            Some(b) if b.is_ascii_punctuation() && n != 3 && n < 6 => true,
            _ => false,
        };
        if !more {
            break;
        }
        at += 1;
        while n == 3 && text.get(at) == Some(&b' ') {
            at += 1;
        }
    }
    if n < 3 {
        return None;
    }
    if widths[0] <= 2 {
        fields[0] += if fields[0] < 70 { 2000 } else { 1900 };
    }
    let (micros, fsp, end) = fraction(text, at);
    build(fields, micros, fsp).map(|d| (d, end < text.len()))
}

fn digits(text: &[u8]) -> Option<(DateTime, bool)> {
    let year_digits = if matches!(text.len(), 8 | 14) { 4 } else { 2 };
    let mut fields = [0u32; 6];
    let mut rest = text;
    for (i, field) in fields.iter_mut().enumerate() {
        let width = if i == 0 { year_digits } else { 2 }.min(rest.len());
        *field = rest[..width]
            .iter()
            .fold(0, |n, b| n * 10 + u32::from(b - b'0'));
        rest = &rest[width..];
    }
    if year_digits == 2 {
        fields[0] += if fields[0] < 70 { 2000 } else { 1900 };
    }
    build(fields, 0, 0).map(|d| (d, !rest.is_empty()))
}

fn fraction(text: &[u8], mut at: usize) -> (u32, u8, usize) {
    if text.get(at) != Some(&b'.') {
        return (0, 0, at);
    }
    at += 1;
    let (mut micros, mut n) = (0u32, 0u8);
    while at < text.len() && text[at].is_ascii_digit() {
        if n < 6 {
            micros = micros * 10 + u32::from(text[at] - b'0');
            n += 1;
        }
        at += 1;
    }
    (micros * 10u32.pow(6 - u32::from(n)), n, at)
}

fn build(f: [u32; 6], micros: u32, fsp: u8) -> Option<DateTime> {
    let date = Date::new(f[0], f[1], f[2]);
    let partly_zero = f[1] == 0 || f[2] == 0;
    if f[0] > 9999 || f[1] > 12 || f[2] > 31 || f[3] > 23 || f[4] > 59 || f[5] > 59 {
        return None;
    }
    if !partly_zero && !is_valid_date(date) {
        return None;
    }
    Some(DateTime::new(date, f[3], f[4], f[5], micros, fsp))
}

/// `20240131` or `20240131123000` (years of two digits too) as a DATETIME.
pub fn datetime_of_number(n: i128) -> Option<DateTime> {
    let n = u64::try_from(n).ok()?;
    let full = match n {
        0 => return Some(DateTime::ZERO),
        101..=691_231 => (n + 20_000_000) * 1_000_000,
        700_101..=991_231 => (n + 19_000_000) * 1_000_000,
        10_000_101..=99_991_231 => n * 1_000_000,
        101_000_000..=691_231_235_959 => n + 20_000_000_000_000,
        700_101_000_000..=991_231_235_959 => n + 19_000_000_000_000,
        10_000_101_000_000..=99_991_231_235_959 => n,
        _ => return None,
    };
    let part = |div: u64, modulo: u64| (full / div % modulo) as u32;
    let f = [
        part(10_000_000_000, 10_000),
        part(100_000_000, 100),
        part(1_000_000, 100),
        part(10_000, 100),
        part(100, 100),
        part(1, 100),
    ];
    build(f, 0, 0)
}

/// Reads `[-][d ]hh:mm[:ss[.ffffff]]`, or digits alone. The second member says that text was left over or the value was cut.
pub fn parse_time(text: &[u8]) -> Option<(Time, bool)> {
    let text = text.trim_ascii();
    if text.len() >= 8
        && text.get(4) == Some(&b'-')
        && let Some((d, rest)) = parse_datetime(text)
    {
        return Some((d.time(), rest));
    }
    let negative = text.first() == Some(&b'-');
    let mut at = usize::from(negative);
    let number = |at: &mut usize| {
        let start = *at;
        let mut n = 0u64;
        while *at < text.len() && text[*at].is_ascii_digit() {
            n = n
                .saturating_mul(10)
                .saturating_add(u64::from(text[*at] - b'0'));
            *at += 1;
        }
        (*at > start).then_some(n)
    };
    let first = number(&mut at)?;
    let mut seconds = match text.get(at) {
        Some(b' ') => {
            at += 1;
            let hours = number(&mut at)?;
            clock_rest(
                text,
                &mut at,
                first.saturating_mul(24).saturating_add(hours),
                number,
            )?
        }
        Some(b':') => clock_rest(text, &mut at, first, number)?,
        _ => {
            let (h, m, s) = (first / 10_000, first / 100 % 100, first % 100);
            if m > 59 || s > 59 {
                return None;
            }
            h.saturating_mul(3600).saturating_add(m * 60 + s)
        }
    };
    let (micros, fsp, end) = fraction(text, at);
    let too_long = seconds > 3_020_399;
    seconds = seconds.min(3_020_400);
    let total = seconds as i64 * MICROS_PER_SECOND + i64::from(micros);
    Some((
        Time::from_micros(if negative { -total } else { total }, fsp),
        too_long || end < text.len(),
    ))
}

fn clock_rest(
    text: &[u8],
    at: &mut usize,
    hours: u64,
    number: impl Fn(&mut usize) -> Option<u64>,
) -> Option<u64> {
    let mut fields = [0u64; 2];
    for field in &mut fields {
        if text.get(*at) != Some(&b':') {
            break;
        }
        *at += 1;
        *field = number(at)?;
        if *field > 59 {
            return None;
        }
    }
    Some(
        hours
            .saturating_mul(3600)
            .saturating_add(fields[0] * 60 + fields[1]),
    )
}

/// `hhmmss` as a TIME; longer numbers as the time of a DATETIME.
pub fn time_of_number(n: i128) -> Option<Time> {
    let magnitude = n.unsigned_abs();
    if magnitude > 8_385_959 {
        if magnitude >= 10_000_000_000 {
            return datetime_of_number(n).map(DateTime::time);
        }
        return Some(Time::from_micros(
            if n < 0 { i64::MIN + 1 } else { i64::MAX },
            0,
        ));
    }
    let (h, m, s) = (magnitude / 10_000, magnitude / 100 % 100, magnitude % 100);
    if m > 59 || s > 59 {
        return None;
    }
    let micros = (h * 3600 + m * 60 + s) as i64 * MICROS_PER_SECOND;
    Some(Time::from_micros(if n < 0 { -micros } else { micros }, 0))
}

/// Rounded to `fsp` digits; `None` beyond the year 9999.
pub fn round_datetime(d: DateTime, fsp: u8) -> Option<DateTime> {
    let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
    if i64::from(d.micros()) % unit == 0 || d.date().month() == 0 || d.date().day() == 0 {
        return Some(DateTime::from_packed(d.packed(), fsp));
    }
    let micros = convert::datetime_micros(d);
    convert::micros_datetime((micros + unit / 2).div_euclid(unit) * unit, fsp)
}

/// Rounded to `fsp` digits.
pub fn round_time(t: Time, fsp: u8) -> Time {
    let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
    let m = t.micros();
    let rounded = (m.abs() + unit / 2) / unit * unit;
    Time::from_micros(if m < 0 { -rounded } else { rounded }, fsp)
}

/// Whether month and day exist; zero in either is not asked for here.
pub fn is_valid_date(d: Date) -> bool {
    let (y, m) = (d.year(), d.month());
    let leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    let days = match m {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=12).contains(&m) && (1..=days).contains(&d.day())
}

/// Days since 0000-00-00 (0000-01-01 is 1), by the proleptic Gregorian calendar: MySQL's `TO_DAYS`.
pub fn day_number(d: Date) -> u32 {
    let (y, m, day) = (
        i64::from(d.year()),
        i64::from(d.month()),
        i64::from(d.day()),
    );
    if y == 0 && m == 0 {
        return 0;
    }
    let mut days = 365 * y + 31 * (m - 1) + day;
    let y = if m <= 2 {
        y - 1
    } else {
        days -= (m * 4 + 23) / 10;
        y
    };
    let centuries = (y / 100 + 1) * 3 / 4;
    (days + y.div_euclid(4) - if y < 0 { 0 } else { centuries }).max(0) as u32
}

/// The date of a day number.
pub fn date_of_day_number(n: u32) -> Date {
    if n <= 365 {
        return Date::ZERO;
    }
    // Civil from days (H. Hinnant), shifted to the day count of `day_number`.
    let z = i64::from(n) - 60;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    Date::new(year as u32, month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_numbers_are_those_of_to_days() {
        for (date, n) in [
            ((1970, 1, 1), 719_528),
            ((2007, 10, 7), 733_321),
            ((2000, 2, 29), 730_544),
            ((9999, 12, 31), 3_652_424),
            ((1, 1, 1), 366),
        ] {
            let d = Date::new(date.0, date.1, date.2);
            assert_eq!(day_number(d), n, "{date:?}");
            assert_eq!(date_of_day_number(n), d);
        }
    }

    #[test]
    fn texts() {
        let d = parse_datetime(b"2024-02-29 12:34:56.789").expect("valid").0;
        assert_eq!(
            (d.date(), d.hour(), d.micros(), d.fsp),
            (Date::new(2024, 2, 29), 12, 789_000, 3)
        );
        assert!(parse_datetime(b"2023-02-29").is_none());
        assert_eq!(
            parse_datetime(b"20240131").map(|d| d.0.date()),
            Some(Date::new(2024, 1, 31))
        );
        assert_eq!(
            parse_time(b"-1 01:00:00").map(|t| t.0.micros()),
            Some(-25 * 3_600_000_000)
        );
    }
}
