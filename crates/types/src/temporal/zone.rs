//! Time zones: a session's `time_zone`, and the way between local date-times and instants.

use super::calendar::{EPOCH_DAYNR, day_number};
use super::{DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, Timestamp};
use jiff::tz::{self, AmbiguousOffset, Offset};
use std::fmt::{self, Display, Formatter};

/// A session's time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeZone {
    /// A displacement from UTC in seconds, as '+05:30'.
    Fixed(i32),
    /// The machine's zone, `SYSTEM`.
    System(tz::TimeZone),
    /// A zone of the tz database, as 'Europe/Helsinki'.
    Named(Box<str>, tz::TimeZone),
}

impl TimeZone {
    /// '+00:00'
    pub const UTC: TimeZone = TimeZone::Fixed(0);

    /// The machine's zone.
    pub fn system() -> TimeZone {
        TimeZone::System(tz::TimeZone::system())
    }

    /// Reads the value of `SET time_zone`: 'SYSTEM', '[+-]h:mm' from -13:59 to +14:00, or a zone's
    /// name. `None` is error 1298.
    pub fn parse(text: &str) -> Option<TimeZone> {
        if text.eq_ignore_ascii_case("SYSTEM") {
            return Some(TimeZone::system());
        }
        if let Some(rest) = text.strip_prefix(['+', '-']) {
            let (hours, minutes) = rest.split_once(':')?;
            let digits = |s: &str, max: usize| {
                (!s.is_empty() && s.len() <= max && s.bytes().all(|b| b.is_ascii_digit()))
                    .then(|| s.parse::<i32>().ok())
                    .flatten()
            };
            let (h, m) = (digits(hours, 2)?, digits(minutes, 2)?);
            let seconds = (h * 3600 + m * 60) * if text.starts_with('-') { -1 } else { 1 };
            let valid =
                minutes.len() == 2 && m < 60 && (-14 * 3600 < seconds && seconds <= 14 * 3600);
            return valid.then_some(TimeZone::Fixed(seconds));
        }
        let zone = tz::TimeZone::get(text).ok()?;
        let name = zone.iana_name().unwrap_or(text).into();
        Some(TimeZone::Named(name, zone))
    }

    /// The local date-time of an instant; the zero timestamp is the zero date-time. `None` outside
    /// the years 0 to 9999.
    pub fn to_local(&self, at: Timestamp) -> Option<DateTime> {
        if at.is_zero() {
            return Some(DateTime {
                fsp: at.fsp,
                ..DateTime::ZERO
            });
        }
        let offset = match self {
            TimeZone::Fixed(seconds) => i64::from(*seconds),
            TimeZone::System(zone) | TimeZone::Named(_, zone) => {
                let instant = jiff::Timestamp::from_second(at.seconds()).ok()?;
                i64::from(zone.to_offset(instant).seconds())
            }
        };
        let linear = at
            .micros()
            .checked_add(offset * MICROS_PER_SECOND + i64::from(EPOCH_DAYNR) * MICROS_PER_DAY)?;
        DateTime::from_linear(linear, at.fsp)
    }

    /// The instant of a local date-time, and whether that local time exists (it does not while
    /// clocks are put forward; then the instant is that of the change, with the fraction kept). Of
    /// two instants the earlier one is taken. `None` for a date with a zero part.
    pub fn to_instant(&self, local: DateTime) -> Option<(Timestamp, bool)> {
        if local.date().month() == 0 || local.date().day() == 0 {
            return None;
        }
        let naive = i64::from(day_number(local.date())) - i64::from(EPOCH_DAYNR);
        let naive = naive * MICROS_PER_DAY + local.time().micros();
        let at =
            |seconds: i64| Timestamp::from_micros(naive - seconds * MICROS_PER_SECOND, local.fsp);
        let zone = match self {
            TimeZone::Fixed(seconds) => return Some((at(i64::from(*seconds)), true)),
            TimeZone::System(zone) | TimeZone::Named(_, zone) => zone,
        };
        let civil = jiff::civil::DateTime::new(
            local.date().year() as i16,
            local.date().month() as i8,
            local.date().day() as i8,
            local.hour() as i8,
            local.minute() as i8,
            local.second() as i8,
            0,
        )
        .ok()?;
        let seconds = |o: Offset| i64::from(o.seconds());
        match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => Some((at(seconds(offset)), true)),
            AmbiguousOffset::Fold { before, .. } => Some((at(seconds(before)), true)),
            AmbiguousOffset::Gap { before, after } => {
                // The change lies between the two readings of the local time.
                let early = jiff::Timestamp::from_second(at(seconds(after)).seconds()).ok()?;
                let change = zone.following(early).next()?.timestamp();
                debug_assert!(
                    change.as_second() <= at(seconds(before)).seconds(),
                    "the change is between"
                );
                Some((
                    Timestamp::from_micros(
                        change.as_second() * MICROS_PER_SECOND + i64::from(local.micros()),
                        local.fsp,
                    ),
                    false,
                ))
            }
        }
    }
}

impl Display for TimeZone {
    /// As `@@time_zone` shows it.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TimeZone::Fixed(seconds) => {
                let (sign, s) = if *seconds < 0 {
                    ('-', -seconds)
                } else {
                    ('+', *seconds)
                };
                write!(f, "{sign}{:02}:{:02}", s / 3600, s / 60 % 60)
            }
            TimeZone::System(_) => f.write_str("SYSTEM"),
            TimeZone::Named(name, _) => f.write_str(name),
        }
    }
}
