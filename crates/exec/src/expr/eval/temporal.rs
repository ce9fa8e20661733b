//! Converts values of any type to dates and times. The static type is not enough: an expression of
//! string type may return a date (`IF(a, date, 1)`, `ADDTIME('10:00:00', 1)`), which is then used
//! as such.

use nfold_plan::SqlMode;
use nfold_plan::expr::{Class, Coercibility, ExprType};
use nfold_types::convert::number;
use nfold_types::temporal::{DateFlags, MICROS_PER_DAY, parse};
use nfold_types::{
    ColumnType, Date, DateTime, Decimal, ErrorCode, SqlError, Time, Timestamp, TypeKind,
};

use super::convert::{
    binary_number, cuts_fractions, in_utf8, is_checked, is_wide, shown, to_bytes, to_integer,
    warn_incorrect, write_text,
};
use super::{EvalCx, Val, json};

/// Warning 1292 for a string that is neither a date nor a time.
pub(crate) fn warn_no_value(cx: &EvalCx<'_>, kind: &str, text: &[u8], ty: &ExprType) {
    if is_checked(ty) {
        return;
    }
    let message = format!("Incorrect {kind} value: '{}'", shown(cx, text, ty));
    let error = SqlError::with_message(ErrorCode::ER_TRUNCATED_WRONG_VALUE, message);
    cx.st
        .warnings
        .borrow_mut()
        .push_error(nfold_types::error::Level::Warning, &error);
}

/// Which date or time a conversion should return.
#[derive(Clone, Copy)]
pub(crate) struct TemporalTarget {
    /// Only the date is needed. Then the numbers 7 and 101 are days of the year 2000.
    pub date: bool,
    /// Which dates are valid. Others become NULL, with a warning if they were converted from
    /// another type.
    pub flags: DateFlags,
    /// Whether the day has to exist in its month in every SQL mode. Otherwise a value that is a
    /// date already may have any day up to 31.
    pub calendar: bool,
}

impl TemporalTarget {
    /// Accepts every date, including zero dates and zero parts.
    pub fn any(date: bool) -> TemporalTarget {
        TemporalTarget {
            date,
            flags: DateFlags::default(),
            calendar: false,
        }
    }

    /// Accepts the dates that the SQL mode allows.
    pub fn by_mode(cx: &EvalCx<'_>, date: bool) -> TemporalTarget {
        let mode = cx.env().sql_mode();
        let flags = DateFlags {
            no_zero_in_date: mode.has(SqlMode::NO_ZERO_IN_DATE),
            no_zero_date: mode.has(SqlMode::NO_ZERO_DATE),
            allow_invalid: mode.has(SqlMode::ALLOW_INVALID_DATES),
        };
        TemporalTarget {
            date,
            flags,
            calendar: false,
        }
    }

    /// Accepts dates without zero parts.
    pub fn whole(date: bool) -> TemporalTarget {
        let flags = DateFlags {
            no_zero_in_date: true,
            no_zero_date: true,
            allow_invalid: false,
        };
        TemporalTarget {
            date,
            flags,
            calendar: false,
        }
    }

    /// Accepts only calendar dates, without zero parts.
    pub fn calendar(date: bool) -> TemporalTarget {
        TemporalTarget {
            calendar: true,
            ..TemporalTarget::whole(date)
        }
    }

    /// With ALLOW_INVALID_DATES, texts and numbers may have any day, too.
    fn in_mode(mut self, cx: &EvalCx<'_>) -> TemporalTarget {
        let any_day = || cx.env().sql_mode().has(SqlMode::ALLOW_INVALID_DATES);
        self.flags.allow_invalid |= !self.calendar && any_day();
        self
    }

    fn number(self, n: i64) -> Option<DateTime> {
        let read = if self.date {
            parse::date_of_number
        } else {
            parse::datetime_of_number
        };
        read(n, self.flags).ok()
    }

    /// Warning 1292 for a string or DECIMAL that is not a valid date.
    fn warn(self, cx: &EvalCx<'_>, text: &[u8], ty: &ExprType) {
        if self.date {
            warn_incorrect(cx, "date", text, ty);
        } else {
            warn_no_value(cx, "datetime", text, ty);
        }
    }
}

/// Parses a date and time. Warning 4095 or 4096 for an unusual delimiter.
fn parse_text(
    cx: &EvalCx<'_>,
    text: &[u8],
    ty: &ExprType,
    asked: TemporalTarget,
) -> Option<DateTime> {
    let Ok(parsed) = parse::parse_datetime(text, asked.flags) else {
        asked.warn(cx, text, ty);
        return None;
    };
    if parsed.truncated {
        let date = asked.date || parsed.date_only;
        warn_incorrect(cx, if date { "date" } else { "datetime" }, text, ty);
    }
    warn_odd(cx, parsed.odd, text, ty);
    parsed.rounded(cx.env().time_zone(), cuts_fractions(cx))
}

/// Warning 4095 or 4096 for a delimiter other than the standard one.
pub(super) fn warn_odd(
    cx: &EvalCx<'_>,
    odd: Option<parse::OddDelimiter>,
    text: &[u8],
    ty: &ExprType,
) {
    if let Some(odd) = odd.filter(|_| !is_checked(ty)) {
        let warning = odd.warning(text, cx.st.counts.current(cx.st.scope));
        let level = nfold_types::error::Level::Warning;
        cx.st.warnings.borrow_mut().push_error(level, &warning);
    }
}

/// Whether the type is that of a BIT column.
pub(crate) fn is_bits(ty: &ExprType) -> bool {
    matches!(ty.col.kind, TypeKind::Bit(_)) && ty.coercibility == Coercibility::Implicit
}

/// The text, with its type, of a value that is converted by its text here: of an ENUM, a SET, a BIT
/// column, or a string in a wide character set, which is converted to UTF-8. `None` for other
/// values.
fn own_text<'v>(cx: &EvalCx<'v>, v: &Val<'v>, ty: &ExprType) -> Option<(Val<'v>, ExprType)> {
    if let Val::Bytes(text) = v
        && is_wide(ty)
    {
        return Some(in_utf8(text, ty));
    }
    if !matches!(v, Val::UInt(_)) || !(is_bits(ty) || ty.col.is_enum_or_set()) {
        return None;
    }
    let text = to_bytes(cx, v.clone(), ty).map_or(Val::Null, Val::Bytes);
    Some((text, ty.clone()))
}

/// As DATETIME. A TIME is counted from the current date.
pub fn to_datetime(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<DateTime> {
    to_asked(cx, v, ty, TemporalTarget::any(false))
}

/// As DATETIME, when only the date is needed.
pub fn to_date(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<DateTime> {
    to_asked(cx, v, ty, TemporalTarget::any(true))
}

/// Converts a value as `asked` says. NULL if it is invalid, with a warning unless the value was a
/// date before.
pub(crate) fn to_asked(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    ty: &ExprType,
    asked: TemporalTarget,
) -> Option<DateTime> {
    let own = own_text(cx, v, ty);
    let (v, ty) = own.as_ref().map_or((v, ty), |(v, ty)| (v, ty));
    let d = match v {
        Val::Null => return None,
        Val::Bytes(doc) if ty.col.is_json() => {
            let target = match asked.date {
                true => "DATE",
                false => "DATETIME/TIMESTAMP",
            };
            return json::converted(cx, doc, (target, ty), |v, ty| to_asked(cx, v, ty, asked));
        }
        Val::Bytes(text) => return parse_text(cx, text, ty, asked.in_mode(cx)),
        Val::Date(d) => d.at_midnight(),
        Val::DateTime(d) => *d,
        Val::Time(t) => {
            return date_of_time(cx, *t, asked.date);
        }
        // A year means its first day.
        Val::UInt(year) if is_year(&ty.col) => Date::new(*year as u32, 1, 1).at_midnight(),
        _ => return number_as_date(cx, v, ty, asked.in_mode(cx)),
    };
    let flags = DateFlags {
        allow_invalid: !asked.calendar,
        ..asked.flags
    };
    // A value that is a date already is rejected without a warning.
    let allowed = parse::check_date(d.date(), d.packed() == 0, flags).is_ok();
    allowed.then_some(d)
}

/// A TIME counted from the current date. `date`: only the date is needed, for which MySQL counts a
/// TIME that is no time of day from the current time.
fn date_of_time(cx: &EvalCx<'_>, t: Time, date: bool) -> Option<DateTime> {
    let now = cx.now(6);
    let today = now.date().at_midnight();
    match date && !(0..MICROS_PER_DAY).contains(&t.micros()) {
        true => {
            let then = DateTime::from_linear(now.to_linear() + t.micros(), 6)?;
            Some(then.date().at_midnight())
        }
        false if date => Some(today),
        false => DateTime::from_linear(today.to_linear() + t.micros(), t.fsp),
    }
}

/// Whether the type is that of a YEAR column. (The results of YEAR() and of CAST have a display
/// width.)
pub(crate) fn is_year(ty: &ColumnType) -> bool {
    ty.kind == TypeKind::Year && ty.width == 0
}

/// A year in a comparison with dates: a date without month and day.
pub(crate) fn year_alone(v: &Val<'_>, ty: &ExprType) -> Option<DateTime> {
    match v {
        Val::UInt(0) | Val::Int(0) if ty.col.kind == TypeKind::Year => Some(DateTime::ZERO),
        Val::UInt(year) if ty.col.kind == TypeKind::Year => {
            Some(Date::new(*year as u32, 0, 0).at_midnight())
        }
        // The result of YEAR() is signed.
        Val::Int(year @ 1..) if ty.col.kind == TypeKind::Year => {
            Some(Date::new(*year as u32, 0, 0).at_midnight())
        }
        _ => None,
    }
}

/// Converts a number to a date and time. If the number is a date without time, its fraction is
/// ignored.
fn number_as_date(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    ty: &ExprType,
    asked: TemporalTarget,
) -> Option<DateTime> {
    let found = datetime_of(v, asked, cuts_fractions(cx));
    match (v, &found) {
        (Val::Decimal(_), None) => asked.warn(cx, &shown_number(v, ty), ty),
        (Val::Double(_) | Val::Float(_), None) if whole_and_micros(v, false).is_none() => {
            asked.warn(cx, &shown_number(v, ty), ty);
        }
        (_, None) => {
            let shown = whole_and_micros(v, false)
                .map_or(0, |(n, ..)| n)
                .to_string();
            warn_no_value(cx, "datetime", shown.as_bytes(), ty);
        }
        (_, Some((_, true))) if !asked.date => warn_incorrect(cx, "date", &shown_number(v, ty), ty),
        _ => {}
    }
    found.map(|(d, _)| d)
}

/// The flag says whether a fraction was ignored.
fn datetime_of(v: &Val<'_>, asked: TemporalTarget, cuts: bool) -> Option<(DateTime, bool)> {
    let (whole, micros, fsp) = whole_and_micros(v, cuts)?;
    let below = match v {
        Val::Decimal(d) => d.is_negative(),
        Val::Double(d) => *d < 0.0,
        Val::Float(f) => *f < 0.0,
        _ => false,
    };
    if below && micros > 0 && !(asked.date && whole == 0) {
        return None;
    }
    let mut asked = asked;
    // A zero date with a fraction of a second is no zero date, but its month is zero.
    asked.flags.no_zero_date &= micros == 0 || asked.flags.no_zero_in_date;
    let d = asked.number(whole)?;
    let has_time = whole == 0 || whole > 99_991_231;
    Some(match micros {
        1..1_000_000 if has_time => {
            let (h, m, s, _) = d.time().parts();
            (DateTime::new(d.date(), h, m, s, micros, fsp), false)
        }
        1_000_000 if has_time => {
            let next = d.to_linear() + i64::from(micros);
            (DateTime::from_linear(next, fsp)?, false)
        }
        _ => (d, micros != 0),
    })
}

/// Whether a number is a date and time without loss. `date`: the time of day has to be zero.
pub(super) fn number_fits_date(cx: &EvalCx<'_>, v: &Val<'_>, date: bool) -> bool {
    // Zero is the zero date in every SQL mode.
    let zero = match v {
        Val::Int(n) => *n == 0,
        Val::UInt(n) => *n == 0,
        Val::Decimal(d) => d.is_zero(),
        Val::Double(d) => *d == 0.0,
        Val::Float(f) => *f == 0.0,
        _ => false,
    };
    if zero {
        return true;
    }
    let found = datetime_of(v, TemporalTarget::by_mode(cx, false), cuts_fractions(cx));
    found.is_some_and(|(d, lost)| !(lost || date && d.time().micros() != 0))
}

/// Whether a number is a time without loss. `alone`: it must have no date before the time.
pub(super) fn number_fits_time(cx: &EvalCx<'_>, v: &Val<'_>, alone: bool) -> bool {
    let dated = alone && whole_and_micros(v, false).is_some_and(|(n, ..)| n > 99_999_999);
    let v = match v {
        Val::UInt(n) => &Val::Int(*n as i64),
        v => v,
    };
    !dated && time_of(v, cuts_fractions(cx)).is_some_and(|(_, clamped)| !clamped)
}

/// As TIME.
pub fn to_time(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<Time> {
    let own = own_text(cx, v, ty);
    let (v, ty) = own.as_ref().map_or((v, ty), |(v, ty)| (v, ty));
    match v {
        Val::Null => None,
        Val::Bytes(doc) if ty.col.is_json() => {
            json::converted(cx, doc, ("TIME", ty), |v, ty| to_time(cx, v, ty))
        }
        Val::Time(t) => Some(*t),
        Val::Date(_) => Some(Time::from_micros(0, 0)),
        Val::DateTime(d) => Some(d.time()),
        Val::UInt(_) if is_year(&ty.col) => Some(Time::from_micros(0, 0)),
        Val::Bytes(text) => {
            let parsed = parse::parse_time(text).ok();
            if parsed.is_none_or(|p| p.truncated || p.clamped) {
                warn_incorrect(cx, "time", text, ty);
            }
            let odd = parsed.map_or_else(|| parse::leading_blank(text), |p| p.odd);
            warn_odd(cx, odd, text, ty);
            parsed.and_then(|p| p.rounded(cx.env().time_zone(), cuts_fractions(cx)))
        }
        _ => number_as_time(cx, v, ty),
    }
}

fn number_as_time(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<Time> {
    let parsed = time_of(v, cuts_fractions(cx)).and_then(|(t, clamped)| (!clamped).then_some(t));
    if parsed.is_none() {
        warn_incorrect(cx, "time", &shown_number(v, ty), ty);
    }
    parsed
}

/// Converts a number in a list that is compared as TIME. A double becomes the nearest valid time.
/// An invalid double, or a DECIMAL beyond all integers, becomes 00:00:00.
pub(crate) fn listed_time(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<Time> {
    let double = matches!(v, Val::Double(_) | Val::Float(_));
    let beyond = matches!(v, Val::Decimal(_)) && whole_and_micros(v, false).is_none();
    if !double && !beyond {
        return to_time(cx, v, ty);
    }
    let found = time_of(v, cuts_fractions(cx));
    if found.is_none_or(|(_, clamped)| clamped) {
        warn_incorrect(cx, "time", &shown_number(v, ty), ty);
    }
    Some(found.map(|(t, _)| t).unwrap_or_default())
}

/// The flag says whether the value was clamped to the range of TIME.
fn time_of(v: &Val<'_>, cuts: bool) -> Option<(Time, bool)> {
    whole_and_micros(v, cuts).and_then(|(whole, micros, fsp)| {
        let (t, clamped) = parse::time_of_number(whole).ok()?;
        let negative = match v {
            Val::Decimal(d) => d.is_negative(),
            Val::Double(d) => *d < 0.0,
            Val::Float(f) => *f < 0.0,
            _ => false,
        };
        let micros = i64::from(micros);
        let all = t.micros() + if negative { -micros } else { micros };
        Some(match clamped {
            true => (t, true),
            false => (Time::from_micros(all, fsp), false),
        })
    })
}

/// A date and time, or a time.
#[derive(Clone, Copy)]
pub(crate) enum TimePoint {
    DateTime(DateTime),
    Time(Time),
}

impl TimePoint {
    /// The time of day, or the time.
    pub fn time(self) -> Time {
        match self {
            TimePoint::DateTime(d) => d.time(),
            TimePoint::Time(t) => t,
        }
    }
}

/// Accepts any day up to 31 in any month.
const ANY_DAY: DateFlags = DateFlags {
    no_zero_in_date: false,
    no_zero_date: false,
    allow_invalid: true,
};

/// Converts a value where a time and a date are both allowed. A string of the form `12:34:56` is a
/// time; any other string that is a valid date is a date, and so is a number too large for a time.
pub(crate) fn to_time_point(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<TimePoint> {
    let own = own_text(cx, v, ty);
    let (v, ty) = own.as_ref().map_or((v, ty), |(v, ty)| (v, ty));
    match v {
        Val::Null => None,
        Val::Date(d) => Some(TimePoint::DateTime(d.at_midnight())),
        Val::DateTime(d) => Some(TimePoint::DateTime(*d)),
        Val::Time(t) => Some(TimePoint::Time(*t)),
        Val::Bytes(text) => {
            let time = || to_time(cx, v, ty).map(TimePoint::Time);
            if is_clock(text) && parse::parse_time(text).is_ok_and(|t| !t.clamped) {
                return time();
            }
            match parse::parse_datetime(text, ANY_DAY) {
                Ok(parsed) => {
                    warn_odd(cx, parsed.odd, text, ty);
                    let cuts = cuts_fractions(cx);
                    parsed
                        .rounded(cx.env().time_zone(), cuts)
                        .map(TimePoint::DateTime)
                }
                Err(_) if parse::parse_time(text).is_ok() => time(),
                Err(_) => {
                    warn_no_value(cx, "datetime", text, ty);
                    None
                }
            }
        }
        _ => match whole_and_micros(v, false) {
            Some((n, ..)) if n > 8_385_959 => to_datetime(cx, v, ty).map(TimePoint::DateTime),
            _ => number_as_time(cx, v, ty).map(TimePoint::Time),
        },
    }
}

/// Whether text consists of digits, colons and an optional fraction: `12:34` and `-1:2:3.5`.
fn is_clock(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let (clock, fraction) = match digits.iter().position(|b| *b == b'.') {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    clock.contains(&b':')
        && clock.iter().all(|b| b.is_ascii_digit() || *b == b':')
        && fraction.iter().all(u8::is_ascii_digit)
}

/// Converts the operand of EXTRACT of a time unit: a valid date is a date, other values are times.
pub(crate) fn to_extracted(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<TimePoint> {
    let own = own_text(cx, v, ty);
    let (v, ty) = own.as_ref().map_or((v, ty), |(v, ty)| (v, ty));
    match v {
        Val::Null => None,
        Val::Date(d) => Some(TimePoint::DateTime(d.at_midnight())),
        Val::DateTime(d) => Some(TimePoint::DateTime(*d)),
        Val::Bytes(text) => {
            let parsed = parse::parse_datetime(text, ANY_DAY);
            if !parsed.is_ok_and(|p| !p.truncated && p.odd.is_none()) {
                return to_time(cx, v, ty).map(TimePoint::Time);
            }
            let d = to_datetime(cx, v, ty)?;
            if d.packed() == 0 && cx.env().sql_mode().has(SqlMode::NO_ZERO_DATE) {
                warn_no_value(cx, "datetime", text, ty);
                return None;
            }
            Some(TimePoint::DateTime(d))
        }
        Val::UInt(_) if is_year(&ty.col) => to_time(cx, v, ty).map(TimePoint::Time),
        Val::Time(t) => Some(TimePoint::Time(*t)),
        _ => match datetime_of(v, TemporalTarget::any(false), cuts_fractions(cx)) {
            // A number of at most four digits means minutes and seconds.
            Some((d, _)) if whole_and_micros(v, false).is_some_and(|(n, ..)| n >= 10_000) => {
                Some(TimePoint::DateTime(d))
            }
            _ => to_time(cx, v, ty).map(TimePoint::Time),
        },
    }
}

/// Splits a number that encodes a date or time: its integer part, the microseconds, and how many
/// digits these have. A BIGINT UNSIGNED is taken as signed, as in MySQL. `None`: too large, or not
/// a number.
fn whole_and_micros(v: &Val<'_>, cuts: bool) -> Option<(i64, u32, u8)> {
    Some(match v {
        Val::Int(n) => (*n, 0, 0),
        Val::UInt(n) => (*n as i64, 0, 0),
        Val::Decimal(d) => {
            let whole = d.truncate(0);
            let micros = d.sub(&whole)?.abs().mul(&Decimal::from(1_000_000i64))?;
            let micros = match cuts {
                true => micros.truncate(0),
                false => micros.round(0)?,
            };
            let micros = micros.to_i64()? as u32;
            (whole.to_i64()?, micros, d.scale().min(6))
        }
        Val::Double(_) | Val::Float(_) => {
            let d = match v {
                Val::Float(f) => f64::from(*f),
                Val::Double(d) => *d,
                _ => 0.0,
            };
            let whole = d.trunc();
            if whole.abs() > 1e18 {
                return None;
            }
            let micros = (d - whole).abs() * 1e6;
            let micros = if cuts { micros } else { micros.round() } as u32;
            (whole as i64, micros, if micros == 0 { 0 } else { 6 })
        }
        _ => return None,
    })
}

/// The text of a number in a warning.
fn shown_number(v: &Val<'_>, ty: &ExprType) -> Vec<u8> {
    let mut out = Vec::new();
    match v {
        Val::UInt(n) => number::write_i64(*n as i64, &mut out),
        Val::Float(f) => number::write_double(f64::from(*f), &mut out),
        other => write_text(other, ty, &mut out),
    }
    out
}

/// `CAST(v AS YEAR)`.
pub(crate) fn cast_year(cx: &EvalCx<'_>, v: &Val<'_>, from: &ExprType) -> Option<u64> {
    let (n, from_text) = match v {
        Val::Date(d) => (i128::from(d.year()), false),
        Val::DateTime(d) => (i128::from(d.date().year()), false),
        Val::Time(_) => (i128::from(cx.now(0).date().year()), false),
        Val::UInt(n) if from.class() == Class::Int => (i128::from(*n as i64), false),
        Val::Bytes(text) if !binary_number(from) => {
            let parsed = number::parse_integer(text);
            let digits = text
                .trim_ascii_start()
                .first()
                .is_some_and(u8::is_ascii_digit);
            if !digits && parsed.value <= 0 || parsed.overflow {
                let shown = shown(cx, text, from);
                cx.warn(ErrorCode::ER_WRONG_VALUE, &[&"YEAR", &shown]);
                return None;
            }
            if parsed.truncated {
                warn_incorrect(cx, "YEAR", text, from);
            }
            (i128::from(parsed.value as i64), true)
        }
        other => (to_integer(cx, other, from)?, false),
    };
    match n {
        0 if from_text => Some(2000),
        1..=69 => Some(2000 + n as u64),
        70..=99 => Some(1900 + n as u64),
        0 | 1901..=2155 => Some(n as u64),
        _ => {
            warn_incorrect(cx, "YEAR", n.to_string().as_bytes(), from);
            None
        }
    }
}

/// A time stamp in the session's time zone, truncated to `fsp` digits.
pub fn local(cx: &EvalCx<'_>, at: Timestamp, fsp: u8) -> DateTime {
    cx.env()
        .time_zone()
        .to_local(at)
        .unwrap_or(DateTime::ZERO)
        .truncate(fsp)
}
