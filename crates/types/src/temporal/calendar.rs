//! Day numbers, weekdays and weeks of the proleptic Gregorian calendar, as MySQL counts them.

use super::Date;

/// The day number of 1970-01-01.
pub const EPOCH_DAYNR: u32 = 719_528;
/// The day number of 9999-12-31.
pub const MAX_DAYNR: u32 = 3_652_424;

/// Whether February has 29 days; year 0 counts as MySQL counts it.
pub const fn is_leap(year: u32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || (year % 400 == 0 && year != 0))
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

/// MySQL's `TO_DAYS`: days since year 0. Zero months and days count as its `calc_daynr` does; 0000-00-00 is 0.
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

/// The date of a day number; 0000-00-00 for what lies before 0001-01-01 (day 366) or past 9999-12-31.
pub const fn date_of_day_number(daynr: u32) -> Date {
    if daynr < 366 || daynr > MAX_DAYNR {
        return Date::ZERO;
    }
    let mut year = daynr * 100 / 36525;
    let mut leap_day = 0;
    let temp = ((year - 1) / 100 + 1) * 3 / 4;
    let mut day_of_year = daynr as i64 - year as i64 * 365 - ((year as i64 - 1) / 4) + temp as i64;
    loop {
        let days = 365 + is_leap(year) as i64;
        if day_of_year <= days {
            if days == 366 && day_of_year > 31 + 28 {
                day_of_year -= 1;
                if day_of_year == 31 + 28 {
                    leap_day = 1;
                }
            }
            break;
        }
        day_of_year -= days;
        year += 1;
    }
    let mut month = 1;
    loop {
        let days = days_in_month(1, month) as i64;
        if day_of_year <= days {
            break;
        }
        day_of_year -= days;
        month += 1;
    }
    Date::new(year, month, day_of_year as u32 + leap_day)
}
