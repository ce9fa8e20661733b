//! IN: lists written out, lists of rows, and list parameters, which are prepared once per execution and searched.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use nfold_plan::collate::Operand;
use nfold_plan::expr::{Class, CmpKind, Coercibility, Expr, ExprKind, ExprType};
use nfold_types::{SqlError, Time};
use rustc_hash::FxHashMap;

use super::super::{EvalCx, Val, convert};
use super::moment::{as_column, is_no_date, refuse_text};
use super::{as_text, order};

/// The order of an operand and a member of its list. Texts among times are as much of a time as they are; with `zero`, one that is none
/// is 00:00:00.
pub(super) fn member_order(
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

/// `x IN (…)` so far: found, or a NULL that may be it.
pub(super) fn in_result(found: bool, unknown: bool, negated: bool) -> Option<bool> {
    if found {
        Some(!negated)
    } else if unknown {
        None
    } else {
        Some(negated)
    }
}

/// A list compared as times. What is no time is 00:00:00 among constants, and as the operand beside what is not constant; otherwise it
/// is equal to nothing.
pub(super) fn in_times<'a>(
    cx: &EvalCx<'a>,
    x: (&Val<'_>, &ExprType),
    list: &'a [(CmpKind, Expr)],
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    let constant = list.iter().all(|(_, m)| nfold_plan::bind::is_constant(m));
    let found = convert::to_time(cx, x.0, x.1);
    let left = found.unwrap_or_default().micros();
    let mut unknown = false;
    for (_, member) in list {
        let v = as_text(cx, cx.val(member)?, &member.ty);
        if v.is_null() {
            unknown = true;
            continue;
        }
        let equal = match convert::to_time(cx, &v, &member.ty) {
            _ if found.is_none() && constant => false,
            Some(time) => time.micros() == left,
            None if matches!(v, Val::Bytes(_)) => constant && left == 0,
            None => order(cx, CmpKind::Double, x, (&v, &member.ty)) == Some(Ordering::Equal),
        };
        if equal {
            return Ok(Some(!negated));
        }
    }
    Ok(in_result(false, unknown, negated))
}

pub(super) fn row_equal<'a>(
    cx: &EvalCx<'a>,
    left: &'a [Expr],
    row: &'a [(CmpKind, Expr)],
) -> Result<Option<bool>, SqlError> {
    let mut result = Some(true);
    for (l, (kind, r)) in left.iter().zip(row) {
        match order(cx, *kind, (&cx.val(l)?, &l.ty), (&cx.val(r)?, &r.ty)) {
            Some(Ordering::Equal) => {}
            Some(_) => return Ok(Some(false)),
            None => result = None,
        }
    }
    Ok(result)
}

/// The members of a list parameter in a form that is searched, not walked.
#[derive(Debug)]
enum ListSet {
    /// Sorted, without duplicates.
    Ints(Vec<i128>),
    /// Sorted sort keys.
    Keys(Vec<Vec<u8>>),
    /// Compared one by one.
    Walk,
}

#[derive(Debug)]
struct PreparedList {
    set: ListSet,
    has_null: bool,
}

/// Prepared lists of one execution, by the address of their expression.
#[derive(Debug, Default)]
pub struct ListCache {
    lists: RefCell<FxHashMap<usize, Rc<PreparedList>>>,
    /// Where each `RAND(constant)` stands in its sequence.
    pub(crate) sequences: RefCell<FxHashMap<usize, [u64; 2]>>,
}

impl ListCache {
    /// Forgets them, for the next execution.
    pub fn clear(&self) {
        self.lists.borrow_mut().clear();
        self.sequences.borrow_mut().clear();
    }
}

/// Type that member `i` of a list parameter is read as: that of its own value.
pub(crate) fn member_type(cx: &EvalCx<'_>, list: u32, i: usize, v: &Val<'_>) -> ExprType {
    match v {
        Val::Bytes(b) if cx.st.params.is_binary_member(list, i) => {
            nfold_plan::bind::hex_type(b.len() as u64)
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
        _ => ExprType::bigint(false),
    }
}

fn prepare_list(cx: &EvalCx<'_>, kind: CmpKind, list: u32) -> PreparedList {
    let (members, _) = cx.st.params.list(list);
    let has_null = members.clone().any(|v| v.is_null());
    let set = match kind {
        CmpKind::Int => {
            let mut all: Vec<i128> = members
                .enumerate()
                .filter_map(|(i, v)| {
                    let v = Val::from_ref(v);
                    convert::to_integer(cx, &v, &member_type(cx, list, i, &v))
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            ListSet::Ints(all)
        }
        CmpKind::String(collation) => {
            let mut all: Vec<Vec<u8>> = members
                .enumerate()
                .filter_map(|(i, v)| {
                    let v = Val::from_ref(v);
                    let ty = member_type(cx, list, i, &v);
                    let text = convert::to_text(cx, v, &ty, collation)?;
                    let mut key = Vec::new();
                    collation.known().sort_key(&text, &mut key);
                    Some(key)
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            ListSet::Keys(all)
        }
        _ => ListSet::Walk,
    };
    PreparedList { set, has_null }
}

/// How a member of type `ty` compares with `left`: where members are of several kinds, each in its own way.
fn member_kind(cx: &EvalCx<'_>, left: &Expr, ty: &ExprType, else_as: CmpKind) -> CmpKind {
    let side = match left.kind {
        ExprKind::Column(_) | ExprKind::Outer { .. } => Operand::Column,
        _ => Operand::Other,
    };
    let sides = [side, Operand::Constant];
    nfold_plan::collate::comparison(&left.ty, ty, sides, cx.env().collation(), "in")
        .unwrap_or(else_as)
}

pub(super) fn in_param<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    left: &'a [Expr],
    kinds: &[CmpKind],
    list: u32,
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    if let [expr] = left {
        let x = cx.val(expr)?;
        if x.is_null() {
            return Ok(None);
        }
        if let (CmpKind::DateTime, 1) = (kinds[0], cx.st.params.list(list).0.len()) {
            let only = cx.st.params.list(list).0.next().map(Val::from_ref);
            let only = only.unwrap_or_default();
            if expr.ty.class().is_temporal() {
                refuse_text(cx, &only, &member_type(cx, list, 0, &only), &expr.ty.col)?;
            }
        }
        let id = std::ptr::from_ref(e) as usize;
        let known = cx.st.lists.lists.borrow().get(&id).cloned();
        let prepared = known.unwrap_or_else(|| {
            let made = Rc::new(prepare_list(cx, kinds[0], list));
            cx.st.lists.lists.borrow_mut().insert(id, made.clone());
            made
        });
        let found = match (&prepared.set, kinds[0]) {
            (ListSet::Ints(all), _) => {
                convert::to_integer(cx, &x, &expr.ty).is_some_and(|v| all.binary_search(&v).is_ok())
            }
            (ListSet::Keys(all), CmpKind::String(collation)) => {
                let text = convert::to_text(cx, x, &expr.ty, collation).unwrap_or_default();
                let mut key = Vec::with_capacity(text.len() * 2);
                collation.known().sort_key(&text, &mut key);
                all.binary_search(&key).is_ok()
            }
            _ => {
                let (members, _) = cx.st.params.list(list);
                let several = members.len() > 1;
                members.map(Val::from_ref).enumerate().any(|(i, m)| {
                    let ty = member_type(cx, list, i, &m);
                    let kind = member_kind(cx, expr, &ty, kinds[0]);
                    let dates = kind == CmpKind::DateTime && expr.ty.class() == Class::Date;
                    if several && dates && is_no_date(cx, &m, &ty) {
                        return false;
                    }
                    let m = match expr.kind {
                        ExprKind::Column(_) | ExprKind::Outer { .. } if !several => {
                            as_column(cx, &ty, m, &expr.ty.col, false)
                        }
                        _ => m,
                    };
                    let (x, m) = ((&x, &expr.ty), (&m, &ty));
                    let found = match several {
                        true => member_order(cx, kind, x, m, true),
                        false => order(cx, kind, x, m),
                    };
                    found == Some(Ordering::Equal)
                })
            }
        };
        return Ok(in_result(found, prepared.has_null, negated));
    }
    let values: Vec<Val<'a>> = left.iter().map(|l| cx.val(l)).collect::<Result<_, _>>()?;
    let (members, width) = cx.st.params.list(list);
    let mut unknown = false;
    let members: Vec<_> = members.collect();
    let width = width.max(1);
    for (r, row) in members.chunks(width).enumerate() {
        let mut result = Some(true);
        for (i, (((x, l), m), kind)) in values.iter().zip(left).zip(row).zip(kinds).enumerate() {
            let m = Val::from_ref(*m);
            let ty = member_type(cx, list, r * width + i, &m);
            match order(cx, member_kind(cx, l, &ty, *kind), (x, &l.ty), (&m, &ty)) {
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
