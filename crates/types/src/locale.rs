//! MySQL's locales: names of months and days, and how FORMAT writes numbers.
//!
//! `locales.txt` was recorded from a real MySQL. A line has eight fields with tabs between them:
//! the locale's name, decimal point, separator of groups, sizes of the groups, and the names of
//! months, short months, days and short days, with `|` between the names. `\0` is a zero byte. The
//! line's number, counted from 0, is the locale's number in MySQL.

use std::sync::LazyLock;

static TEXT: &str = include_str!("locales.txt");

static LOCALES: LazyLock<Vec<Locale>> =
    LazyLock::new(|| TEXT.lines().filter_map(Locale::of_line).collect());

/// A locale.
#[derive(Debug, PartialEq, Eq)]
pub struct Locale {
    /// As in `lc_time_names`: `en_US`.
    pub name: &'static str,
    pub decimal_point: &'static str,
    /// Between groups of digits; empty: there are no groups.
    pub separator: &'static str,
    /// Digits of the groups before the decimal point, the last size for all further ones.
    pub groups: Vec<usize>,
    months: [&'static str; 12],
    short_months: [&'static str; 12],
    days: [&'static str; 7],
    short_days: [&'static str; 7],
}

fn names<const N: usize>(list: &'static str) -> Option<[&'static str; N]> {
    let names: Vec<&str> = list.split('|').collect();
    names.try_into().ok()
}

impl Locale {
    fn of_line(line: &'static str) -> Option<Locale> {
        let mut fields = line.split('\t');
        let mut field = || fields.next();
        Some(Locale {
            name: field()?,
            decimal_point: field()?,
            separator: match field()? {
                "\\0" => "\0",
                separator => separator,
            },
            groups: field()?.split(',').filter_map(|n| n.parse().ok()).collect(),
            months: names(field()?)?,
            short_months: names(field()?)?,
            days: names(field()?)?,
            short_days: names(field()?)?,
        })
    }

    /// `en_US`
    pub fn english() -> &'static Locale {
        &LOCALES[0]
    }

    /// The locale with this name, in any case.
    pub fn by_name(name: &str) -> Option<&'static Locale> {
        LOCALES.iter().find(|l| l.name.eq_ignore_ascii_case(name))
    }

    /// The locale with this number.
    pub fn by_number(number: usize) -> Option<&'static Locale> {
        LOCALES.get(number)
    }

    /// The names of all months.
    pub fn months(&self) -> &[&'static str] {
        &self.months
    }

    /// The names of all days, from Monday on.
    pub fn days(&self) -> &[&'static str] {
        &self.days
    }

    /// The name of a month, 1 to 12; `None` for other numbers.
    pub fn month(&self, month: u32, short: bool) -> Option<&'static str> {
        let names = if short {
            &self.short_months
        } else {
            &self.months
        };
        names.get((month as usize).wrapping_sub(1)).copied()
    }

    /// The name of a day of the week, 0 is Monday.
    pub fn day(&self, weekday: u32, short: bool) -> &'static str {
        let names = if short { &self.short_days } else { &self.days };
        names[weekday as usize % names.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_locale() {
        assert_eq!(LOCALES.len(), TEXT.lines().count());
        assert_eq!(Locale::english().name, "en_US");
        for (number, locale) in LOCALES.iter().enumerate() {
            let found = Locale::by_name(&locale.name.to_uppercase());
            assert_eq!(found.map(|l| l.name), Some(locale.name));
            let found = Locale::by_number(number);
            assert_eq!(found.map(|l| l.name), Some(locale.name));
        }
    }

    #[test]
    fn names_are_those_of_the_locale() {
        let german = Locale::by_name("de_DE").expect("a known locale");
        assert_eq!(german.month(3, false), Some("März"));
        assert_eq!(german.month(13, false), None);
        assert_eq!(german.month(0, true), None);
        assert_eq!(german.day(6, false), "Sonntag");
        assert_eq!(german.day(6, true), "So");
    }
}
