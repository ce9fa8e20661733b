//! DATE, TIME, DATETIME and TIMESTAMP values, zero dates included.
//!
//! # Picture
//! ```text
//! Date      u32: year 14 bits · month 4 · day 5                                       (23 bits)
//! DateTime  u64: year 14 · month 4 · day 5 · hour 5 · minute 6 · second 6 · microsecond 20  (60 bits)
//! Time      i64 microseconds, -838:59:59.000000 to 838:59:59.000000
//! Timestamp i64 microseconds since 1970-01-01 00:00:00 UTC; i64::MIN is '0000-00-00 00:00:00'
//! ```
//! Comparing the numbers compares the values. `fsp` is how many fractional digits to show and takes
//! no part in comparison.

pub mod arith;
pub mod calendar;
pub mod parse;
pub mod zone;

pub use arith::{Interval, IntervalUnit};
pub use parse::{DateFlags, TemporalError};
pub use zone::TimeZone;

use std::cmp::Ordering;
use std::fmt::{self, Debug, Display, Formatter};
use std::hash::{Hash, Hasher};

/// Microseconds of a second, and of a day.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds of a day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// The largest TIME, 838:59:59, in microseconds.
pub const TIME_MAX_MICROS: i64 = (838 * 3600 + 59 * 60 + 59) * MICROS_PER_SECOND;

/// A calendar date; year 0 to 9999, month and day may be zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Date(u32);

impl Date {
    /// 0000-00-00
    pub const ZERO: Date = Date(0);

    /// From parts, which are masked to their width; see [`calendar::is_valid_date`].
    #[inline]
    pub const fn new(year: u32, month: u32, day: u32) -> Date {
        Date((year & 0x3FFF) << 9 | (month & 15) << 5 | (day & 31))
    }

    /// From the packed form.
    #[inline]
    pub const fn from_packed(packed: u32) -> Date {
        Date(packed & 0x7F_FFFF)
    }

    /// The packed form, 23 bits.
    #[inline]
    pub const fn packed(self) -> u32 {
        self.0
    }

    /// 0 to 9999
    #[inline]
    pub const fn year(self) -> u32 {
        self.0 >> 9
    }

    /// 0 to 12
    #[inline]
    pub const fn month(self) -> u32 {
        self.0 >> 5 & 15
    }

    /// 0 to 31
    #[inline]
    pub const fn day(self) -> u32 {
        self.0 & 31
    }

    /// Midnight of this date.
    pub const fn at_midnight(self) -> DateTime {
        DateTime {
            packed: (self.0 as u64) << 37,
            fsp: 0,
        }
    }

    /// As a number: 20240131.
    pub const fn to_number(self) -> u64 {
        (self.year() * 10_000 + self.month() * 100 + self.day()) as u64
    }
}

/// A date with a time of day.
#[derive(Clone, Copy, Default)]
pub struct DateTime {
    packed: u64,
    /// Fractional digits shown, 0 to 6.
    pub fsp: u8,
}

impl DateTime {
    /// The same value displayed with `fsp` fractional digits. The value itself stays unrounded.
    #[inline]
    #[must_use]
    pub const fn with_fsp(mut self, fsp: u8) -> DateTime {
        self.fsp = fsp;
        self
    }

    /// 0000-00-00 00:00:00
    pub const ZERO: DateTime = DateTime { packed: 0, fsp: 0 };

    /// From parts, which are masked to their width.
    #[inline]
    pub const fn new(
        date: Date,
        hour: u32,
        minute: u32,
        second: u32,
        micros: u32,
        fsp: u8,
    ) -> DateTime {
        let time = ((hour & 31) as u64) << 32
            | ((minute & 63) as u64) << 26
            | ((second & 63) as u64) << 20
            | (micros & 0xF_FFFF) as u64;
        DateTime {
            packed: (date.0 as u64) << 37 | time,
            fsp,
        }
    }

    /// From the packed form.
    #[inline]
    pub const fn from_packed(packed: u64, fsp: u8) -> DateTime {
        DateTime {
            packed: packed & ((1 << 60) - 1),
            fsp,
        }
    }

    /// The packed form, 60 bits.
    #[inline]
    pub const fn packed(self) -> u64 {
        self.packed
    }

    /// The date.
    #[inline]
    pub const fn date(self) -> Date {
        Date((self.packed >> 37) as u32)
    }

    /// 0 to 23
    #[inline]
    pub const fn hour(self) -> u32 {
        (self.packed >> 32) as u32 & 31
    }

    /// 0 to 59
    #[inline]
    pub const fn minute(self) -> u32 {
        (self.packed >> 26) as u32 & 63
    }

    /// 0 to 59
    #[inline]
    pub const fn second(self) -> u32 {
        (self.packed >> 20) as u32 & 63
    }

    /// 0 to 999,999
    #[inline]
    pub const fn micros(self) -> u32 {
        self.packed as u32 & 0xF_FFFF
    }

    /// The time of day.
    pub const fn time(self) -> Time {
        let seconds = (self.hour() * 3600 + self.minute() * 60 + self.second()) as i64;
        Time {
            micros: seconds * MICROS_PER_SECOND + self.micros() as i64,
            fsp: self.fsp,
        }
    }

    /// As a number without its fraction: 20240131235959.
    pub const fn to_number(self) -> u64 {
        self.date().to_number() * 1_000_000
            + (self.hour() * 10_000 + self.minute() * 100 + self.second()) as u64
    }
}

/// A time of day or a duration.
#[derive(Clone, Copy, Default)]
pub struct Time {
    micros: i64,
    /// Fractional digits shown, 0 to 6.
    pub fsp: u8,
}

impl Time {
    /// The same value displayed with `fsp` fractional digits. The value itself stays unrounded.
    #[inline]
    #[must_use]
    pub const fn with_fsp(mut self, fsp: u8) -> Time {
        self.fsp = fsp;
        self
    }

    /// From microseconds, clamped to ±838:59:59.
    #[inline]
    pub const fn from_micros(micros: i64, fsp: u8) -> Time {
        let micros = if micros > TIME_MAX_MICROS {
            TIME_MAX_MICROS
        } else if micros < -TIME_MAX_MICROS {
            -TIME_MAX_MICROS
        } else {
            micros
        };
        Time { micros, fsp }
    }

    /// Signed microseconds.
    #[inline]
    pub const fn micros(self) -> i64 {
        self.micros
    }

    /// Whether it is below zero.
    pub const fn is_negative(self) -> bool {
        self.micros < 0
    }

    /// (hours, minutes, seconds, microseconds) of the absolute value.
    pub const fn parts(self) -> (u32, u32, u32, u32) {
        let us = self.micros.unsigned_abs();
        let s = (us / 1_000_000) as u32;
        (s / 3600, s / 60 % 60, s % 60, (us % 1_000_000) as u32)
    }

    /// As a signed number without its fraction: -8385959.
    pub const fn to_number(self) -> i64 {
        let (h, m, s, _) = self.parts();
        let n = (h * 10_000 + m * 100 + s) as i64;
        if self.micros < 0 { -n } else { n }
    }
}

/// An instant, as TIMESTAMP columns store it.
#[derive(Clone, Copy)]
pub struct Timestamp {
    micros: i64,
    /// Fractional digits shown, 0 to 6.
    pub fsp: u8,
}

impl Timestamp {
    /// The same value displayed with `fsp` fractional digits. The value itself stays unrounded.
    #[inline]
    #[must_use]
    pub const fn with_fsp(mut self, fsp: u8) -> Timestamp {
        self.fsp = fsp;
        self
    }

    /// '0000-00-00 00:00:00'
    pub const ZERO: Timestamp = Timestamp {
        micros: i64::MIN,
        fsp: 0,
    };
    /// The last second of a TIMESTAMP column, 2038-01-19 03:14:07 UTC.
    pub const MAX_SECONDS: i64 = i32::MAX as i64;

    /// From microseconds since the epoch.
    #[inline]
    pub const fn from_micros(micros: i64, fsp: u8) -> Timestamp {
        Timestamp { micros, fsp }
    }

    /// Microseconds since the epoch; `i64::MIN` for the zero timestamp.
    #[inline]
    pub const fn micros(self) -> i64 {
        self.micros
    }

    /// Whether it is '0000-00-00 00:00:00'.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.micros == i64::MIN
    }

    /// Whole seconds since the epoch, rounded down; 0 for the zero timestamp.
    pub const fn seconds(self) -> i64 {
        if self.is_zero() {
            0
        } else {
            self.micros.div_euclid(MICROS_PER_SECOND)
        }
    }
}

macro_rules! ordered_by {
    ($t:ty, $field:ident) => {
        impl PartialEq for $t {
            fn eq(&self, other: &Self) -> bool {
                self.$field == other.$field
            }
        }
        impl Eq for $t {}
        impl PartialOrd for $t {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $t {
            fn cmp(&self, other: &Self) -> Ordering {
                self.$field.cmp(&other.$field)
            }
        }
        impl Hash for $t {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.$field.hash(state);
            }
        }
    };
}

ordered_by!(DateTime, packed);
ordered_by!(Time, micros);
ordered_by!(Timestamp, micros);

fn digits2(out: &mut Vec<u8>, n: u32) {
    out.extend_from_slice(&[b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]);
}

fn fraction(out: &mut Vec<u8>, micros: u32, fsp: u8) {
    if fsp > 0 {
        out.push(b'.');
        let mut unit = 100_000;
        for _ in 0..fsp.min(6) {
            out.push(b'0' + (micros / unit % 10) as u8);
            unit /= 10;
        }
    }
}

impl Date {
    /// Appends `YYYY-MM-DD`.
    pub fn write_to(self, out: &mut Vec<u8>) {
        digits2(out, self.year() / 100);
        digits2(out, self.year());
        out.push(b'-');
        digits2(out, self.month());
        out.push(b'-');
        digits2(out, self.day());
    }
}

impl DateTime {
    /// Appends `YYYY-MM-DD hh:mm:ss[.fraction]`.
    pub fn write_to(self, out: &mut Vec<u8>) {
        self.date().write_to(out);
        out.push(b' ');
        digits2(out, self.hour());
        out.push(b':');
        digits2(out, self.minute());
        out.push(b':');
        digits2(out, self.second());
        fraction(out, self.micros(), self.fsp);
    }
}

impl Time {
    /// Appends `[-]hh:mm:ss[.fraction]`, with as many digits of hours as needed and at least two.
    pub fn write_to(self, out: &mut Vec<u8>) {
        let (h, m, s, us) = self.parts();
        if self.is_negative() {
            out.push(b'-');
        }
        if h > 99 {
            out.push(b'0' + (h / 100) as u8);
        }
        digits2(out, h);
        out.push(b':');
        digits2(out, m);
        out.push(b':');
        digits2(out, s);
        fraction(out, us, self.fsp);
    }
}

macro_rules! shown {
    ($($t:ty)*) => {$(
        impl Display for $t {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                let mut out = Vec::with_capacity(32);
                self.write_to(&mut out);
                f.write_str(std::str::from_utf8(&out).unwrap_or(""))
            }
        }
        impl Debug for $t {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                Display::fmt(self, f)
            }
        }
    )*};
}

shown!(Date DateTime Time);

impl Debug for Timestamp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            f.write_str("@zero")
        } else {
            write!(f, "@{}us", self.micros)
        }
    }
}

#[cfg(test)]
mod tests;
