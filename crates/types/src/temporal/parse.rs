//! Parses strings and numbers as dates and times, by the algorithm of MySQL's `my_time.cc`, because
//! clients rely on its results.

use super::calendar::days_in_month;
use super::{Date, DateTime, MICROS_PER_SECOND, TIME_MAX_MICROS, Time, TimeZone};
use crate::error::{ErrorCode, SqlError};
use crate::number::is_space;

/// Which dates pass, from the SQL mode and the context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DateFlags {
    /// NO_ZERO_IN_DATE: no zero month or day.
    pub no_zero_in_date: bool,
    /// NO_ZERO_DATE: no '0000-00-00'.
    pub no_zero_date: bool,
    /// ALLOW_INVALID_DATES: any day up to 31 in any month.
    pub allow_invalid: bool,
}

/// Why there is no date or time in a text or number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemporalError {
    /// It is no date or time at all, or a part is impossible.
    Malformed,
    /// A day that its month has not, a minute above 59.
    OutOfRange,
    /// A zero month or day where [`DateFlags::no_zero_in_date`] forbids it.
    ZeroInDate,
    /// '0000-00-00' where [`DateFlags::no_zero_date`] forbids it.
    ZeroDate,
}

/// A date and time read from a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsedDateTime {
    /// The value to the microsecond (cut, not rounded); `fsp` is the number of fractional digits
    /// given, at most 6.
    pub value: DateTime,
    /// Nanoseconds behind it, 0 to 900: the seventh digit.
    pub nanos: u32,
    /// Only a date was given.
    pub date_only: bool,
    /// Something follows that is not part of the value.
    pub truncated: bool,
    /// A displacement `+hh:mm` from UTC was given, in seconds.
    pub offset_s: Option<i32>,
    /// The first delimiter that is not the standard one of its place.
    pub odd: Option<OddDelimiter>,
}

/// A delimiter between the fields of a date that is taken, but deprecated (warnings 4095 and 4096).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OddDelimiter {
    /// The delimiter.
    pub byte: u8,
    /// Its offset in the text.
    pub at: usize,
    /// The standard delimiter at this position. `None`: the text has it already.
    pub standard: Option<u8>,
}

/// The bytes of a text that a warning about its delimiters shows.
const SHOWN_BYTES: usize = 39;

impl OddDelimiter {
    /// The warning about it; `text` is the whole text, `row` the row of the statement.
    pub fn warning(&self, text: &[u8], row: u64) -> SqlError {
        let text = &text[..text.len().min(SHOWN_BYTES)];
        let (byte, text) = (char::from(self.byte), String::from_utf8_lossy(text));
        match self.standard {
            Some(standard) => SqlError::new(
                ErrorCode::ER_WARN_DEPRECATED_DATETIME_DELIMITER,
                &[&byte, &self.at, &text, &row, &char::from(standard)],
            ),
            None => SqlError::new(
                ErrorCode::ER_WARN_DEPRECATED_SUPERFLUOUS_DELIMITER,
                &[&byte, &self.at, &text, &row],
            ),
        }
    }
}

/// A time read from a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsedTime {
    /// The value to the microsecond (cut), clamped to the range of TIME.
    pub value: Time,
    /// Nanoseconds behind it, 0 to 900.
    pub nanos: u32,
    /// Something follows that is not part of the value.
    pub truncated: bool,
    /// The text holds a larger time than TIME can.
    pub clamped: bool,
    /// The date and time that the text holds, where it does.
    pub dated: Option<ParsedDateTime>,
    /// A superfluous delimiter.
    pub odd: Option<OddDelimiter>,
}

impl ParsedTime {
    /// The value in a session's time zone: a displacement in the text is applied.
    pub fn to_zone(&self, zone: &TimeZone) -> Option<Time> {
        match self.dated {
            Some(full) if full.offset_s.is_some() => full.to_zone(zone).map(DateTime::time),
            _ => Some(self.value),
        }
    }

    /// As [`Self::to_zone`], rounded to the microsecond, or cut there if `cuts`.
    pub fn rounded(&self, zone: &TimeZone, cuts: bool) -> Option<Time> {
        let value = self.to_zone(zone)?;
        Some(match self.nanos {
            500.. if !cuts => value.round(self.nanos, 6).0,
            _ => value,
        })
    }
}

/// Why `parse_full` found nothing: with `Nothing` a time may still be read from the text.
enum NoDate {
    Nothing,
    Error(TemporalError),
}

impl From<TemporalError> for NoDate {
    fn from(e: TemporalError) -> NoDate {
        NoDate::Error(e)
    }
}

fn is_punct(b: u8) -> bool {
    b.is_ascii_punctuation()
}

/// A blank before the value, which starts at `start`, or behind its end `at`.
fn blank_around(text: &[u8], start: usize, at: usize) -> Option<OddDelimiter> {
    let behind = text.get(at).is_some_and(|b| is_space(*b)).then_some(at);
    let at = if start > 0 { 0 } else { behind? };
    Some(OddDelimiter {
        byte: text[at],
        at,
        standard: None,
    })
}

/// A blank before the value.
pub fn leading_blank(text: &[u8]) -> Option<OddDelimiter> {
    let start = text.iter().take_while(|b| is_space(**b)).count();
    blank_around(text, start, text.len())
}

/// Checks a date against the flags; `zero` tells that every part of the whole value is zero.
pub fn check_date(date: Date, zero: bool, flags: DateFlags) -> Result<(), TemporalError> {
    if zero {
        return if flags.no_zero_date {
            Err(TemporalError::ZeroDate)
        } else {
            Ok(())
        };
    }
    if flags.no_zero_in_date && (date.month() == 0 || date.day() == 0) {
        return Err(TemporalError::ZeroInDate);
    }
    let last = days_in_month(date.year(), date.month());
    if !flags.allow_invalid && date.month() != 0 && date.day() > last {
        return Err(TemporalError::OutOfRange);
    }
    Ok(())
}

/// year, month, day, hour, minute, second, fraction
type Parts = [u32; 7];

fn in_range(p: &Parts) -> bool {
    p[0] <= 9999
        && p[1] <= 12
        && p[2] <= 31
        && p[3] <= 23
        && p[4] <= 59
        && p[5] <= 59
        && p[6] <= 999_999
}

fn assemble(p: &Parts, fsp: u8) -> DateTime {
    DateTime::new(Date::new(p[0], p[1], p[2]), p[3], p[4], p[5], p[6], fsp)
}

/// What the scan over the fields of a text found.
struct Fields {
    parts: Parts,
    lens: [usize; 7],
    count: usize,
    /// Digits without delimiters: the year has 2 or 4 digits by the length of the whole.
    compact: bool,
    year_len: usize,
    end: usize,
    nonzero: bool,
    delimiter: bool,
    space: bool,
    odd: Option<OddDelimiter>,
}

fn scan_fields(s: &[u8], start: usize) -> Result<Fields, NoDate> {
    let run = s[start..]
        .iter()
        .take_while(|b| b.is_ascii_digit() || **b == b'T')
        .count();
    let after = s.get(start + run);
    let compact = after.is_none() || after == Some(&b'.');
    let compact_year = if run == 4 || run == 8 || run >= 14 {
        4
    } else {
        2
    };
    let mut f = Fields {
        parts: [0; 7],
        lens: [0; 7],
        count: 0,
        compact,
        year_len: compact_year,
        end: start,
        nonzero: false,
        delimiter: false,
        space: false,
        odd: None,
    };
    let mut field_len = if compact { compact_year } else { 4 };
    let mut at = start;
    let mut i = 0;
    while i < 7 && s.get(at).is_some_and(u8::is_ascii_digit) {
        let begin = at;
        let until_delimiter = !compact && i != 6;
        let mut value = 0u32;
        while let Some(d) = s.get(at).filter(|b| b.is_ascii_digit()) {
            if !until_delimiter {
                if field_len == 0 {
                    break;
                }
                field_len -= 1;
            }
            value = value * 10 + u32::from(d - b'0');
            if value > 999_999 {
                return Err(NoDate::Nothing);
            }
            at += 1;
        }
        f.parts[i] = value;
        f.lens[i] = at - begin;
        f.nonzero |= value != 0;
        field_len = 2;
        f.end = at;
        if at == s.len() {
            i += 1;
            break;
        }
        if i == 2 && s[at] == b'T' {
            at += 1;
            i += 1;
            f.end = at;
            continue;
        }
        if i == 5 {
            // Behind the seconds: a fraction or the end.
            if s[at] == b'.' {
                at += 1;
                f.end = at;
                field_len = 6;
            } else {
                i += 1;
                break;
            }
            i += 1;
            continue;
        }
        if i == 6 {
            i += 1;
            break;
        }
        let standard = [b'-', b'-', b' ', b':', b':'][i];
        let mut delimited = false;
        // A dot behind a year of one digit, or behind a compact date, starts no part in MySQL.
        let unnoticed = compact && (run == 1 || i == 2 && b'.' == s[at]);
        while let Some(&b) = s.get(at).filter(|b| is_punct(**b) || is_space(**b)) {
            if f.odd.is_none() && !unnoticed && (delimited || b != standard) {
                let standard = (!delimited).then_some(standard);
                f.odd = Some(OddDelimiter {
                    byte: b,
                    at,
                    standard,
                });
            }
            delimited = true;
            if is_space(b) {
                // White space only between date and time.
                if i != 2 {
                    return Err(NoDate::Nothing);
                }
                f.space = true;
            }
            f.delimiter = true;
            at += 1;
        }
        f.end = at;
        i += 1;
    }
    f.count = i;
    Ok(f)
}

/// Reads a date with an optional time. `time_context` is that of `parse_time`, where digits without
/// a space between date and time are a time.
fn parse_full(text: &[u8], flags: DateFlags, time_context: bool) -> Result<ParsedDateTime, NoDate> {
    let start = text.iter().take_while(|b| is_space(**b)).count();
    if !text.get(start).is_some_and(u8::is_ascii_digit) {
        return Err(NoDate::Nothing);
    }
    let mut f = scan_fields(text, start)?;
    if time_context && f.delimiter && !f.space {
        return Err(NoDate::Nothing);
    }
    if !f.compact {
        f.year_len = f.lens[0];
    }
    let fraction_digits = f.lens[6].min(6);
    f.parts[6] *= 10u32.pow(6 - fraction_digits as u32);
    if f.year_len == 2 && f.nonzero {
        f.parts[0] += if f.parts[0] < 70 { 2000 } else { 1900 };
    }
    if f.count < 3 || !in_range(&f.parts) {
        let rest_blank = text[f.end..].iter().all(|b| is_space(*b));
        // An all-zero prefix with garbage is no zero date.
        let error = if f.nonzero || !rest_blank {
            TemporalError::Malformed
        } else {
            TemporalError::ZeroDate
        };
        return Err(error.into());
    }
    let value = assemble(&f.parts, fraction_digits as u8);
    check_date(value.date(), !f.nonzero, flags)?;
    let mut at = f.end;
    let mut nanos = 0;
    if fraction_digits == 6
        && let Some(d) = text.get(at).filter(|b| b.is_ascii_digit())
    {
        nanos = 100 * u32::from(d - b'0');
        at += text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    }
    let (offset_s, at) = displacement(text, at, f.count)?;
    let truncated = !text[at..].iter().all(|b| is_space(*b));
    // The blank behind a date alone was read as the delimiter before a time.
    let date_end = at - usize::from(f.count == 3 && at == text.len() && f.space);
    let blank = blank_around(text, start, date_end);
    Ok(ParsedDateTime {
        value,
        nanos,
        date_only: f.count <= 3,
        truncated,
        offset_s,
        odd: if start > 0 { blank } else { f.odd.or(blank) },
    })
}

/// `+hh:mm` or `-hh:mm` to the end of the text but for blanks, behind a whole time, from -13:59 to
/// +14:00.
fn displacement(text: &[u8], at: usize, fields: usize) -> Result<(Option<i32>, usize), NoDate> {
    let Some([sign @ (b'+' | b'-'), rest @ ..]) = text.get(at..).filter(|_| fields >= 6) else {
        return Ok((None, at));
    };
    let digit = |b: &u8| {
        b.is_ascii_digit()
            .then(|| i32::from(b - b'0'))
            .ok_or(NoDate::Nothing)
    };
    let [h1, h2, b':', m1, m2] = rest.trim_ascii_end() else {
        return Err(NoDate::Nothing);
    };
    let (h, m) = (digit(h1)? * 10 + digit(h2)?, digit(m1)? * 10 + digit(m2)?);
    let seconds = h * 3600 + m * 60;
    // "-00:00" is refused, as MySQL does.
    let valid = if *sign == b'+' {
        seconds <= 14 * 3600
    } else {
        (1..14 * 3600).contains(&seconds)
    };
    if m >= 60 || !valid {
        return Err(NoDate::Nothing);
    }
    Ok((
        Some(if *sign == b'+' { seconds } else { -seconds }),
        text.len(),
    ))
}

impl ParsedDateTime {
    /// The value in a session's time zone: a displacement in the text is applied. `None` where that
    /// leaves the years 0 to 9999.
    pub fn to_zone(&self, zone: &TimeZone) -> Option<DateTime> {
        match self.offset_s {
            None => Some(self.value),
            Some(seconds) => zone.to_local(TimeZone::Fixed(seconds).to_instant(self.value)?.0),
        }
    }

    /// As [`Self::to_zone`], rounded to the microsecond, or cut there if `cuts`.
    pub fn rounded(&self, zone: &TimeZone, cuts: bool) -> Option<DateTime> {
        let value = self.to_zone(zone)?;
        if cuts || self.nanos < 500 {
            return Some(value);
        }
        value.round(self.nanos, 6)
    }
}

/// Reads a text as a date with an optional time.
pub fn parse_datetime(text: &[u8], flags: DateFlags) -> Result<ParsedDateTime, TemporalError> {
    parse_full(text, flags, false).map_err(|e| match e {
        NoDate::Nothing => TemporalError::Malformed,
        NoDate::Error(e) => e,
    })
}

/// Reads a text as a time: `[-][d ]hh:mm[:ss][.f]`, `hhmmss`, or the time of a whole date and time.
pub fn parse_time(text: &[u8]) -> Result<ParsedTime, TemporalError> {
    let mut start = text.iter().take_while(|b| is_space(**b)).count();
    let negative = text.get(start) == Some(&b'-');
    start += usize::from(negative);
    if start == text.len() {
        return Err(TemporalError::Malformed);
    }
    let first = start - usize::from(negative);
    if text.len() - start >= 12 {
        // A date and time yields its time of day; the date may be invalid.
        let flags = DateFlags {
            allow_invalid: true,
            ..DateFlags::default()
        };
        match parse_full(&text[start..], flags, true) {
            Ok(full) if full.date_only || negative => return Err(TemporalError::Malformed),
            Ok(full) => {
                let (value, nanos, truncated) = (full.value.time(), full.nanos, full.truncated);
                return Ok(ParsedTime {
                    value,
                    nanos,
                    truncated,
                    clamped: false,
                    dated: Some(full),
                    odd: match first {
                        0 => full.odd.filter(|odd| odd.standard.is_none()),
                        _ => blank_around(text, first, text.len()),
                    },
                });
            }
            Err(NoDate::Error(e)) => return Err(e),
            Err(NoDate::Nothing) => {}
        }
    }
    let (parts, at) = time_parts(text, start)?;
    let (micros, nanos, fsp, at) = time_fraction(text, at)?;
    let [days, hours, minutes, seconds] = parts;
    if minutes >= 60 || seconds >= 60 {
        return Err(TemporalError::OutOfRange);
    }
    let truncated = !text[at..].iter().all(|b| is_space(*b));
    if truncated && at == start {
        return Err(TemporalError::Malformed);
    }
    // Days and hours are below 2^32, so their seconds fit; the microseconds may not.
    let seconds = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    let total = seconds
        .saturating_mul(MICROS_PER_SECOND)
        .saturating_add(i64::from(micros));
    let clamped = total > TIME_MAX_MICROS;
    let total = total.min(TIME_MAX_MICROS);
    let value = Time::from_micros(if negative { -total } else { total }, fsp);
    Ok(ParsedTime {
        value,
        nanos: if clamped { 0 } else { nanos },
        truncated,
        clamped,
        dated: None,
        odd: blank_around(text, first, at),
    })
}

/// The digits at `at` as a number, bounded, and where they end.
fn number_at(text: &[u8], mut at: usize) -> Result<(i64, usize), TemporalError> {
    let mut value = 0i64;
    while let Some(d) = text.get(at).filter(|b| b.is_ascii_digit()) {
        value = value * 10 + i64::from(d - b'0');
        if value > i64::from(u32::MAX) {
            return Err(TemporalError::Malformed);
        }
        at += 1;
    }
    Ok((value, at))
}

/// (days, hours, minutes, seconds) and where they end. A missing number is 0: ':12' is 12 minutes.
fn time_parts(text: &[u8], start: usize) -> Result<([i64; 4], usize), TemporalError> {
    let digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let (value, end) = number_at(text, start)?;
    let mut at = end + text[end..].iter().take_while(|b| is_space(**b)).count();
    let mut parts = [0i64; 4];
    let mut state;
    if at > end && at + 1 < text.len() && digit(at) {
        parts[0] = value;
        state = 1;
    } else if text.get(at) == Some(&b':') && digit(at + 1) {
        parts[1] = value;
        state = 2;
        at += 1;
    } else {
        // One number: hhmmss.
        return Ok(([0, value / 10_000, value / 100 % 100, value % 100], end));
    }
    loop {
        let (value, next) = number_at(text, at)?;
        parts[state] = value;
        state += 1;
        at = next;
        if state == 4 || text.get(at) != Some(&b':') || !digit(at + 1) {
            break;
        }
        at += 1;
    }
    Ok((parts, at))
}

/// (microseconds, nanoseconds behind them, digits, where the fraction ends)
fn time_fraction(text: &[u8], at: usize) -> Result<(u32, u32, u8, usize), TemporalError> {
    if text.get(at) != Some(&b'.') {
        return no_exponent(text, at).map(|()| (0, 0, 0, at));
    }
    let run = text[at + 1..]
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let digits = &text[at + 1..at + 1 + run];
    let digit = |i: usize| digits.get(i).map_or(0, |d| u32::from(d - b'0'));
    let micros = (0..6).fold(0, |n, i| n * 10 + digit(i));
    let end = at + 1 + run;
    // A single point at the end is taken; one before garbage is garbage.
    let end = if run == 0 && end < text.len() {
        at
    } else {
        end
    };
    no_exponent(text, end)?;
    Ok((micros, digit(6) * 100, run.min(6) as u8, end))
}

/// A text with an exponent is no time.
fn no_exponent(text: &[u8], at: usize) -> Result<(), TemporalError> {
    if !matches!(text.get(at), Some(b'e' | b'E')) {
        return Ok(());
    }
    let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
    if text.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
        Err(TemporalError::Malformed)
    } else {
        Ok(())
    }
}

/// A number as a date with an optional time: YYMMDD, YYYYMMDD, YYMMDDhhmmss, YYYYMMDDhhmmss.
pub fn datetime_of_number(number: i64, flags: DateFlags) -> Result<DateTime, TemporalError> {
    const MALFORMED: Result<DateTime, TemporalError> = Err(TemporalError::Malformed);
    let nr = match number {
        0 => 0,
        10_000_101_000_000..=99_999_999_999_999 => number,
        101..=691_231 => (number + 20_000_000) * 1_000_000,
        700_101..=991_231 => (number + 19_000_000) * 1_000_000,
        991_232..=99_991_231 => number * 1_000_000,
        101_000_000..=691_231_235_959 => number + 20_000_000_000_000,
        700_101_000_000..=991_231_235_959 => number + 19_000_000_000_000,
        991_231_235_960..10_000_101_000_000 => number,
        _ => return MALFORMED,
    };
    let (date, time) = ((nr / 1_000_000) as u32, (nr % 1_000_000) as u32);
    let parts = [
        date / 10_000,
        date / 100 % 100,
        date % 100,
        time / 10_000,
        time / 100 % 100,
        time % 100,
        0,
    ];
    if !in_range(&parts) {
        return MALFORMED;
    }
    let value = assemble(&parts, 0);
    check_date(value.date(), nr == 0, flags)?;
    Ok(value)
}

/// Converts a number to a date without time of day. The year, or year and month, may be missing, as
/// in 101 or 7. A time behind the date need not be a valid one.
pub fn date_of_number(number: i64, flags: DateFlags) -> Result<DateTime, TemporalError> {
    let number = match number {
        100_000_000.. => number - number % 1_000_000,
        _ => number,
    };
    match number {
        0..=100 => datetime_of_number(number + 20_000_000, flags),
        100_000_000 => datetime_of_number(number + 20_000_000_000_000, flags),
        _ => datetime_of_number(number, flags),
    }
}

/// A number as a time, [-]hhmmss, or the time of a whole date and time. The flag tells that it was
/// clamped.
pub fn time_of_number(number: i64) -> Result<(Time, bool), TemporalError> {
    if number.unsigned_abs() > 8_385_959 {
        if number >= 10_000_000_000
            && let Ok(full) = datetime_of_number(number, DateFlags::default())
        {
            return Ok((full.time(), false));
        }
        let max = if number < 0 {
            -TIME_MAX_MICROS
        } else {
            TIME_MAX_MICROS
        };
        return Ok((Time::from_micros(max, 0), true));
    }
    let n = number.unsigned_abs() as i64;
    let (h, m, s) = (n / 10_000, n / 100 % 100, n % 100);
    if m >= 60 || s >= 60 {
        return Err(TemporalError::OutOfRange);
    }
    let micros = ((h * 60 + m) * 60 + s) * MICROS_PER_SECOND;
    Ok((
        Time::from_micros(if number < 0 { -micros } else { micros }, 0),
        false,
    ))
}
