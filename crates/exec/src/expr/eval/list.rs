//! IN over written lists, lists of rows, and list parameters. Lists of constants are prepared once
//! per execution and then searched.

use std::cell::LazyCell;
use std::cmp::Ordering;

use nfold_plan::collate::Operand;
use nfold_plan::collate::listed_number;
use nfold_plan::expr::{Class, CmpKind, Coercibility, Expr, ExprKind, ExprType, TextOrigin};
use nfold_types::{SqlError, Time, ValueRef};
use smallvec::SmallVec;

use super::CONDITION_WORK;
use super::compare::{as_text, exact, is_exact_constant, order, warn_of_members};
use super::prepared::{ListForm, PreparedList, is_time_point};
use super::ranges::{RANGES_MIN, column_of, range_of};
use super::temporal_list::{
    Listed, constant_dates, is_marker, is_no_date, is_text_among_dates, listed_time_point,
    lone_member, refuse_text, row_member, warn_among_dates,
};
use super::{EvalCx, Val, convert};

/// Compares an operand with a list member. In a TIME comparison a string counts as the valid time
/// that it begins with. An invalid one counts as 00:00:00 if `zero` is set.
fn member_order(
    cx: &EvalCx<'_>,
    kind: CmpKind,
    x: (&Val<'_>, &ExprType),
    member: (&Val<'_>, &ExprType),
    zero: bool,
) -> Option<Ordering> {
    let Val::Bytes(_) = member.0 else {
        return order(cx, kind, x, member);
    };
    if kind != CmpKind::Time {
        return order(cx, kind, x, member);
    }
    let found = convert::to_time(cx, member.0, member.1);
    let found = found.or_else(|| zero.then(Time::default))?;
    Some(
        convert::to_time(cx, x.0, x.1)?
            .micros()
            .cmp(&found.micros()),
    )
}

/// A member of a list that is compared with a BIGINT as a BIGINT. A text beyond its range keeps its
/// lower 64 bits, which count as signed.
pub(super) fn listed_integer(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Option<i128> {
    let whole = convert::to_integer(cx, v, ty)?;
    Some(match v {
        Val::Bytes(_) if !convert::binary_number(ty) => i128::from(whole as i64),
        _ => whole,
    })
}

/// Whether a negative BIGINT and a BIGINT UNSIGNED have the same 64 bits.
fn same_bits(x: &Val<'_>, v: &Val<'_>) -> bool {
    match (x, v) {
        (Val::Int(a), Val::UInt(b)) | (Val::UInt(b), Val::Int(a)) => *a < 0 && *a as u64 == *b,
        _ => false,
    }
}

/// Whether MySQL compares the members of this list one by one with an integer operand: the members
/// have different types, or one is not constant. MySQL then compares integers by their 64 bits,
/// with either sign.
fn is_walked(left: &ExprType, list: &[(CmpKind, Expr)]) -> bool {
    let types = list.iter().map(|(_, m)| &m.ty);
    left.class() == Class::Int
        && (are_several(types) || list.iter().any(|(_, m)| !nfold_plan::expr::is_constant(m)))
}

/// Whether members of these types need more than one kind of comparison with an integer.
fn are_several<'e>(types: impl Iterator<Item = &'e ExprType>) -> bool {
    let way = |t: &ExprType| match t.class() {
        Class::Int => CmpKind::Int,
        Class::Decimal => CmpKind::Decimal,
        _ => CmpKind::Double,
    };
    let mut ways = types.filter(|t| t.class() != Class::Null).map(way);
    let first = ways.next();
    ways.any(|way| Some(way) != first)
}

/// The result of `x IN (…)`. `unknown` says that a NULL was among the members that were compared.
pub(crate) fn in_result(found: bool, unknown: bool, negated: bool) -> Option<bool> {
    if found {
        Some(!negated)
    } else if unknown {
        None
    } else {
        Some(negated)
    }
}

/// Whether a value is a string that is no valid time. In a list with numbers such a string equals
/// nothing, not even 00:00:00.
pub(crate) fn is_no_time(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> bool {
    matches!(v, Val::Bytes(_)) && convert::to_time(cx, v, ty).is_none()
}

/// Whether a list parameter has only numbers and NULLs.
fn are_numbers(cx: &EvalCx<'_>, list: u32) -> bool {
    let mut members = cx.st.params.list(list).0;
    !members.any(|m| matches!(m, ValueRef::Bytes(_)))
}

/// Whether a list parameter has a member that is neither a string nor NULL.
pub(crate) fn has_numbers(cx: &EvalCx<'_>, list: u32) -> bool {
    let mut members = cx.st.params.list(list).0;
    members.any(|m| !matches!(m, ValueRef::Bytes(_) | ValueRef::Null))
}

/// Written lists with at most this many members are compared member by member.
const WALKED_MAX: usize = 4;

/// Searches a prepared list of constants for `x`, the value of `expr`, which is not NULL. Returns
/// whether it is a member, and whether NULL is one. `None`: the caller must compare the members one
/// by one.
fn searched<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    (expr, x): (&'a Expr, &Val<'_>),
    list: &'a [(CmpKind, Expr)],
) -> Option<(bool, bool)> {
    let time_points = |(kind, m): &(CmpKind, Expr)| is_time_point(&expr.ty, *kind, &m.ty);
    let temporal = expr.ty.class().is_temporal();
    if list.len() <= WALKED_MAX && !(temporal && list.iter().any(time_points)) {
        return None;
    }
    let prepare = |prepared: &mut PreparedList| prepared.prepare_members(cx, &expr.ty, list);
    let look = |prepared: &mut PreparedList| {
        let found = match (prepared.form, x) {
            (ListForm::Ints, Val::Int(v)) => prepared.has_int((*v).into()),
            (ListForm::Ints, Val::UInt(v)) => prepared.has_int((*v).into()),
            (ListForm::Kinds, _) => prepared.has_value(cx, expr, (x, &expr.ty))?,
            _ => return None,
        };
        Some((found, prepared.has_null))
    };
    let id = std::ptr::from_ref(e) as usize;
    cx.st.lists.with(id, prepare, look)
}

/// Evaluates `x IN (…)` over a written list.
pub(crate) fn in_list<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    expr: &'a Expr,
    list: &'a [(CmpKind, Expr)],
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    let x = cx.val(expr)?;
    if x.is_null() {
        return evaluated_beside_null(cx, e, expr, list);
    }
    if expr.ty.class() == Class::String && !matches!(x, Val::Bytes(_)) {
        return in_list_of_text(cx, e, (expr, &x), list, negated);
    }
    match has_warned(cx, e) {
        true => cx.silently(|cx| in_list_of(cx, e, (expr, &x), list, negated)),
        false => in_list_of(cx, e, (expr, &x), list, negated),
    }
}

/// As [`in_list`], for an operand of a string type whose value `x` is a date or time. Among strings
/// it is a string, but MySQL reads its number without reading that string.
#[cold]
fn in_list_of_text<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    (expr, x): (&'a Expr, &Val<'a>),
    list: &'a [(CmpKind, Expr)],
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    let text = as_text(cx, x.clone(), &expr.ty);
    let numbers = |(kind, _): &(CmpKind, Expr)| is_numeric(*kind);
    if !list.iter().any(numbers) {
        return in_list_of(cx, e, (expr, &text), list, negated);
    }
    walked(cx, (expr, [&text, x]), list, negated)
}

/// Whether a comparison reads both sides as numbers.
fn is_numeric(kind: CmpKind) -> bool {
    matches!(kind, CmpKind::Int | CmpKind::Decimal | CmpKind::Double)
}

/// Whether the members of the list of `e` have warned before the first row.
fn has_warned(cx: &EvalCx<'_>, e: &Expr) -> bool {
    e.ty.origin == TextOrigin::Checked && cx.st.lists.members_warned.get()
}

/// Whether the list of `e` is used for the first time in an execution.
fn is_first_use(cx: &EvalCx<'_>, e: &Expr) -> bool {
    let id = std::ptr::from_ref(e) as usize;
    cx.st.lists.warned.borrow_mut().insert(id)
}

/// Evaluates the members of a list whose operand is NULL. As in MySQL, they may warn then, unless
/// all are compared in one way.
fn evaluated_beside_null<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    expr: &'a Expr,
    list: &'a [(CmpKind, Expr)],
) -> Result<Option<bool>, SqlError> {
    let number = matches!(expr.ty.class(), Class::Int | Class::Decimal | Class::Double);
    if number && e.ty.origin != TextOrigin::Checked {
        let texts = list.iter().filter(|(_, m)| m.ty.class() == Class::String);
        for (kind, member) in texts {
            let v = cx.val(member)?;
            if matches!(kind, CmpKind::Double | CmpKind::Decimal) {
                let _ = convert::to_f64(cx, &v, &member.ty);
            }
        }
    }
    Ok(None)
}

/// As [`in_list`], with the value of `expr`.
fn in_list_of<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    (expr, x): (&'a Expr, &Val<'_>),
    list: &'a [(CmpKind, Expr)],
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    if let Some((found, unknown)) = searched(cx, e, (expr, x), list) {
        return Ok(in_result(found, unknown, negated));
    }
    if is_text_among_dates(cx, expr, list) {
        warn_among_dates(cx, e, (expr, x), list)?;
        return cx.silently(|cx| walked(cx, (expr, [x, x]), list, negated));
    }
    walked(cx, (expr, [x, x]), list, negated)
}

/// As [`in_list`], comparing the members one by one with the value of `expr`: `x`, and `number`
/// where numbers are compared.
fn walked<'a>(
    cx: &EvalCx<'a>,
    (expr, [x, number]): (&'a Expr, [&Val<'_>; 2]),
    list: &'a [(CmpKind, Expr)],
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    let several = list.len() > 1;
    if several && list.iter().all(|(k, _)| *k == CmpKind::Time) {
        return in_times(cx, (x, &expr.ty), list, negated);
    }
    let mut unknown = false;
    let mixed = LazyCell::new(|| list.iter().any(|(_, m)| m.ty.class().is_number()));
    let mut is_read = false;
    for (kind, member) in list {
        cx.checkpoint(CONDITION_WORK)?;
        let (kind, v) = match listed_member(cx, &expr.ty, (*kind, member), several)? {
            (_, Listed::Nothing) => continue,
            (kind, Listed::Unknown) => (kind, Val::Null),
            // In a list with numbers, a date is compared with a TIME as a string.
            (CmpKind::Time, Listed::Value(v @ (Val::Date(_) | Val::DateTime(_)))) if *mixed => {
                let text = convert::to_bytes(cx, v, &member.ty);
                (CmpKind::Time, text.map_or(Val::Null, Val::Bytes))
            }
            (CmpKind::Int, Listed::Value(v @ Val::Bytes(_))) => {
                let whole = listed_integer(cx, &v, &member.ty);
                (
                    CmpKind::Int,
                    whole.map_or(Val::Null, |n| Val::Int(n as i64)),
                )
            }
            (kind, Listed::Value(v)) => (kind, v),
        };
        if v.is_null() {
            unknown = true;
            continue;
        }
        let x = if is_numeric(kind) { number } else { x };
        let none = kind == CmpKind::DateTime
            && several
            && (is_no_date(cx, x, &expr.ty) || is_no_date(cx, &v, &member.ty));
        let dates = expr.ty.class() != Class::DateTime;
        if none && dates && !*mixed && constant_dates(list.iter().map(|(_, m)| m)) {
            continue;
        }
        if kind == CmpKind::Time && *mixed && is_no_time(cx, &v, &member.ty) {
            continue;
        }
        if same_bits(x, &v) && is_walked(&expr.ty, list) {
            return Ok(Some(!negated));
        }
        let reads = kind == CmpKind::Double && member.ty.class().is_number();
        let sides = ((x, &expr.ty), (&v, &member.ty));
        // As in MySQL, a text beside numbers is read once, and warns once.
        let found = match reads && is_read && matches!(x, Val::Bytes(_)) {
            true => cx.silently(|cx| member_order(cx, kind, sides.0, sides.1, several)),
            false => member_order(cx, kind, sides.0, sides.1, several),
        };
        is_read |= reads;
        let constant = || is_exact_constant(member);
        match exact(cx, kind, found, (expr, x), (constant, &v)) {
            Some(Ordering::Equal) => return Ok(Some(!negated)),
            None => unknown = true,
            Some(_) => {}
        }
    }
    Ok(in_result(false, unknown, negated))
}

/// Evaluates a member, and returns the kind of its comparison with an operand of type `left`. A
/// parameter of a prepared statement becomes a temporal value beside a temporal operand.
fn listed_member<'a>(
    cx: &EvalCx<'a>,
    left: &ExprType,
    (kind, member): (CmpKind, &'a Expr),
    several: bool,
) -> Result<(CmpKind, Listed<'a>), SqlError> {
    let v = as_text(cx, cx.val(member)?, &member.ty);
    let marker = left.class().is_temporal() && is_marker(cx, member);
    let kind = match marker {
        true => listed_number(left.class(), true),
        false => kind,
    };
    let time_point = matches!(kind, CmpKind::DateTime | CmpKind::Time);
    let listed = match time_point && several {
        true => listed_time_point(cx, v, &member.ty, &left.col, marker),
        false => Listed::Value(v),
    };
    Ok((kind, listed))
}

/// Searches a prepared list of rows. `None`: the caller must compare the rows one by one.
pub(crate) fn searched_rows<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    left: &'a [Expr],
    rows: &'a [Vec<(CmpKind, Expr)>],
) -> Result<Option<bool>, SqlError> {
    if rows.len() <= WALKED_MAX {
        return Ok(None);
    }
    let id = std::ptr::from_ref(e) as usize;
    let prepare = |prepared: &mut PreparedList| prepared.prepare_rows(cx, left.len(), rows);
    if cx.st.lists.with(id, prepare, |prepared| prepared.form) != ListForm::Rows {
        return Ok(None);
    }
    let row: SmallVec<[Val<'a>; 4]> = left.iter().map(|l| cx.val(l)).collect::<Result<_, _>>()?;
    let look = |prepared: &mut PreparedList| prepared.has_row(cx, left, &row);
    Ok(cx.st.lists.with(id, |_| {}, look))
}

/// Evaluates IN over a list whose members are all compared as TIME. An invalid time counts as
/// 00:00:00 among constants, or as the operand beside members that are not constant. Otherwise it
/// equals nothing.
fn in_times<'a>(
    cx: &EvalCx<'a>,
    x: (&Val<'_>, &ExprType),
    list: &'a [(CmpKind, Expr)],
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    let constant = list.iter().all(|(_, m)| nfold_plan::expr::is_constant(m));
    let found = convert::to_time(cx, x.0, x.1);
    let left = found.unwrap_or_default().micros();
    let mixed = LazyCell::new(|| list.iter().any(|(_, m)| m.ty.class().is_number()));
    let mut unknown = false;
    for (_, member) in list {
        let v = as_text(cx, cx.val(member)?, &member.ty);
        let marker = x.1.class() == Class::Time && is_marker(cx, member);
        let v = match listed_time_point(cx, v, &member.ty, &x.1.col, marker) {
            Listed::Value(v) => v,
            Listed::Nothing => continue,
            Listed::Unknown => Val::Null,
        };
        if v.is_null() {
            unknown = true;
            continue;
        }
        let equal = match convert::to_time(cx, &v, &member.ty) {
            _ if found.is_none() && constant => false,
            Some(_) if found.is_none() => false,
            Some(time) => time.micros() == left,
            None if matches!(v, Val::Bytes(_)) => match constant {
                true => left == 0 && !*mixed,
                // Two invalid times are equal.
                false => found.is_none(),
            },
            None => order(cx, CmpKind::Double, x, (&v, &member.ty)) == Some(Ordering::Equal),
        };
        if equal {
            return Ok(Some(!negated));
        }
    }
    Ok(in_result(false, unknown, negated))
}

pub(crate) fn row_equal<'a>(
    cx: &EvalCx<'a>,
    left: &'a [Expr],
    row: &'a [(CmpKind, Expr)],
) -> Result<Option<bool>, SqlError> {
    let mut result = Some(true);
    for (l, (kind, r)) in left.iter().zip(row) {
        let v = row_member(cx, cx.val(r)?, &r.ty, &l.ty.col);
        match order(cx, *kind, (&cx.val(l)?, &l.ty), (&v, &r.ty)) {
            Some(Ordering::Equal) => {}
            Some(_) => return Ok(Some(false)),
            None => result = None,
        }
    }
    Ok(result)
}

/// The type of member `i` of a list parameter, derived from its value.
pub(crate) fn member_type(cx: &EvalCx<'_>, list: u32, i: usize, v: &Val<'_>) -> ExprType {
    match v {
        Val::Bytes(b) if cx.st.params.is_binary_member(list, i) => {
            nfold_plan::hex_type(b.len() as u64)
        }
        Val::Bytes(b) => ExprType::string(
            b.len() as u64,
            cx.env().collation(),
            Coercibility::Coercible,
            false,
        ),
        Val::Decimal(_) => ExprType::decimal(65, 30, false),
        Val::Double(_) | Val::Float(_) => ExprType::double(false),
        Val::Null => ExprType::null(),
        _ if cx.st.params.is_boolean_member(list, i) => ExprType::boolean(false),
        _ => ExprType::bigint(false),
    }
}

/// Whether the members of a list parameter need more than one kind of comparison with an integer.
fn is_of_several(cx: &EvalCx<'_>, list: u32) -> bool {
    let members = cx.st.params.list(list).0.map(Val::from_ref).enumerate();
    let types: Vec<ExprType> = members.map(|(i, v)| member_type(cx, list, i, &v)).collect();
    are_several(types.iter())
}

/// The kind of comparison between `left` and a member of type `ty` of a list parameter. Members of
/// different types have different kinds.
pub(crate) fn listed_kind(
    cx: &EvalCx<'_>,
    left: &Expr,
    ty: &ExprType,
    else_as: CmpKind,
    list: u32,
) -> CmpKind {
    let time_point = left.ty.class().is_temporal() && ty.class().is_number();
    match time_point && cx.st.params.list(list).0.len() > 1 {
        true => listed_number(left.ty.class(), are_numbers(cx, list)),
        false => member_kind(cx, left, ty, else_as),
    }
}

/// The kind of comparison between `left` and a member of type `ty`.
fn member_kind(cx: &EvalCx<'_>, left: &Expr, ty: &ExprType, else_as: CmpKind) -> CmpKind {
    let side = match left.kind {
        ExprKind::Column(_) | ExprKind::Outer { .. } => Operand::Column,
        _ => Operand::Other,
    };
    let sides = [side, Operand::Constant];
    nfold_plan::collate::comparison(&left.ty, ty, sides, cx.env().collation(), "in")
        .unwrap_or(else_as)
}

/// The kind of comparison between `left` and a member of type `ty` of a list of rows. A list of
/// `several` rows uses `kind`; a list of one row compares as `=` does.
fn row_kind(cx: &EvalCx<'_>, left: &Expr, ty: &ExprType, kind: CmpKind, several: bool) -> CmpKind {
    match several && !matches!(left.ty.class(), Class::Time | Class::Null) {
        true => kind,
        false => member_kind(cx, left, ty, kind),
    }
}

/// Refuses the member of a list parameter of one member if it is no date, in a comparison with
/// values of type `other`.
///
/// # Errors
/// 1525.
fn refuse_only_member(
    cx: &EvalCx<'_>,
    list: u32,
    other: &nfold_types::ColumnType,
) -> Result<(), SqlError> {
    let mut members = cx.st.params.list(list).0.map(Val::from_ref);
    match (members.next(), members.next()) {
        (Some(only), None) => refuse_text(cx, &only, &member_type(cx, list, 0, &only), other),
        _ => Ok(()),
    }
}

pub(crate) fn in_param<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    left: &'a [Expr],
    kinds: &[CmpKind],
    list: u32,
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    if let [expr] = left {
        let x = cx.val(expr)?;
        let mixed = e.ty.origin != TextOrigin::Checked
            && expr.ty.class().is_temporal()
            && expr.ty.item_name.is_known();
        if mixed {
            warn_of_members(cx, expr, list);
            return match x.is_null() {
                true => Ok(None),
                false => cx.silently(|cx| in_param_of(cx, e, (expr, x), kinds, list, negated)),
            };
        }
        if x.is_null() {
            members_beside_null(cx, e, expr, kinds[0], list);
            return Ok(None);
        }
        let lone = e.ty.origin == TextOrigin::Checked && cx.st.params.list(list).0.len() == 1;
        return match has_warned(cx, e) || lone && !is_first_use(cx, e) {
            true => cx.silently(|cx| in_param_of(cx, e, (expr, x), kinds, list, negated)),
            false => in_param_of(cx, e, (expr, x), kinds, list, negated),
        };
    }
    let values: SmallVec<[Val<'a>; 4]> =
        left.iter().map(|l| cx.val(l)).collect::<Result<_, _>>()?;
    let (mut members, width) = cx.st.params.list(list);
    let mut unknown = false;
    let width = width.max(1);
    let several = members.len() > width;
    if members.len() / width > WALKED_MAX && width == left.len() {
        let id = std::ptr::from_ref(e) as usize;
        let kind_of = |i: usize, ty: &ExprType| row_kind(cx, &left[i], ty, kinds[i], true);
        let prepare =
            |prepared: &mut PreparedList| prepared.prepare_param_rows(cx, list, width, kind_of);
        let look = |prepared: &mut PreparedList| match prepared.form {
            ListForm::Rows => prepared.has_row(cx, left, &values),
            _ => None,
        };
        if let Some(found) = cx.st.lists.with(id, prepare, look) {
            return Ok(Some(found != negated));
        }
    }
    for r in 0..members.len() / width {
        let row: SmallVec<[ValueRef<'_>; 4]> = members.by_ref().take(width).collect();
        let mut result = Some(true);
        for (i, (((x, l), m), kind)) in values.iter().zip(left).zip(&row).zip(kinds).enumerate() {
            let m = Val::from_ref(*m);
            let ty = member_type(cx, list, r * width + i, &m);
            let m = match several {
                true => row_member(cx, m, &ty, &l.ty.col),
                false => m,
            };
            let kind = row_kind(cx, l, &ty, *kind, several);
            match order(cx, kind, (x, &l.ty), (&m, &ty)) {
                Some(Ordering::Equal) => {}
                Some(_) => {
                    result = Some(false);
                    break;
                }
                None => result = None,
            }
        }
        match result {
            Some(true) => return Ok(Some(!negated)),
            None => unknown = true,
            Some(false) => {}
        }
    }
    Ok(in_result(false, unknown, negated))
}

/// Converts the texts of a list parameter whose operand is NULL: see [`evaluated_beside_null`].
fn members_beside_null(cx: &EvalCx<'_>, e: &Expr, expr: &Expr, kind: CmpKind, list: u32) {
    let exact = matches!(expr.ty.class(), Class::Int | Class::Decimal);
    let (members, _) = cx.st.params.list(list);
    if !exact || kind != CmpKind::Double || e.ty.origin == TextOrigin::Checked || members.len() == 1
    {
        return;
    }
    for (i, v) in members.map(Val::from_ref).enumerate() {
        if matches!(v, Val::Bytes(_)) {
            let _ = convert::to_f64(cx, &v, &member_type(cx, list, i, &v));
        }
    }
}

/// As [`in_param`], for a list of single values, with the value of the operand `expr`.
fn in_param_of<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    (expr, x): (&'a Expr, Val<'a>),
    kinds: &[CmpKind],
    list: u32,
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    if kinds[0] == CmpKind::DateTime && expr.ty.class().is_temporal() {
        refuse_only_member(cx, list, &expr.ty.col)?;
    }
    let several = || cx.st.params.list(list).0.len() > 1;
    let column = matches!(expr.kind, ExprKind::Column(_) | ExprKind::Outer { .. });
    let lone_year = convert::is_year(&expr.ty.col) && column && !several();
    let id = std::ptr::from_ref(e) as usize;
    let look = |prepared: &mut PreparedList| {
        let found = match (prepared.form, kinds[0]) {
            (ListForm::Ints, _) => {
                Some(convert::to_integer(cx, &x, &expr.ty).is_some_and(|v| prepared.has_int(v)))
            }
            (ListForm::Keys, CmpKind::String(collation)) => {
                let text = convert::to_text(cx, x.clone(), &expr.ty, collation);
                let text = text.unwrap_or_default();
                Some(prepared.has_key(|key| collation.known().sort_key(&text, key)))
            }
            (ListForm::Kinds, _) if several() => prepared.has_value(cx, expr, (&x, &expr.ty)),
            _ => None,
        };
        (found, prepared.has_null)
    };
    let kind_of = |ty: &ExprType| listed_kind(cx, expr, ty, kinds[0], list);
    let prepare =
        |prepared: &mut PreparedList| prepared.prepare(cx, kinds[0], list, &expr.ty, kind_of);
    let (found, has_null) = cx.st.lists.with(id, prepare, look);
    let found = match found {
        Some(found) if !lone_year => found,
        _ => {
            let (members, _) = cx.st.params.list(list);
            let several = members.len() > 1;
            let mixed = LazyCell::new(|| has_numbers(cx, list));
            let mut is_read = false;
            members.map(Val::from_ref).enumerate().any(|(i, m)| {
                let ty = member_type(cx, list, i, &m);
                let kind = listed_kind(cx, expr, &ty, kinds[0], list);
                let time_point = matches!(kind, CmpKind::DateTime | CmpKind::Time);
                let listed = match several && time_point {
                    true => listed_time_point(cx, m, &ty, &expr.ty.col, false),
                    false => Listed::Value(m),
                };
                let Listed::Value(m) = listed else {
                    return false;
                };
                let dates = kind == CmpKind::DateTime && expr.ty.class() == Class::Date;
                if several && dates && is_no_date(cx, &m, &ty) && !*mixed {
                    return false;
                }
                let times = several && kind == CmpKind::Time;
                if times && is_no_time(cx, &m, &ty) && *mixed {
                    return false;
                }
                let (m, ty) = match column && !several {
                    true => lone_member(cx, &ty, m, &expr.ty.col),
                    false => (m, ty),
                };
                let kind = if lone_year { CmpKind::Int } else { kind };
                let (a, b) = ((&x, &expr.ty), (&m, &ty));
                let number = expr.ty.class().is_number() && kind == CmpKind::Double;
                let is_prepared = |prepared: &mut PreparedList| prepared.form == ListForm::Kinds;
                // As in `walked`, a text beside numbers warns once.
                let reads = kind == CmpKind::Double && matches!(x, Val::Bytes(_));
                let again = is_read;
                is_read |= reads;
                let found = match several {
                    true if reads && again => cx.silently(|cx| member_order(cx, kind, a, b, true)),
                    true => member_order(cx, kind, a, b, true),
                    // The text has warned when the list was prepared.
                    false
                        if number
                            && matches!(m, Val::Bytes(_))
                            && cx.st.lists.with(id, |_| {}, is_prepared) =>
                    {
                        cx.silently(|cx| order(cx, kind, a, b))
                    }
                    false => order(cx, kind, a, b),
                };
                if same_bits(&x, &m) && expr.ty.class() == Class::Int && is_of_several(cx, list) {
                    return true;
                }
                exact(cx, kind, found, (expr, &x), (|| true, &m)) == Some(Ordering::Equal)
            })
        }
    };
    Ok(in_result(found, has_null, negated))
}

/// Evaluates the disjunction `e` of `members` by its sorted ranges. `None`: it does not consist of
/// ranges of one column.
pub(crate) fn in_ranges<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    members: &'a [Expr],
) -> Result<Option<Option<bool>>, SqlError> {
    if members.len() < RANGES_MIN {
        return Ok(None);
    }
    let Some(column) = column_of(&members[0]) else {
        return Ok(None);
    };
    let constant = |e: &Expr| match &e.kind {
        ExprKind::Const(v) => integer(v.as_ref()),
        ExprKind::Param(n) => integer(cx.st.params.get(*n)),
        _ => None,
    };
    let id = std::ptr::from_ref(e) as usize;
    let prepare = |prepared: &mut PreparedList| {
        prepared.prepare_ranges(members.iter().map(|m| range_of(m, column, &constant)));
    };
    if cx.st.lists.with(id, prepare, |prepared| prepared.form) != ListForm::Ranges {
        return Ok(None);
    }
    let value = match cx.val(column)? {
        Val::Null => return Ok(Some(None)),
        Val::Int(v) => i128::from(v),
        Val::UInt(v) => i128::from(v),
        _ => return Ok(None),
    };
    let look = |prepared: &mut PreparedList| prepared.has_in_range(value);
    Ok(Some(Some(cx.st.lists.with(id, |_| {}, look))))
}

fn integer(v: ValueRef<'_>) -> Option<i128> {
    match v {
        ValueRef::Int(v) => Some(v.into()),
        ValueRef::UInt(v) => Some(v.into()),
        _ => None,
    }
}
