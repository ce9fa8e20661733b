//! Answers in the `.tsv` files were recorded from a MySQL 9.7.

use super::calendar::*;
use super::parse::*;
use super::*;
use proptest::prelude::*;

/// The lines of a recorded file, split at tabs.
fn recorded(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    file.lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split('\t').collect())
}

fn shown<T: ToString>(v: Option<T>) -> String {
    v.map_or("NULL".to_owned(), |v| v.to_string())
}

/// CAST(text AS DATETIME(fsp)): the value and whether a warning comes with it.
fn cast_datetime(text: &str, fsp: u8) -> (Option<DateTime>, bool) {
    let Ok(p) = parse_datetime(text.as_bytes(), DateFlags::default()) else {
        return (None, true);
    };
    match p
        .to_zone(&TimeZone::UTC)
        .and_then(|v| v.round(p.nanos, fsp))
    {
        Some(v) => (Some(v), p.truncated),
        None => (None, true),
    }
}

fn cast_time(text: &str, fsp: u8) -> (Option<Time>, bool) {
    match parse_time(text.as_bytes()) {
        Err(_) => (None, true),
        Ok(p) => {
            let Some(value) = p.to_zone(&TimeZone::UTC) else {
                return (None, true);
            };
            let (value, clamped) = value.round(p.nanos, fsp);
            (Some(value), p.truncated || p.clamped || clamped)
        }
    }
}

#[test]
fn texts_are_read_as_recorded() {
    let mut wrong = Vec::new();
    for line in recorded(include_str!("recorded.tsv")) {
        let [text, dt6, warned, dt0, date, t6, time_warned, t0] = line[..] else {
            panic!("eight columns in {line:?}")
        };
        let (value, w) = cast_datetime(text, 6);
        let got = [
            shown(value),
            u8::from(w).to_string(),
            shown(cast_datetime(text, 0).0),
            shown(value.map(DateTime::date)),
            shown(cast_time(text, 6).0),
            u8::from(cast_time(text, 6).1).to_string(),
            shown(cast_time(text, 0).0),
        ];
        let want = [dt6, warned, dt0, date, t6, time_warned, t0];
        if got != want {
            wrong.push(format!("{text:?}\n  got  {got:?}\n  want {want:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn numbers_are_read_as_recorded() {
    for line in recorded(include_str!("recorded_numbers.tsv")) {
        let n: i64 = line[0].parse().expect("a number");
        let dt = datetime_of_number(n, DateFlags::default()).ok();
        assert_eq!(shown(dt), line[1], "{n} as a datetime");
        // CAST(n AS DATE) of 9.7 passes zero parts and bad times of day (CAST(1 AS DATE) is
        // 2000-00-01); its columns, and 8.4, do not.
        if n != 0 && line[1] != "NULL" {
            assert_eq!(shown(dt.map(DateTime::date)), line[2], "{n} as a date");
        }
        // CAST gives NULL where a column would be given the clamped value.
        let time = time_of_number(n).ok().filter(|t| !t.1).map(|t| t.0);
        assert_eq!(shown(time), line[3], "{n} as a time");
    }
}

#[test]
fn weeks_are_as_recorded() {
    for line in recorded(include_str!("recorded_weeks.tsv")) {
        let p = parse_datetime(line[0].as_bytes(), DateFlags::default()).expect("a date");
        let date = p.value.date();
        let n = day_number(date);
        assert_eq!(n.to_string(), line[1], "{date}");
        assert_eq!(date_of_day_number(n).to_string(), line[2], "{date}");
        assert_eq!(weekday(n).to_string(), line[3], "{date}");
        assert_eq!(day_of_year(date).to_string(), line[4], "{date}");
        if date.year() == 0 {
            continue; // 9.7 counts the weeks before year 0 below zero.
        }
        for mode in 0..8 {
            let of = |m| week(date, m);
            assert_eq!(
                of(WeekMode::new(mode)).1.to_string(),
                line[5 + mode as usize],
                "WEEK({date}, {mode})"
            );
            // YEARWEEK always names the year that the week belongs to.
            let (year, w) = of(WeekMode {
                week_year: true,
                ..WeekMode::new(mode)
            });
            assert_eq!(
                (year * 100 + w).to_string(),
                line[13 + mode as usize],
                "YEARWEEK({date}, {mode})"
            );
        }
    }
}

#[test]
fn intervals_are_added_as_recorded() {
    let mut wrong = Vec::new();
    for line in recorded(include_str!("recorded_intervals.tsv")) {
        let [base, text, unit, want] = line[..] else {
            panic!("four columns in {line:?}")
        };
        let p = parse_datetime(base.as_bytes(), DateFlags::default()).expect("a date-time");
        let base = DateTime { fsp: 6, ..p.value };
        let unit = IntervalUnit::parse(unit).expect("a unit");
        let interval = match text.parse::<i64>() {
            Ok(n) if !unit.is_mixed() => Some(Interval::new(unit, n)),
            _ => Interval::parse(unit, text.as_bytes()),
        };
        let got = shown(interval.and_then(|i| base.add_interval(unit, &i)));
        if got != want {
            wrong.push(format!("{line:?} got {got}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn flags_refuse_zero_dates() {
    let strict = DateFlags {
        no_zero_in_date: true,
        no_zero_date: true,
        allow_invalid: false,
    };
    let of = |s: &str, f| parse_datetime(s.as_bytes(), f).map(|p| p.value.to_string());
    assert_eq!(of("0000-00-00", strict), Err(TemporalError::ZeroDate));
    assert_eq!(of("2020-00-01", strict), Err(TemporalError::ZeroInDate));
    assert_eq!(of("2020-02-30", strict), Err(TemporalError::OutOfRange));
    let invalid = DateFlags {
        allow_invalid: true,
        ..DateFlags::default()
    };
    assert_eq!(
        of("2020-02-30", invalid).as_deref(),
        Ok("2020-02-30 00:00:00")
    );
    assert_eq!(
        of("0000-00-00", DateFlags::default()).as_deref(),
        Ok("0000-00-00 00:00:00")
    );
    assert_eq!(datetime_of_number(0, strict), Err(TemporalError::ZeroDate));
}

#[test]
fn zones_are_read_and_shown() {
    for (text, shown) in [
        ("+05:30", "+05:30"),
        ("-3:00", "-03:00"),
        ("+14:00", "+14:00"),
        ("-13:59", "-13:59"),
        ("system", "SYSTEM"),
    ] {
        assert_eq!(
            TimeZone::parse(text).map(|z| z.to_string()).as_deref(),
            Some(shown)
        );
    }
    for bad in [
        "+14:01",
        "-14:00",
        "+5",
        "5:00",
        "+05:60",
        "+5:0",
        "Nowhere/City",
        "",
    ] {
        assert_eq!(TimeZone::parse(bad), None, "{bad}");
    }
}

fn at(text: &str) -> DateTime {
    parse_datetime(text.as_bytes(), DateFlags::default())
        .expect("a date-time")
        .value
}

#[test]
fn zones_convert() {
    let zone = TimeZone::parse("+05:30").expect("a zone");
    let (ts, exists) = zone
        .to_instant(at("1970-01-01 05:30:01.5"))
        .expect("an instant");
    assert_eq!((ts.micros(), exists), (1_500_000, true));
    assert_eq!(
        zone.to_local(ts).map(|v| v.to_string()).as_deref(),
        Some("1970-01-01 05:30:01.5")
    );
    assert_eq!(zone.to_local(Timestamp::ZERO), Some(DateTime::ZERO));
    assert_eq!(zone.to_instant(at("2020-00-01 00:00:00")), None);
    let zone = TimeZone::parse("Europe/Helsinki").expect("a zone");
    let utc = |s: &str| zone.to_instant(at(s)).map(|(t, ok)| (t.seconds(), ok));
    assert_eq!(utc("2021-01-01 02:00:00"), Some((1_609_459_200, true)));
    // 03:00 to 04:00 does not exist on 2021-03-28; the change is at 01:00 UTC.
    assert_eq!(utc("2021-03-28 03:30:00"), Some((1_616_893_200, false)));
    // 03:00 to 04:00 happens twice on 2021-10-31: the earlier one.
    assert_eq!(utc("2021-10-31 03:30:00"), Some((1_635_640_200, true)));
}

proptest! {
    #[test]
    fn day_numbers_invert(n in 1u32..=MAX_DAYNR) {
        let date = date_of_day_number(n);
        prop_assert!(is_valid_date(date));
        prop_assert_eq!(day_number(date), n);
        if n < 366 {
            return Ok(());
        }
        let naive = jiff::civil::date(1, 1, 1).checked_add(jiff::Span::new().days(i64::from(n) - 366)).expect("in range");
        prop_assert_eq!(date.to_string(), naive.to_string());
    }

    #[test]
    fn texts_round_trip(n in 365_250u32..=MAX_DAYNR, us in 0i64..MICROS_PER_DAY) {
        let v = DateTime::at(date_of_day_number(n), us, 6);
        prop_assert_eq!(at(&v.to_string()), v);
        prop_assert_eq!(DateTime::from_linear(v.to_linear(), 6), Some(v));
        let t = v.time();
        prop_assert_eq!(parse_time(t.to_string().as_bytes()).map(|p| p.value), Ok(t));
        prop_assert_eq!(datetime_of_number(v.to_number() as i64, DateFlags::default()), Ok(v.truncate(0)));
    }

    #[test]
    fn any_text_is_read_without_panic(s in "([0-9]{1,12}|[ :.T+-]|e){0,9}", unit in 0usize..4) {
        let _ = parse_datetime(s.as_bytes(), DateFlags::default());
        let _ = parse_time(s.as_bytes());
        let unit = [IntervalUnit::DayMicrosecond, IntervalUnit::YearMonth, IntervalUnit::Second, IntervalUnit::Week][unit];
        if let Some(i) = Interval::parse(unit, s.as_bytes()) {
            let _ = at("2020-02-29 01:02:03").add_interval(unit, &i);
        }
    }

    #[test]
    fn packed_order_is_time_order(a in 366u32..=MAX_DAYNR, b in 366u32..=MAX_DAYNR, x in 0i64..MICROS_PER_DAY, y in 0i64..MICROS_PER_DAY) {
        let (v, w) = (DateTime::at(date_of_day_number(a), x, 6), DateTime::at(date_of_day_number(b), y, 0));
        prop_assert_eq!(v.cmp(&w), (a, x).cmp(&(b, y)));
    }
}
