//! Dates and times as formatted text, and back: DATE_FORMAT, TIME_FORMAT, STR_TO_DATE,
//! FROM_UNIXTIME, and the names of days and months.

use nfold_plan::SqlMode;
use nfold_plan::expr::{Class, Expr, ExprKind, ExprType};
use nfold_plan::func::{Infer, any_nullable};
use nfold_types::temporal::calendar::{
    WeekMode, date_of_day_number, day_number, days_in_month, week, weekday,
};
use nfold_types::temporal::{MICROS_PER_SECOND, parse};
use nfold_types::{
    Charset, ColumnType, Date, DateTime, ErrorCode, Locale, Time, Timestamp, TypeKind, Value,
};

use super::builtin::{Evaluated, Func, Inferred, PIECE_BYTES, arg, func};
use super::date_times::{calendar_date, date_of, datetime_of, time_point};
use super::dates::{seconds_fsp, whole_seconds};
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("dayname", (1, 1), infer_day_or_month, |cx, a, _| {
        let d = arg!(calendar_date(cx, &a[0]));
        let name = (cx.env().time_names()).day(weekday(day_number(d)), false);
        Ok(Val::string(name.as_bytes().to_vec()))
    }),
    func("monthname", (1, 1), infer_day_or_month, |cx, a, _| {
        let d = arg!(date_of(cx, &a[0])).date();
        Ok(match cx.env().time_names().month(d.month(), false) {
            Some(name) => Val::string(name.as_bytes().to_vec()),
            None => Val::Null,
        })
    }),
    func("date_format", (2, 2), infer_format, eval_date_format),
    func("time_format", (2, 2), infer_format, eval_time_format),
    func(
        "from_unixtime",
        (1, 2),
        infer_from_unixtime,
        eval_from_unixtime,
    ),
    func("str_to_date", (2, 2), infer_str_to_date, eval_str_to_date),
    func("get_format", (2, 2), infer_name, eval_get_format),
];

fn infer_name(cx: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(cx.connection_string(17))
}

fn infer_day_or_month(cx: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(cx.connection_string(9))
}

fn infer_format(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(cx.connection_string(match &args[1].kind {
        ExprKind::Const(Value::Bytes(format)) => filled_length(&String::from_utf8_lossy(format)),
        _ => args[1].ty.char_length().saturating_mul(10),
    }))
}

/// The maximum length of a format's result in characters, as MySQL counts it.
fn filled_length(format: &str) -> u64 {
    let mut length = 0;
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        length += match (c, chars.clone().next()) {
            ('%', Some(spec)) => {
                chars.next();
                match spec {
                    'M' | 'W' => 64,
                    'a' | 'b' => 32,
                    'r' => 11,
                    'T' => 8,
                    'k' | 'H' => 7,
                    'f' => 6,
                    'D' | 'Y' | 'x' | 'X' => 4,
                    'j' => 3,
                    'u' | 'U' | 'v' | 'V' | 'y' | 'm' | 'd' | 'h' | 'i' | 'I' | 'l' | 'p' | 'S'
                    | 's' | 'c' | 'e' => 2,
                    _ => 1,
                }
            }
            _ => 1,
        };
    }
    length
}

/// The work of one format field, and the number of format characters between two checkpoints.
const FIELD_WORK: u64 = 20;
const FIELDS: usize = 1024;
/// The maximum length of a string that is passed to a warning, in bytes; the warning shows fewer.
const SHOWN_BYTES: usize = 64 << 10;

/// The suffix of an ordinal number.
fn ordinal(n: u32) -> &'static str {
    match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// The day of its year of any date: 0 or less for a date without a month.
fn day_in_year(date: Date) -> i64 {
    i64::from(day_number(date)) - i64::from(day_number(Date::new(date.year(), 1, 1))) + 1
}

/// Appends `date` and `time` in a format, with names of days and months of a locale. The hours may
/// exceed a day. `None`: the format has a field that the date does not have, or `date` is `None`
/// and the format has a field of dates.
fn fill(
    format: &str,
    (date, time): (Option<Date>, (u32, u32, u32, u32)),
    names: &Locale,
    out: &mut String,
) -> Option<()> {
    use std::fmt::Write;
    let (hour, minute, second, micros) = time;
    let full = date;
    let date = full.unwrap_or(Date::ZERO);
    let number = || day_number(date);
    let has_day = date.month() > 0 || date.year() > 0;
    let day = || has_day.then(|| weekday(number()));
    let day_name = |short| Some(names.day(day()?, short));
    let month_name = |short| names.month(date.month(), short);
    let half = hour % 24;
    let twelve = (half + 11) % 12 + 1;
    let noon = if half < 12 { "AM" } else { "PM" };
    let week_of = |mode: u32| Some(week(full?, WeekMode::new(mode)));
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let Some(spec) = chars.next() else {
            out.push('%');
            break;
        };
        let written = match spec {
            'M' => write!(out, "{}", month_name(false)?),
            'b' => write!(out, "{}", month_name(true)?),
            'W' => write!(out, "{}", day_name(false)?),
            'a' => write!(out, "{}", day_name(true)?),
            'D' => write!(out, "{}{}", full?.day(), ordinal(date.day())),
            'Y' => write!(out, "{:04}", date.year()),
            'y' => write!(out, "{:02}", date.year() % 100),
            'm' => write!(out, "{:02}", date.month()),
            'c' => write!(out, "{}", date.month()),
            'd' => write!(out, "{:02}", date.day()),
            'e' => write!(out, "{}", date.day()),
            'f' => write!(out, "{micros:06}"),
            'H' => write!(out, "{hour:02}"),
            'h' | 'I' => write!(out, "{twelve:02}"),
            'i' => write!(out, "{minute:02}"),
            // The zeros stand before the sign of a negative number.
            'j' => write!(out, "{:0>3}", day_in_year(full?).to_string()),
            'k' => write!(out, "{hour}"),
            'l' => write!(out, "{twelve}"),
            'p' => write!(out, "{noon}"),
            'r' => write!(out, "{twelve:02}:{minute:02}:{second:02} {noon}"),
            'S' | 's' => write!(out, "{second:02}"),
            'T' => write!(out, "{hour:02}:{minute:02}:{second:02}"),
            'U' => write!(out, "{:02}", week_of(0)?.1),
            'u' => write!(out, "{:02}", week_of(1)?.1),
            'V' => write!(out, "{:02}", week_of(2)?.1),
            'v' => write!(out, "{:02}", week_of(3)?.1),
            'X' => write!(out, "{:04}", week_of(2)?.0),
            'x' => write!(out, "{:04}", week_of(3)?.0),
            'w' => write!(out, "{}", (day()? + 1) % 7),
            other => write!(out, "{other}"),
        };
        written.ok()?;
    }
    Some(())
}

/// Where a piece of a long format may end: between two characters, and not after the `%` of a
/// field.
fn format_piece_end(set: &Charset, format: &[u8]) -> usize {
    let end = set.piece_end(format, PIECE_BYTES);
    if end == format.len() {
        return end;
    }
    let percents = format[..end]
        .iter()
        .rev()
        .take_while(|&&b| b == b'%')
        .count();
    match end - percents % 2 {
        0 => format.len(),
        end => end,
    }
}

/// Formats a date and time, piece by piece for a long format.
fn formatted<'a>(
    cx: &EvalCx<'a>,
    (format, ty): (&'a Expr, &'a ExprType),
    date: Option<Date>,
    time: (u32, u32, u32, u32),
    negative: bool,
) -> Evaluated<'a> {
    let Some(text) = cx.text(format, ty.collation())?.filter(|t| !t.is_empty()) else {
        return Ok(Val::Null);
    };
    let set = ty.collation().known().charset;
    let mut out = String::new();
    if negative {
        out.push('-');
    }
    let names = cx.env().time_names();
    let mut rest = &text[..];
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(format_piece_end(set, rest));
        let piece_text = String::from_utf8_lossy(piece);
        if fill(&piece_text, (date, time), names, &mut out).is_none() {
            return Ok(Val::Null);
        }
        cx.checkpoint(FIELD_WORK * piece.len() as u64)?;
        rest = after;
    }
    Ok(Val::string(out.into_bytes()))
}

fn eval_date_format<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let d = arg!(datetime_of(cx, &args[0]));
    formatted(cx, (&args[1], ty), Some(d.date()), d.time().parts(), false)
}

fn eval_time_format<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let t = arg!(time_point(cx, &args[0])).time();
    formatted(cx, (&args[1], ty), None, t.parts(), t.is_negative())
}

fn infer_from_unixtime(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    if args.len() == 2 {
        return infer_format(cx, args);
    }
    let fsp = seconds_fsp(&args[0]);
    Ok(ExprType::new(
        ColumnType::new(TypeKind::DateTime(fsp)),
        true,
    ))
}

fn eval_from_unixtime<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    /// 3001-01-19 00:00:00 in seconds since 1970.
    const END_S: i64 = 32_536_771_200;
    let seconds = arg!(cx.decimal(&args[0]));
    // As in MySQL, an integer that is out of range brings no warning.
    let integer = args[0].ty.class() == Class::Int;
    if !integer && whole_seconds(cx, &seconds).is_none() {
        return Ok(Val::Null);
    }
    let truncates = cx.env().sql_mode().has(SqlMode::TIME_TRUNCATE_FRACTIONAL);
    let micros = seconds
        .mul(&nfold_types::Decimal::from(MICROS_PER_SECOND))
        .and_then(|d| match truncates {
            true => Some(d.truncate(0)),
            false => d.round(0),
        })
        .and_then(|d| d.to_i64());
    let Some(micros) = micros.filter(|us| (0..END_S * MICROS_PER_SECOND).contains(us)) else {
        return Ok(Val::Null);
    };
    let fsp = if args.len() == 2 { 6 } else { ty.col.fsp() };
    // Time stamp 0 means the zero date, so 0 is computed from one microsecond later.
    let at = Timestamp::from_micros(micros.max(1), 6);
    let zone = cx.env().time_zone();
    let local = zone.to_local(at).unwrap_or(DateTime::ZERO);
    let local = if micros == 0 {
        local.truncate(0)
    } else {
        local
    };
    let Some(local) = local.round(0, fsp) else {
        return Ok(Val::Null);
    };
    let Some(format) = args.get(1) else {
        return Ok(Val::DateTime(local));
    };
    formatted(
        cx,
        (format, ty),
        Some(local.date()),
        local.time().parts(),
        false,
    )
}

fn eval_get_format<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let kind = arg!(cx.bytes(&args[0]));
    let which = arg!(cx.bytes(&args[1])).to_ascii_uppercase();
    let format = match (&kind[..], &which[..]) {
        (b"date", b"USA") => "%m.%d.%Y",
        (b"date", b"JIS" | b"ISO") => "%Y-%m-%d",
        (b"date", b"EUR") => "%d.%m.%Y",
        (b"date", b"INTERNAL") => "%Y%m%d",
        (b"time", b"USA") => "%h:%i:%s %p",
        (b"time", b"JIS" | b"ISO") => "%H:%i:%s",
        (b"time", b"EUR") => "%H.%i.%s",
        (b"time", b"INTERNAL") => "%H%i%s",
        (b"datetime", b"USA" | b"EUR") => "%Y-%m-%d %H.%i.%s",
        (b"datetime", b"JIS" | b"ISO") => "%Y-%m-%d %H:%i:%s",
        (b"datetime", b"INTERNAL") => "%Y%m%d%H%i%s",
        _ => return Ok(Val::Null),
    };
    Ok(Val::string(format.as_bytes().to_vec()))
}

/// Which parts a format of STR_TO_DATE has: a date, a time, a fraction.
fn format_parts(format: &[u8]) -> (bool, bool, bool) {
    let mut parts = (false, false, false);
    let mut at = 0;
    while at + 1 < format.len() {
        if format[at] != b'%' {
            at += 1;
            continue;
        }
        match format[at + 1] {
            b'f' => (parts.1, parts.2) = (true, true),
            b'H' | b'h' | b'I' | b'i' | b'k' | b'l' | b'p' | b'r' | b'S' | b's' | b'T' => {
                parts.1 = true;
            }
            b'%' => {}
            _ => parts.0 = true,
        }
        at += 2;
    }
    parts
}

fn infer_str_to_date(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let kind = match &args[1].kind {
        ExprKind::Const(Value::Bytes(format)) => {
            let (date, time, fraction) = format_parts(format);
            let fsp = if fraction { 6 } else { 0 };
            match (date, time) {
                (true, false) | (false, false) => TypeKind::Date,
                (false, true) => TypeKind::Time(fsp),
                (true, true) => TypeKind::DateTime(fsp),
            }
        }
        _ => TypeKind::DateTime(6),
    };
    let _ = any_nullable(args);
    Ok(ExprType::new(ColumnType::new(kind), true))
}

/// The parts read so far.
#[derive(Default)]
struct ParsedParts {
    year: Option<u32>,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    pm: Option<bool>,
    twelve: bool,
    day_of_year: Option<u32>,
    /// 0 is Monday.
    weekday: Option<u32>,
    week: Option<u32>,
    week_mode: u32,
    week_year: Option<u32>,
}

struct Reader<'t> {
    text: &'t [u8],
    goes_on: &'t dyn Fn(u64) -> bool,
}

impl Reader<'_> {
    fn skip_spaces(&mut self) {
        self.text = self.text.trim_ascii_start();
    }

    fn number(&mut self, digits: usize) -> Option<u32> {
        let run = self
            .text
            .iter()
            .take(digits)
            .take_while(|b| b.is_ascii_digit())
            .count();
        if run == 0 {
            return None;
        }
        let value = self.text[..run]
            .iter()
            .fold(0, |n, b| n * 10 + u32::from(b - b'0'));
        self.text = &self.text[run..];
        Some(value)
    }

    /// Reads the name at the current position, and returns its index in `names`. `short`: the
    /// minimum number of letters; without it the whole name is required.
    fn name(&mut self, names: &[&str], short: Option<usize>) -> Option<u32> {
        let place = names.iter().position(|n| {
            let n = &n.as_bytes()[..short.unwrap_or(n.len())];
            self.text
                .get(..n.len())
                .is_some_and(|t| t.eq_ignore_ascii_case(n))
        })?;
        let len = short.unwrap_or(names[place].len());
        self.text = &self.text[len..];
        Some(place as u32)
    }

    fn read(&mut self, format: &[u8], out: &mut ParsedParts) -> Option<()> {
        let mut at = 0;
        while at < format.len() {
            let c = format[at];
            at += 1;
            if at.is_multiple_of(FIELDS) && !(self.goes_on)(FIELD_WORK * FIELDS as u64) {
                return None;
            }
            if c != b'%' || at == format.len() {
                if c.is_ascii_whitespace() {
                    self.skip_spaces();
                    continue;
                }
                self.skip_spaces();
                if self.text.is_empty() {
                    return Some(());
                }
                self.text = self.text.strip_prefix(&[c])?;
                continue;
            }
            let spec = format[at];
            at += 1;
            self.skip_spaces();
            if self.text.is_empty() {
                // Parts that the string does not have stay zero.
                return Some(());
            }
            self.field(spec, out)?;
        }
        Some(())
    }

    fn field(&mut self, spec: u8, out: &mut ParsedParts) -> Option<()> {
        let english = Locale::english();
        match spec {
            b'Y' => {
                let before = self.text.len();
                let year = self.number(4)?;
                out.year = Some(if before - self.text.len() <= 2 {
                    two_digits(year)
                } else {
                    year
                });
            }
            b'y' => out.year = Some(two_digits(self.number(2)?)),
            b'm' | b'c' => out.month = self.number(2)?,
            b'M' => out.month = self.name(english.months(), None)? + 1,
            b'b' => out.month = self.name(english.months(), Some(3))? + 1,
            b'd' | b'e' => out.day = self.number(2)?,
            b'D' => {
                out.day = self.number(2)?;
                self.text = self.text.get(2..)?;
            }
            b'H' | b'k' => out.hour = self.number(2)?,
            b'h' | b'I' | b'l' => {
                out.twelve = true;
                out.hour = self.number(2)?;
            }
            b'i' => out.minute = self.number(2)?,
            b'S' | b's' => out.second = self.number(2)?,
            b'f' => {
                let before = self.text.len();
                let value = self.number(6)?;
                let digits = before - self.text.len();
                out.micros = value * 10u32.pow(6 - digits as u32);
            }
            b'p' => out.pm = Some(self.name(&["AM", "PM"], None)? == 1),
            b'W' => out.weekday = Some(self.name(english.days(), None)?),
            b'a' => out.weekday = Some(self.name(english.days(), Some(3))?),
            b'w' => {
                let n = self.number(1).filter(|n| *n < 7)?;
                out.weekday = Some((n + 6) % 7);
            }
            b'j' => out.day_of_year = Some(self.number(3).filter(|n| (1..=366).contains(n))?),
            b'U' | b'u' | b'V' | b'v' => {
                out.week = Some(self.number(2).filter(|n| *n <= 53)?);
                out.week_mode = match spec {
                    b'U' => 0,
                    b'u' => 1,
                    b'V' => 2,
                    _ => 3,
                };
            }
            b'X' | b'x' => out.week_year = Some(self.number(4)?),
            b'T' => self.read(b"%H:%i:%S", out)?,
            b'r' => self.read(b"%I:%i:%S %p", out)?,
            b'%' => self.text = self.text.strip_prefix(b"%")?,
            b'.' => self.skip_class(u8::is_ascii_punctuation),
            b'@' => self.skip_class(u8::is_ascii_alphabetic),
            b'#' => self.skip_class(u8::is_ascii_digit),
            _ => return None,
        }
        Some(())
    }

    fn skip_class(&mut self, class: fn(&u8) -> bool) {
        let run = self.text.iter().take_while(|b| class(b)).count();
        self.text = &self.text[run..];
    }
}

fn two_digits(year: u32) -> u32 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    }
}

impl ParsedParts {
    fn hours(&self) -> Option<u32> {
        if self.twelve || self.pm.is_some() {
            if !(1..=12).contains(&self.hour) {
                return None;
            }
            return Some(self.hour % 12 + if self.pm == Some(true) { 12 } else { 0 });
        }
        (self.hour < 24).then_some(self.hour)
    }

    /// The date, computed from a day of the year or a week if one of these was read.
    fn date(&self) -> Option<Date> {
        if let Some(day) = self.day_of_year {
            let first = day_number(Date::new(self.year?, 1, 1));
            return Some(date_of_day_number(first + day - 1));
        }
        if let (Some(week), Some(weekday_wanted)) = (self.week, self.weekday) {
            let strict = self.week_mode >= 2;
            let year = if strict { self.week_year } else { self.year }?;
            return self.date_of_week(year, week, weekday_wanted);
        }
        let in_range = self.month <= 12 && self.day <= 31;
        in_range.then(|| Date::new(self.year.unwrap_or(0), self.month, self.day))
    }

    fn date_of_week(&self, year: u32, week: u32, day: u32) -> Option<Date> {
        let sunday_first = self.week_mode.is_multiple_of(2);
        let first = day_number(Date::new(year, 1, 1));
        let start = weekday(if sunday_first { first + 1 } else { first });
        let first = i64::from(first) - i64::from(start);
        let whole_weeks = if sunday_first {
            if start == 0 { 0 } else { 7 }
        } else if start <= 3 {
            0
        } else {
            7
        };
        let place = if sunday_first { (day + 1) % 7 } else { day };
        let n = first + whole_weeks + (i64::from(week) - 1) * 7 + i64::from(place);
        u32::try_from(n)
            .ok()
            .filter(|n| *n > 0)
            .map(date_of_day_number)
    }
}

fn eval_str_to_date<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.bytes(&args[0]));
    let format = arg!(cx.bytes(&args[1]));
    let goes_on = |work| cx.goes_on(work);
    let mut reader = Reader {
        text: &text,
        goes_on: &goes_on,
    };
    let mut read = ParsedParts::default();
    let refuse = || {
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]);
        cx.warn(
            ErrorCode::ER_WRONG_VALUE_FOR_TYPE,
            &[&"datetime", &shown, &"str_to_date"],
        );
        Ok(Val::Null)
    };
    let whole = reader.read(&format, &mut read).and_then(|()| {
        let (date, hour) = (read.date()?, read.hours()?);
        (read.minute < 60 && read.second < 60).then_some((date, hour))
    });
    let Some((date, hour)) = whole else {
        return refuse();
    };
    if !reader.text.trim_ascii_start().is_empty() {
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]);
        let kind = match ty.col.kind {
            TypeKind::Date => "date",
            TypeKind::Time(_) => "time",
            _ => "datetime",
        };
        cx.warn(ErrorCode::ER_TRUNCATED_WRONG_VALUE, &[&kind, &shown]);
    }
    if let TypeKind::Time(fsp) = ty.col.kind {
        let seconds = i64::from(hour * 3600 + read.minute * 60 + read.second);
        let micros = seconds * MICROS_PER_SECOND + i64::from(read.micros);
        return Ok(Val::Time(Time::from_micros(micros, fsp)));
    }
    if !acceptable(cx, date) {
        return refuse();
    }
    let fsp = ty.col.fsp();
    Ok(match ty.col.kind {
        TypeKind::Date => Val::Date(date),
        _ => Val::DateTime(DateTime::new(
            date,
            hour,
            read.minute,
            read.second,
            read.micros,
            fsp,
        )),
    })
}

/// Whether the SQL mode allows a date.
fn acceptable(cx: &EvalCx<'_>, date: Date) -> bool {
    let mode = cx.env().sql_mode();
    let (y, m, d) = (date.year(), date.month(), date.day());
    if y == 0 && m == 0 && d == 0 {
        return !mode.has(SqlMode::NO_ZERO_DATE);
    }
    if m > 12 || y > 9999 {
        return false;
    }
    if mode.has(SqlMode::NO_ZERO_DATE) && (y == 0 || m == 0 || d == 0) {
        return false;
    }
    if m == 0 || d == 0 {
        return !mode.has(SqlMode::NO_ZERO_IN_DATE) && d <= 31;
    }
    let any_day = mode.has(SqlMode::ALLOW_INVALID_DATES) && d <= 31;
    any_day
        || d <= days_in_month(y, m)
        || parse::check_date(date, false, Default::default()).is_ok()
}
