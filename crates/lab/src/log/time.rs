//! The times in logs: `2024-03-01T12:34:56.123456Z` (or with `+02:00`) since MySQL 5.7; `240301
//! 12:34:56` (local time) before that, and in MariaDB.

use jiff::tz::TimeZone;

/// A parsed time: microseconds since 1970, interpreted as UTC if the log contains no offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    us: i64,
    local: bool,
}

impl Stamp {
    /// Microseconds since 1970 in UTC. A local time is interpreted in `zone`.
    pub fn in_utc(self, zone: &TimeZone) -> i64 {
        if !self.local {
            return self.us;
        }
        let offset_at = |us| {
            jiff::Timestamp::from_microsecond(us)
                .map_or(0, |at| i64::from(zone.to_offset(at).seconds()) * 1_000_000)
        };
        // Uses the offset of a moment that is at most a few hours away. Wrong by the clock change
        // around the hour in which clocks change.
        let nearby = self.us - offset_at(self.us);
        self.us - offset_at(nearby)
    }

    /// Whether the log itself contains the time zone.
    pub fn is_utc(self) -> bool {
        !self.local
    }
}

/// Reads decimal digits from the front of a text.
struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    /// Reads exactly `n` digits.
    #[inline]
    fn number(&mut self, n: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(n)?;
        let mut value = 0;
        for &digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            value = value * 10 + i64::from(digit - b'0');
        }
        self.0 = rest;
        Some(value)
    }

    #[inline]
    fn byte(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    /// Reads `.123456` with any number of digits, in microseconds. Returns 0 if there is no
    /// fraction.
    #[inline]
    fn fraction(&mut self) -> Option<i64> {
        if self.byte(b'.').is_none() {
            return Some(0);
        }
        let len = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if len == 0 {
            return None;
        }
        let mut us = 0;
        for at in 0..6 {
            us = us * 10
                + if at < len {
                    i64::from(self.0[at] - b'0')
                } else {
                    0
                };
        }
        self.0 = &self.0[len..];
        Some(us)
    }
}

/// Parses the time at the front of `text`. Also returns the rest.
#[inline]
pub fn read(text: &[u8]) -> Option<(Stamp, &[u8])> {
    let old = text.get(6) == Some(&b' ');
    if old { read_old(text) } else { read_iso(text) }
}

fn read_iso(text: &[u8]) -> Option<(Stamp, &[u8])> {
    let mut at = Digits(text);
    let year = at.number(4)?;
    at.byte(b'-')?;
    let month = at.number(2)?;
    at.byte(b'-')?;
    let day = at.number(2)?;
    at.byte(b'T').or_else(|| at.byte(b' '))?;
    let (hour, minute, second) = clock(&mut at, false)?;
    let us = at.fraction()?;
    let mut total = seconds(year, month, day, hour, minute, second)? * 1_000_000 + us;
    let mut local = false;
    match at.0.first() {
        Some(b'Z') => at.byte(b'Z')?,
        Some(&sign @ (b'+' | b'-')) => {
            at.byte(sign)?;
            let hours = at.number(2)?;
            at.byte(b':')?;
            let offset = (hours * 60 + at.number(2)?) * 60_000_000;
            total -= if sign == b'+' { offset } else { -offset };
        }
        _ => local = true,
    }
    Some((Stamp { us: total, local }, at.0))
}

/// Parses `240301  9:34:56`. Percona Server adds a fraction.
fn read_old(text: &[u8]) -> Option<(Stamp, &[u8])> {
    let mut at = Digits(text);
    let (year, month, day) = (at.number(2)?, at.number(2)?, at.number(2)?);
    at.byte(b' ')?;
    let (hour, minute, second) = clock(&mut at, true)?;
    let us = at.fraction()?;
    let year = if year < 70 { 2000 + year } else { 1900 + year };
    let total = seconds(year, month, day, hour, minute, second)? * 1_000_000 + us;
    Some((
        Stamp {
            us: total,
            local: true,
        },
        at.0,
    ))
}

#[inline]
fn clock(at: &mut Digits<'_>, blank: bool) -> Option<(i64, i64, i64)> {
    let hour = if blank && at.byte(b' ').is_some() {
        at.number(1)?
    } else {
        at.number(2)?
    };
    at.byte(b':')?;
    let minute = at.number(2)?;
    at.byte(b':')?;
    Some((hour, minute, at.number(2)?))
}

/// Seconds since 1970. `None` if the date is invalid.
#[inline]
fn seconds(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> Option<i64> {
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    // "Days from civil" (Howard Hinnant, chrono-Compatible Low-Level Date Algorithms).
    let y = year - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let yoe = y - era * 400;
    let doy = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    let days = era * 146_097 + doe - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Converts `12.345678` seconds to microseconds. `None` if it is not such a number or exceeds ten
/// years, which servers write when their clock was set back.
#[inline]
pub fn duration_us(text: &[u8]) -> Option<u64> {
    let dot = memchr::memchr(b'.', text).unwrap_or(text.len());
    if dot == 0 || dot > 9 {
        return None;
    }
    let whole = Digits(text).number(dot)?;
    let mut fraction = Digits(&text[dot..]);
    let us = fraction.fraction()?;
    if !fraction.0.is_empty() || whole > 10 * 366 * 86_400 {
        return None;
    }
    u64::try_from(whole * 1_000_000 + us).ok()
}

/// Formats a time as `2024-03-01T12:34:56.123456Z`.
pub fn show(us: i64) -> String {
    jiff::Timestamp::from_microsecond(us).map_or_else(|_| us.to_string(), |at| format!("{at:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> Option<String> {
        read(text.as_bytes()).map(|(stamp, rest)| {
            format!(
                "{}|{}",
                show(stamp.in_utc(&TimeZone::UTC)),
                String::from_utf8_lossy(rest)
            )
        })
    }

    #[test]
    fn times_of_all_servers_are_parsed() {
        for (text, expected) in [
            (
                "2024-03-01T12:34:56.123456Z",
                "2024-03-01T12:34:56.123456Z|",
            ),
            (
                "2024-03-01T12:34:56.123456Z\t  8 Query",
                "2024-03-01T12:34:56.123456Z|\t  8 Query",
            ),
            (
                "2024-03-01T12:34:56.5+02:00",
                "2024-03-01T10:34:56.500000Z|",
            ),
            ("2024-02-29T23:34:56-05:30", "2024-03-01T05:04:56.000000Z|"),
            ("2024-03-01 12:34:56", "2024-03-01T12:34:56.000000Z|"),
            ("240301 12:34:56", "2024-03-01T12:34:56.000000Z|"),
            ("071015  9:43:52.25 x", "2007-10-15T09:43:52.250000Z| x"),
            ("990101 00:00:00", "1999-01-01T00:00:00.000000Z|"),
        ] {
            assert_eq!(utc(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "2024",
            "2024-13-01T00:00:00Z",
            "240301 25:00:00",
            "240301 1:00:00",
            "24030a 12:34:56",
            "not a header",
        ] {
            assert_eq!(utc(text), None, "{text}");
        }
    }

    #[test]
    fn local_times_are_interpreted_in_the_zone() {
        let zone = TimeZone::get("Europe/Berlin").expect("bundled");
        for (text, expected) in [
            ("240301 12:00:00", "11:00:00"),
            ("240701 12:00:00", "10:00:00"),
        ] {
            let (stamp, _) = read(text.as_bytes()).expect("a time");
            assert!(show(stamp.in_utc(&zone)).contains(expected));
        }
    }

    #[test]
    fn durations_are_parsed_to_microseconds() {
        for (text, expected) in [
            ("0.000123", Some(123)),
            ("3", Some(3_000_000)),
            ("12.5", Some(12_500_000)),
            ("0.0000129", Some(12)),
            ("18446744073709.550781", None),
            ("-1", None),
            ("1e5", None),
            ("", None),
            (".5", None),
            ("1.", None),
            ("999999999", None),
        ] {
            assert_eq!(duration_us(text.as_bytes()), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn formatted_times_parse_back(us in -2_000_000_000_000_000i64..4_000_000_000_000_000) {
            let text = show(us);
            let (stamp, rest) = read(text.as_bytes()).expect("a time");
            proptest::prop_assert_eq!((stamp.in_utc(&TimeZone::UTC), rest.len()), (us, 0));
        }
    }
}
