//! Rounding, differences and intervals.

use super::calendar::{MAX_DAYNR, date_of_day_number, day_number, days_in_month};
use super::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, TIME_MAX_MICROS, Time, Timestamp};

/// The unit of an INTERVAL.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

impl IntervalUnit {
    /// Whether only the date changes: DAY and the larger units that are no mixture with a time.
    pub fn is_date_only(self) -> bool {
        use IntervalUnit::*;
        matches!(self, Day | Week | Month | Quarter | Year | YearMonth)
    }

    /// Whether it may give fractions of a second.
    pub fn has_micros(self) -> bool {
        use IntervalUnit::*;
        matches!(
            self,
            Microsecond | SecondMicrosecond | MinuteMicrosecond | HourMicrosecond | DayMicrosecond
        )
    }

    /// Whether its text has several fields, as DAY_HOUR.
    pub fn is_mixed(self) -> bool {
        self.fields().0 > 1
    }

    /// The unit's word in SQL.
    pub fn name(self) -> &'static str {
        use IntervalUnit::*;
        match self {
            Microsecond => "MICROSECOND",
            Second => "SECOND",
            Minute => "MINUTE",
            Hour => "HOUR",
            Day => "DAY",
            Week => "WEEK",
            Month => "MONTH",
            Quarter => "QUARTER",
            Year => "YEAR",
            SecondMicrosecond => "SECOND_MICROSECOND",
            MinuteMicrosecond => "MINUTE_MICROSECOND",
            MinuteSecond => "MINUTE_SECOND",
            HourMicrosecond => "HOUR_MICROSECOND",
            HourSecond => "HOUR_SECOND",
            HourMinute => "HOUR_MINUTE",
            DayMicrosecond => "DAY_MICROSECOND",
            DaySecond => "DAY_SECOND",
            DayMinute => "DAY_MINUTE",
            DayHour => "DAY_HOUR",
            YearMonth => "YEAR_MONTH",
        }
    }

    /// The unit of a word in SQL, in any case, with or without the prefix SQL_TSI_.
    pub fn parse(word: &str) -> Option<IntervalUnit> {
        use IntervalUnit::*;
        const ALL: [IntervalUnit; 20] = [
            Microsecond,
            Second,
            Minute,
            Hour,
            Day,
            Week,
            Month,
            Quarter,
            Year,
            SecondMicrosecond,
            MinuteMicrosecond,
            MinuteSecond,
            HourMicrosecond,
            HourSecond,
            HourMinute,
            DayMicrosecond,
            DaySecond,
            DayMinute,
            DayHour,
            YearMonth,
        ];
        let upper = word.to_ascii_uppercase();
        let bare = upper.strip_prefix("SQL_TSI_").unwrap_or(&upper);
        ALL.into_iter().find(|u| u.name() == bare)
    }

    /// How many fields a text for this unit has, and the place of the last one: (count, index into
    /// the parts of `Interval`).
    fn fields(self) -> (usize, usize) {
        use IntervalUnit::*;
        match self {
            SecondMicrosecond => (2, MICRO),
            MinuteMicrosecond => (3, MICRO),
            HourMicrosecond => (4, MICRO),
            DayMicrosecond => (5, MICRO),
            MinuteSecond => (2, SECOND),
            HourSecond => (3, SECOND),
            DaySecond => (4, SECOND),
            HourMinute => (2, MINUTE),
            DayMinute => (3, MINUTE),
            DayHour => (2, HOUR),
            YearMonth => (2, MONTH),
            Microsecond => (1, MICRO),
            Second => (1, SECOND),
            Minute => (1, MINUTE),
            Hour => (1, HOUR),
            Day | Week => (1, DAY),
            Month | Quarter => (1, MONTH),
            Year => (1, YEAR),
        }
    }
}

const YEAR: usize = 0;
const MONTH: usize = 1;
const DAY: usize = 2;
const HOUR: usize = 3;
const MINUTE: usize = 4;
const SECOND: usize = 5;
const MICRO: usize = 6;

/// An amount of time with a sign for the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interval {
    /// Below zero.
    pub negative: bool,
    /// Years, months, days, hours, minutes, seconds, microseconds.
    parts: [u64; 7],
}

impl Interval {
    /// `amount` of a simple unit (for a mixed unit the amount of its last field).
    pub fn new(unit: IntervalUnit, amount: i64) -> Interval {
        let mut interval = Interval {
            negative: amount < 0,
            parts: [0; 7],
        };
        let factor = match unit {
            IntervalUnit::Week => 7,
            IntervalUnit::Quarter => 3,
            _ => 1,
        };
        interval.parts[unit.fields().1] = amount.unsigned_abs().saturating_mul(factor);
        interval
    }

    /// An amount of seconds with a fraction, in microseconds.
    pub fn from_micros(micros: i64) -> Interval {
        let us = micros.unsigned_abs();
        let mut parts = [0; 7];
        (parts[SECOND], parts[MICRO]) = (us / 1_000_000, us % 1_000_000);
        Interval {
            negative: micros < 0,
            parts,
        }
    }

    /// Reads a text for a mixed unit, as '1 2:3' for DAY_MINUTE: groups of digits, any other
    /// characters between them; too few groups fill the unit from its right end. `None` if there
    /// are too many groups or a number is out of range.
    pub fn parse(unit: IntervalUnit, text: &[u8]) -> Option<Interval> {
        let start = text
            .iter()
            .take_while(|b| crate::number::is_space(**b))
            .count();
        let negative = text.get(start) == Some(&b'-');
        let (count, last) = unit.fields();
        let mut groups: Vec<(u64, usize)> = Vec::with_capacity(count);
        let mut at = start + usize::from(negative);
        while groups.len() < count {
            at += text
                .get(at..)
                .unwrap_or(&[])
                .iter()
                .take_while(|b| !b.is_ascii_digit())
                .count();
            let run = text
                .get(at..)
                .unwrap_or(&[])
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .count();
            if run == 0 {
                break;
            }
            let mut value = 0u64;
            for d in &text[at..at + run] {
                value = value.checked_mul(10)?.checked_add(u64::from(d - b'0'))?;
            }
            groups.push((value, run));
            at += run;
        }
        if text
            .get(at..)
            .is_some_and(|rest| rest.iter().any(u8::is_ascii_digit))
        {
            return None;
        }
        let mut interval = Interval {
            negative,
            parts: [0; 7],
        };
        for (i, (value, digits)) in groups.iter().rev().enumerate() {
            let place = last - i;
            let fraction = place == MICRO && unit != IntervalUnit::Microsecond;
            // The microseconds of a mixed unit are a fraction: '1.5' is half a second more.
            let scale = if fraction {
                10u64.pow(6usize.saturating_sub(*digits) as u32)
            } else {
                1
            };
            interval.parts[place] = value.checked_mul(scale)?;
        }
        Some(interval)
    }

    /// The same amount the other way.
    #[must_use]
    pub fn negated(mut self) -> Interval {
        self.negative = !self.negative;
        self
    }

    /// Days and smaller parts in microseconds; `None` on overflow.
    fn day_micros(&self) -> Option<i64> {
        let p = &self.parts;
        let seconds = [
            (p[DAY], 86_400),
            (p[HOUR], 3600),
            (p[MINUTE], 60),
            (p[SECOND], 1),
        ]
        .into_iter()
        .try_fold(0u64, |sum, (n, unit)| {
            n.checked_mul(unit).and_then(|s| sum.checked_add(s))
        })?;
        let micros = i64::try_from(seconds)
            .ok()?
            .checked_mul(MICROS_PER_SECOND)?;
        let micros = micros.checked_add(i64::try_from(p[MICRO]).ok()?)?;
        Some(if self.negative { -micros } else { micros })
    }

    fn months(&self) -> Option<i64> {
        let months = self.parts[YEAR]
            .checked_mul(12)?
            .checked_add(self.parts[MONTH])?;
        let months = i64::try_from(months).ok()?;
        Some(if self.negative { -months } else { months })
    }
}

impl Date {
    /// This date plus `days` days. `None` outside 0000-01-01 to 9999-12-31.
    pub fn add_days(self, days: i64) -> Option<Date> {
        let n = i64::from(day_number(self)).checked_add(days)?;
        (1..=i64::from(MAX_DAYNR))
            .contains(&n)
            .then(|| date_of_day_number(n as u32))
    }

    /// This date plus `months` months, with the day reduced to the month's last day. `None` outside
    /// the years 0 to 9999.
    pub fn add_months(self, months: i64) -> Option<Date> {
        let total =
            (i64::from(self.year()) * 12 + i64::from(self.month()) - 1).checked_add(months)?;
        if !(0..120_000).contains(&total) {
            return None;
        }
        let (year, month) = ((total / 12) as u32, (total % 12) as u32 + 1);
        Some(Date::new(
            year,
            month,
            self.day().min(days_in_month(year, month)),
        ))
    }
}

impl DateTime {
    /// Microseconds since the start of day 0.
    pub fn to_linear(self) -> i64 {
        i64::from(day_number(self.date())) * MICROS_PER_DAY + self.time().micros()
    }

    /// From microseconds since the start of day 0; `None` before day 1 (0000-01-01) or past
    /// 9999-12-31.
    pub fn from_linear(micros: i64, fsp: u8) -> Option<DateTime> {
        let (day, rest) = (
            micros.div_euclid(MICROS_PER_DAY),
            micros.rem_euclid(MICROS_PER_DAY),
        );
        if !(1..=i64::from(MAX_DAYNR)).contains(&day) {
            return None;
        }
        Some(DateTime::at(date_of_day_number(day as u32), rest, fsp))
    }

    /// A date with microseconds of the day.
    pub fn at(date: Date, micros_of_day: i64, fsp: u8) -> DateTime {
        let (h, m, s, us) = Time::from_micros(micros_of_day, fsp).parts();
        DateTime::new(date, h, m, s, us, fsp)
    }

    /// The same value shown with `fsp` digits: rounded half up to the microsecond by the
    /// nanoseconds that follow it, then to `fsp`. `None` where that leaves the years 0 to 9999, or
    /// carries out of the second of a date with a zero part.
    pub fn round(self, nanos: u32, fsp: u8) -> Option<DateTime> {
        let fsp = fsp.min(6);
        let unit = 10u32.pow(6 - u32::from(fsp));
        let micros = self.micros() + u32::from(nanos >= 500);
        let micros = (micros + unit / 2) / unit * unit;
        let second = DateTime {
            packed: self.packed - u64::from(self.micros()),
            fsp,
        };
        if micros < 1_000_000 {
            return Some(DateTime {
                packed: second.packed + u64::from(micros),
                fsp,
            });
        }
        if self.date().month() == 0 || self.date().day() == 0 {
            return None;
        }
        DateTime::from_linear(second.to_linear() + i64::from(micros), fsp)
    }

    /// The same value with the digits beyond `fsp` cut off.
    #[must_use]
    pub fn truncate(self, fsp: u8) -> DateTime {
        let unit = 10u64.pow(6 - u32::from(fsp.min(6)));
        DateTime {
            packed: self.packed - u64::from(self.micros()) % unit,
            fsp,
        }
    }

    /// self ± an interval, as DATE_ADD computes it; `None` where the result is no date ("datetime
    /// field overflow").
    pub fn add_interval(self, unit: IntervalUnit, interval: &Interval) -> Option<DateTime> {
        use IntervalUnit::*;
        if self.date().month() == 0 || self.date().day() == 0 {
            return None;
        }
        match unit {
            Year | Quarter | Month | YearMonth => {
                let date = if unit == Year {
                    self.add_years(interval)?
                } else {
                    self.date().add_months(interval.months()?)?
                };
                Some(DateTime::at(date, self.time().micros(), self.fsp))
            }
            Day | Week => {
                let days = i64::try_from(interval.parts[DAY]).ok()?;
                let date = self
                    .date()
                    .add_days(if interval.negative { -days } else { days })?;
                Some(DateTime::at(date, self.time().micros(), self.fsp))
            }
            _ => {
                let fsp = if unit.has_micros() || interval.parts[MICRO] != 0 {
                    6
                } else {
                    self.fsp
                };
                DateTime::from_linear(self.to_linear().checked_add(interval.day_micros()?)?, fsp)
            }
        }
    }

    fn add_years(self, interval: &Interval) -> Option<Date> {
        let years = i64::try_from(interval.parts[YEAR]).ok()?;
        let year = i64::from(self.date().year()) + if interval.negative { -years } else { years };
        if !(0..10_000).contains(&year) {
            return None;
        }
        let (year, date) = (year as u32, self.date());
        let leap_day = date.month() == 2 && date.day() == 29;
        let day = if leap_day {
            days_in_month(year, 2)
        } else {
            date.day()
        };
        Some(Date::new(year, date.month(), day))
    }

    /// Whole months from `self` to `other` (negative backwards): TIMESTAMPDIFF(MONTH, self, other).
    pub fn months_until(self, other: DateTime) -> i64 {
        let negative = other < self;
        let (a, b) = if negative {
            (other, self)
        } else {
            (self, other)
        };
        let index = |v: DateTime| i64::from(v.date().year()) * 12 + i64::from(v.date().month());
        let rest = |v: DateTime| (v.date().day(), v.time().micros());
        let months = index(b) - index(a) - i64::from(rest(b) < rest(a));
        if negative { -months } else { months }
    }

    /// Microseconds from `self` to `other`.
    pub fn micros_until(self, other: DateTime) -> i64 {
        other.to_linear() - self.to_linear()
    }

    /// TIMESTAMPDIFF(unit, self, other); mixed units give `None`.
    pub fn difference(self, unit: IntervalUnit, other: DateTime) -> Option<i64> {
        use IntervalUnit::*;
        let micros = self.micros_until(other);
        Some(match unit {
            Year => self.months_until(other) / 12,
            Quarter => self.months_until(other) / 3,
            Month => self.months_until(other),
            Week => micros / (7 * MICROS_PER_DAY),
            Day => micros / MICROS_PER_DAY,
            Hour => micros / (3600 * MICROS_PER_SECOND),
            Minute => micros / (60 * MICROS_PER_SECOND),
            Second => micros / MICROS_PER_SECOND,
            Microsecond => micros,
            _ => return None,
        })
    }
}

/// `micros` rounded half away from zero, to the microsecond by the `nanos` that follow, then to
/// `fsp` digits.
fn round_micros(micros: i64, nanos: u32, fsp: u8) -> i64 {
    let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
    let abs = (micros.abs() + i64::from(nanos >= 500) + unit / 2) / unit * unit;
    if micros < 0 { -abs } else { abs }
}

impl Time {
    /// The same value with `fsp` digits, rounded half away from zero with the nanoseconds that
    /// follow it. The flag tells that it left the range of TIME and was clamped.
    pub fn round(self, nanos: u32, fsp: u8) -> (Time, bool) {
        let micros = round_micros(self.micros, nanos, fsp);
        (
            Time::from_micros(micros, fsp),
            micros.abs() > TIME_MAX_MICROS,
        )
    }

    /// The same value with the digits beyond `fsp` cut off.
    #[must_use]
    pub fn truncate(self, fsp: u8) -> Time {
        let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
        Time {
            micros: self.micros - self.micros % unit,
            fsp,
        }
    }

    /// self ± an interval without months; `None` outside the range of TIME.
    pub fn add_interval(self, unit: IntervalUnit, interval: &Interval) -> Option<Time> {
        if matches!(
            unit,
            IntervalUnit::Year
                | IntervalUnit::Quarter
                | IntervalUnit::Month
                | IntervalUnit::YearMonth
        ) {
            return None;
        }
        let fsp = if unit.has_micros() || interval.parts[MICRO] != 0 {
            6
        } else {
            self.fsp
        };
        let micros = self.micros.checked_add(interval.day_micros()?)?;
        (micros.unsigned_abs() <= TIME_MAX_MICROS as u64).then(|| Time::from_micros(micros, fsp))
    }
}

impl Timestamp {
    /// The same instant with `fsp` digits, rounded half up.
    #[must_use]
    pub fn round(self, fsp: u8) -> Timestamp {
        if self.is_zero() {
            return Timestamp { fsp, ..self };
        }
        let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
        Timestamp {
            micros: self.micros.saturating_add(unit / 2).div_euclid(unit) * unit,
            fsp,
        }
    }
}
