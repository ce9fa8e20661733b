//! Constants beside columns, checked before the first row. MySQL converts such a constant once to
//! the type of the column: it warns even if no row is read, and never again.

use nfold_plan::expr::{Class, CmpKind, Coercibility, Expr, ExprKind, ExprType, is_constant};
use nfold_plan::query::{CheckedConstant, CheckedMembers, ConstantCheck, ListCheck};
use nfold_types::convert::number;
use nfold_types::error::Level;
use nfold_types::temporal::parse;
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind};

use super::compare::{
    as_text, comparable, is_marker, listed_time_point, member_type, refuse_constant, refuse_text,
    warn_of_clock, warn_of_time_point,
};
use super::temporal::{TemporalTarget, number_fits_date, number_fits_time, warn_odd};
use super::{EvalCx, Val, convert};

/// Checks the members of IN lists, then the constants that are compared with dates and times, and
/// the strings that are conditions.
///
/// # Errors
/// 1525 for a string that is no date; 1292 instead in a statement that changes rows in strict mode.
pub(crate) fn check_time_points<'a>(
    cx: &EvalCx<'a>,
    checks: &'a [ConstantCheck],
) -> Result<(), SqlError> {
    let strict = cx.st.warnings.borrow().is_strict();
    let is_list = |check: &&ConstantCheck| matches!(check.constant, CheckedConstant::Members(_));
    let lists = checks.iter().filter(is_list);
    for check in lists.chain(checks.iter().filter(|check| !is_list(check))) {
        let timed = match &check.constant {
            CheckedConstant::Number(..) => continue,
            CheckedConstant::Members(list) => list.left.ty.class().is_temporal(),
            CheckedConstant::Truth(_)
            | CheckedConstant::Text(..)
            | CheckedConstant::Texts(..)
            | CheckedConstant::Resolved(_) => false,
            CheckedConstant::TimePoint(_)
            | CheckedConstant::List(_)
            | CheckedConstant::Bounds(_) => true,
        };
        let lenient = strict && check.lenient && timed;
        cx.st.warnings.borrow_mut().set_strict(strict && !lenient);
        let checked = check_time_point(cx, check);
        cx.st.warnings.borrow_mut().set_strict(strict);
        checked?;
    }
    Ok(())
}

fn check_time_point<'a>(cx: &EvalCx<'a>, check: &'a ConstantCheck) -> Result<(), SqlError> {
    match &check.constant {
        CheckedConstant::TimePoint(e) => time_point(cx, e, check),
        CheckedConstant::Bounds(bounds) => equal_bounds(cx, bounds, check),
        CheckedConstant::List(list) => lone_time_point(cx, *list, check),
        CheckedConstant::Resolved(e) => {
            cx.val(e)?;
            raised(cx)
        }
        CheckedConstant::Truth(e) => {
            truth_of_constants(cx, e)?;
            raised(cx)
        }
        CheckedConstant::Members(list) => {
            if count_members(cx, list) > 1 && check.beside.kind != TypeKind::Year {
                check_members(cx, list)?;
            }
            raised(cx)
        }
        CheckedConstant::Text(e, collation) => {
            let v = cx.val(e)?;
            convert::to_text(cx, v, &e.ty, *collation);
            raised(cx)
        }
        CheckedConstant::Texts(list, collation) => {
            let members = cx.st.params.list(*list).0.map(Val::from_ref);
            for (i, v) in members.enumerate() {
                let ty = member_type(cx, *list, i, &v);
                if matches!(v, Val::Bytes(_)) {
                    convert::to_text(cx, v, &ty, *collation);
                }
            }
            raised(cx)
        }
        CheckedConstant::Number(..) => Ok(()),
    }
}

fn count_members(cx: &EvalCx<'_>, list: &ListCheck) -> usize {
    match &list.members {
        CheckedMembers::Written(members) => members.len(),
        CheckedMembers::Param(n) => cx.st.params.list(*n).0.len(),
    }
}

/// Calls `f` with the value and the type of each member of a list that is not NULL.
fn each_member<'a>(
    cx: &EvalCx<'a>,
    list: &'a ListCheck,
    f: &mut dyn FnMut(Val<'a>, &ExprType),
) -> Result<(), SqlError> {
    match &list.members {
        CheckedMembers::Written(members) => {
            for e in members {
                let v = cx.val(e)?;
                if !v.is_null() {
                    f(v, &e.ty);
                }
            }
        }
        CheckedMembers::Param(n) => {
            let members = cx.st.params.list(*n).0.map(Val::from_ref);
            for (i, v) in members.enumerate().filter(|(_, v)| !v.is_null()) {
                let ty = member_type(cx, *n, i, &v);
                f(v, &ty);
            }
        }
    }
    Ok(())
}

/// Converts the members of a list of several. They do not warn again for each row then.
fn check_members<'a>(cx: &EvalCx<'a>, list: &'a ListCheck) -> Result<(), SqlError> {
    let before = cx.st.warnings.borrow().total();
    let left = &list.left;
    let mut class = left.ty.class();
    each_member(cx, list, &mut |_, ty| {
        if class == Class::Date && ty.class() == Class::DateTime {
            class = Class::DateTime;
        }
    })?;
    // Only the warnings count.
    each_member(cx, list, &mut |v, ty| match (list.kind, &v) {
        (CmpKind::Int, Val::Bytes(_)) => drop(convert::to_integer(cx, &v, ty)),
        (CmpKind::Double, Val::Bytes(_)) => drop(convert::to_f64(cx, &v, ty)),
        (CmpKind::DateTime | CmpKind::Time, Val::Bytes(_)) => {
            warn_of_time_point(cx, class, (&v, ty), left);
            warn_of_clock(cx, class, (&v, ty));
        }
        (CmpKind::DateTime | CmpKind::Time, _) if ty.class().is_number() => {
            listed_time_point(cx, v, ty, &left.ty.col, false);
        }
        _ => {}
    })?;
    if cx.st.warnings.borrow().total() > before {
        cx.st.lists.members_warned.set(true);
    }
    Ok(())
}

/// Converts the text that is the only member of a list parameter beside a column of numbers.
fn check_only_member<'a>(
    cx: &EvalCx<'a>,
    list: &'a ListCheck,
    check: &ConstantCheck,
) -> Result<(), SqlError> {
    let before = cx.st.warnings.borrow().total();
    each_member(cx, list, &mut |v, ty| {
        let year = check.beside.kind == TypeKind::Year && is_year_text(&v);
        match list.left.ty.class() {
            _ if year || !matches!(v, Val::Bytes(_)) => {}
            Class::Decimal => drop(convert::to_decimal(cx, &v, ty)),
            _ => drop(convert::to_f64(cx, &v, ty)),
        }
    })?;
    if cx.st.warnings.borrow().total() > before {
        cx.st.lists.members_warned.set(true);
    }
    raised(cx)
}

/// The truth of a condition, as far as its constants decide it: `None` if they do not. NULL counts
/// as false. Members are evaluated in their order until one decides.
fn truth_of_constants<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<bool>, SqlError> {
    let (list, decides) = match &e.kind {
        ExprKind::And(list) => (list, false),
        ExprKind::Or(list) => (list, true),
        ExprKind::Not(inner) if !is_constant(inner) => {
            return Ok(truth_of_constants(cx, inner)?.map(|truth| !truth));
        }
        _ if is_constant(e) => return Ok(Some(cx.bool(e)? == Some(true))),
        _ => return Ok(None),
    };
    let mut known = true;
    for member in list {
        match truth_of_constants(cx, member)? {
            Some(truth) if truth == decides => return Ok(Some(decides)),
            Some(_) => {}
            None => known = false,
        }
    }
    Ok(known.then_some(!decides))
}

/// Checks the strings that are compared with numbers.
///
/// # Errors
/// 1292 for a string that is no number, in a statement that changes rows in strict mode.
pub(crate) fn check_numbers<'a>(
    cx: &EvalCx<'a>,
    checks: &'a [ConstantCheck],
) -> Result<(), SqlError> {
    for check in checks {
        if let CheckedConstant::Members(list) = &check.constant
            && check.column.is_some()
            && matches!(list.kind, CmpKind::Int | CmpKind::Double)
            && count_members(cx, list) == 1
        {
            check_only_member(cx, list, check)?;
        }
        if let CheckedConstant::Number(e, class) = &check.constant {
            let v = cx.val(e)?;
            if check.beside.kind == TypeKind::Year && is_year_text(&v) {
                continue;
            }
            let _ = match class {
                Class::Decimal => convert::to_decimal(cx, &v, &e.ty).is_some(),
                _ => convert::to_f64(cx, &v, &e.ty).is_some(),
            };
            raised(cx)?;
        }
    }
    Ok(())
}

/// Whether a string begins with a year: as the constant beside a YEAR column it then causes no
/// warning about the rest.
fn is_year_text(v: &Val<'_>) -> bool {
    let Val::Bytes(text) = v else { return false };
    let digits = text.trim_ascii_start().first();
    let year = number::parse_integer(text).value;
    digits.is_some_and(u8::is_ascii_digit) && matches!(year, 0..=99 | 1901..=2155)
}

/// The error that strict mode has made of a warning.
fn raised(cx: &EvalCx<'_>) -> Result<(), SqlError> {
    match cx.st.warnings.borrow_mut().take_raised() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The error for a value that is no date, in a statement that changes rows in strict mode.
fn lost(cx: &EvalCx<'_>, v: &Val<'_>, check: &ConstantCheck) -> Option<SqlError> {
    let strict = cx.st.warnings.borrow().is_strict();
    let column = check.column.as_deref().filter(|_| strict)?;
    let ty = ExprType::string(0, cx.env().collation(), Coercibility::Coercible, true);
    Some(incorrect(cx, v, &ty, &check.beside, column))
}

/// Error 1292, which names the column.
fn incorrect(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    ty: &ExprType,
    beside: &ColumnType,
    column: &str,
) -> SqlError {
    let kind = match beside.kind {
        TypeKind::Date => "date",
        TypeKind::Time(_) => "time",
        _ => "datetime",
    };
    let mut text = Vec::new();
    convert::write_text(v, ty, &mut text);
    let shown = convert::shown(cx, &text, ty);
    let message = format!("Incorrect {kind} value: '{shown}' for column '{column}' at row 1");
    SqlError::with_message(ErrorCode::ER_TRUNCATED_WRONG_VALUE, message)
}

fn time_point<'a>(cx: &EvalCx<'a>, e: &'a Expr, check: &ConstantCheck) -> Result<(), SqlError> {
    let v = as_text(cx, cx.val(e)?, &e.ty);
    let beside = &check.beside;
    if v.is_null() {
        return Ok(());
    }
    if is_marker(cx, e) {
        comparable(cx, e, v, beside);
        return Ok(());
    }
    refuse_time_point(cx, (e, &v), check)?;
    warn_of_loss(cx, &v, &e.ty, check)
}

/// Refuses a constant `e`, whose value is `v`, if it is no date.
fn refuse_time_point(
    cx: &EvalCx<'_>,
    (e, v): (&Expr, &Val<'_>),
    check: &ConstantCheck,
) -> Result<(), SqlError> {
    let beside = &check.beside;
    let refused = match Class::of(beside) {
        Class::Time => Ok(()),
        _ => refuse_constant(cx, e, v, beside),
    };
    let strict = cx.st.warnings.borrow().is_strict();
    match &check.column {
        Some(column) if refused.is_err() && strict => {
            return Err(incorrect(cx, v, &e.ty, beside, column));
        }
        None if refused.is_err() && strict => {
            let date = beside.kind == TypeKind::Date;
            convert::to_asked(cx, v, &e.ty, TemporalTarget::by_mode(cx, date));
            raised(cx)?;
        }
        _ => {}
    }
    refused
}

/// Checks the constant bounds of a BETWEEN. MySQL makes an equality of it if they are equal.
fn equal_bounds<'a>(
    cx: &EvalCx<'a>,
    bounds: &'a [Expr; 2],
    check: &ConstantCheck,
) -> Result<(), SqlError> {
    let [low, high] = bounds;
    let (Some(a), Some(b)) = (cx.bytes(low)?, cx.bytes(high)?) else {
        return Ok(());
    };
    let collation = low.ty.col.collation.known();
    if is_marker(cx, low) || is_marker(cx, high) || !collation.eq(&a, &b) {
        return Ok(());
    }
    refuse_time_point(cx, (low, &Val::Bytes(a)), check)
}

/// Checks the member of a list parameter of one member, which is compared as by `=`. Then it does
/// not warn again for each row.
fn lone_time_point(cx: &EvalCx<'_>, list: u32, check: &ConstantCheck) -> Result<(), SqlError> {
    let mut members = cx.st.params.list(list).0.map(Val::from_ref);
    let (Some(only), None) = (members.next(), members.next()) else {
        return Ok(());
    };
    let ty = member_type(cx, list, 0, &only);
    if only.is_null() {
        return Ok(());
    }
    if Class::of(&check.beside) != Class::Time {
        refuse_text(cx, &only, &ty, &check.beside)
            .map_err(|error| lost(cx, &only, check).unwrap_or(error))?;
    }
    let before = cx.st.warnings.borrow().total();
    warn_of_loss(cx, &only, &ty, check)?;
    if cx.st.warnings.borrow().total() > before {
        cx.st.lists.members_warned.set(true);
    }
    Ok(())
}

/// Warns if a constant loses a part when it becomes a value of the column that it is compared with.
fn warn_of_loss(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    ty: &ExprType,
    check: &ConstantCheck,
) -> Result<(), SqlError> {
    let Some(column) = &check.column else {
        return Ok(());
    };
    if let Some(level) = loss(cx, v, ty, &check.beside) {
        let error = incorrect(cx, v, ty, &check.beside, column);
        cx.st.warnings.borrow_mut().push_error(level, &error);
    }
    raised(cx)
}

/// What is lost when a value becomes a value of the column, apart from digits of a fraction: a note
/// if it is only the date or the time of day, in strict mode. Warns of an odd delimiter.
fn loss(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType, column: &ColumnType) -> Option<Level> {
    let strict = cx.env().sql_mode().has(nfold_plan::SqlMode::STRICT);
    let time = Class::of(column) == Class::Time;
    let (fits, whole) = match v {
        Val::Bytes(text) if convert::is_wide(ty) => {
            let (v, ty) = convert::in_utf8(text, ty);
            return loss(cx, &v, &ty, column);
        }
        Val::Bytes(text) if text.is_empty() => return None,
        Val::Bytes(text) if time => {
            let Ok(parsed) = parse::parse_time(text) else {
                return Some(Level::Warning);
            };
            warn_odd(cx, parsed.odd, text, ty);
            (!parsed.truncated && !parsed.clamped, parsed.dated.is_none())
        }
        Val::Bytes(text) => {
            let flags = TemporalTarget::by_mode(cx, false).flags;
            let Ok(parsed) = parse::parse_datetime(text, flags) else {
                return None;
            };
            warn_odd(cx, parsed.odd, text, ty);
            (!parsed.truncated, true)
        }
        v if time => (
            number_fits_time(cx, v, false),
            number_fits_time(cx, v, true),
        ),
        v => {
            let date = column.kind == TypeKind::Date;
            (
                number_fits_date(cx, v, false),
                number_fits_date(cx, v, date),
            )
        }
    };
    match (fits, whole) {
        (false, _) => Some(Level::Warning),
        (true, false) if strict => Some(Level::Note),
        _ => None,
    }
}
