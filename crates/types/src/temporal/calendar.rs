//! Day numbers, weekdays and weeks of the proleptic Gregorian calendar, as MySQL counts them.

use super::Date;

/// The day number of 1970-01-01.
pub const EPOCH_DAYNR: u32 = 719_528;
/// The day number of 9999-12-31.
pub const MAX_DAYNR: u32 = 3_652_424;

/// Whether February has 29 days; in year 0 it has not.
pub const fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || (year.is_multiple_of(400) && year != 0))
}

/// Days of a month, 0 for a month that is none.
pub const fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + is_leap(year) as u32,
        _ => 0,
    }
}

/// Whether year, month and day name a real day (no zero part).
pub const fn is_valid_date(date: Date) -> bool {
    date.year() <= 9999 && date.day() >= 1 && date.day() <= days_in_month(date.year(), date.month())
}

/// MySQL's `TO_DAYS`: days since year 0. Zero months and days count as its `calc_daynr` does;
/// 0000-00-00 is 0.
pub const fn day_number(date: Date) -> u32 {
    let (y, m, d) = (date.year() as i64, date.month() as i64, date.day() as i64);
    if y == 0 && m == 0 {
        return 0;
    }
    let mut sum = 365 * y + 31 * (m - 1) + d;
    let mut y = y;
    if m <= 2 {
        y -= 1;
    } else {
        sum -= (m * 4 + 23) / 10;
    }
    // Rust's division truncates as C's does: y may be -1 here, which gives 0 - 0.
    let days = sum + y / 4 - ((y / 100 + 1) * 3) / 4;
    if days < 0 { 0 } else { days as u32 }
}

/// The date of a day number; 0000-00-00 for 0 and past 9999-12-31.
pub const fn date_of_day_number(daynr: u32) -> Date {
    if daynr == 0 || daynr > MAX_DAYNR {
        return Date::ZERO;
    }
    if daynr <= 365 {
        return date_in_year(0, daynr);
    }
    let mut year = daynr * 100 / 36_525;
    let before = ((year - 1) / 100 + 1) * 3 / 4;
    let mut day_of_year = (daynr + before) - year * 365 - (year - 1) / 4;
    while day_of_year > 365 + is_leap(year) as u32 {
        day_of_year -= 365 + is_leap(year) as u32;
        year += 1;
    }
    date_in_year(year, day_of_year)
}

/// The date of the day of a year, 1 to 366.
const fn date_in_year(year: u32, mut day: u32) -> Date {
    let mut month = 1;
    while month < 12 && day > days_in_month(year, month) {
        day -= days_in_month(year, month);
        month += 1;
    }
    Date::new(year, month, day)
}

/// 0 Monday to 6 Sunday, of a day number.
pub const fn weekday(daynr: u32) -> u32 {
    (daynr + 5) % 7
}

/// The day of the year, 1 to 366.
pub const fn day_of_year(date: Date) -> u32 {
    day_number(date) + 1 - day_number(Date::new(date.year(), 1, 1))
}

/// The bits of WEEK()'s mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeekMode {
    /// Weeks start on Monday, otherwise on Sunday.
    pub monday_first: bool,
    /// Days before the first week belong to the last week of the year before, otherwise to week 0.
    pub week_year: bool,
    /// The first week is the one that holds the year's first such weekday, otherwise the one with
    /// four days or more.
    pub first_weekday: bool,
}

impl WeekMode {
    /// Mode 0 to 7 of WEEK(); higher bits are ignored.
    pub const fn new(mode: u32) -> WeekMode {
        let monday_first = mode & 1 != 0;
        // Where weeks start on Sunday the third bit has the opposite meaning.
        let first_weekday = (mode & 4 != 0) == monday_first;
        WeekMode {
            monday_first,
            week_year: mode & 2 != 0,
            first_weekday,
        }
    }
}

/// (year, week): week 0 to 53, the year being the one that the week belongs to. As in MySQL, the
/// days of a date without a month are counted in 32 bits: its week may be a number near 2^32 / 7.
pub fn week(date: Date, mode: WeekMode) -> (u32, u32) {
    let daynr = day_number(date);
    let mut year = date.year();
    let mut first_daynr = day_number(Date::new(year, 1, 1));
    let start = |daynr: u32| {
        if mode.monday_first {
            weekday(daynr)
        } else {
            (daynr + 6) % 7
        }
    };
    let mut first = start(first_daynr);
    let mut week_year = mode.week_year;
    let late =
        |first: u32| (mode.first_weekday && first != 0) || (!mode.first_weekday && first >= 4);
    if date.month() == 1 && date.day() <= 7 - first {
        if !week_year && late(first) {
            return (year, 0);
        }
        week_year = true;
        year = year.saturating_sub(1);
        let days = 365 + is_leap(year) as u32;
        first_daynr = first_daynr.saturating_sub(days);
        first = (first + 53 * 7 - days) % 7;
    }
    let days = if late(first) {
        daynr.wrapping_sub(first_daynr + (7 - first))
    } else {
        daynr.wrapping_sub(first_daynr.wrapping_sub(first))
    };
    if week_year && days >= 52 * 7 {
        let first = (first + 365 + is_leap(year) as u32) % 7;
        if !late(first) {
            return (year + 1, 1);
        }
    }
    (year, days / 7 + 1)
}
