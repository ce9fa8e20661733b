//! Binding an access path: values become encoded points and ranges.
//!
//! A value that the column's type cannot hold exactly is never rounded into a match: an equality with it finds nothing, a bound moves to
//! the nearest value on its own side. Where not even that is certain, the bound is left open and [`Bound::exact`] is false, so that the
//! access path's conditions are tested on the rows.

use nfold_engine::{Bound as KeyBound, KeyRange, PointSet, Table};
use nfold_plan::bind::is_constant;
use nfold_plan::expr::{Class, Expr, ExprType};
use nfold_plan::query::{AccessKind, PointPart, RangePart};
use nfold_types::key::{KeyLayout, KeyPart};
use nfold_types::{ColumnType, Decimal, SqlError, Timestamp, TypeKind, Value, ValueRef};

use crate::eval::{EvalCx, Val, compare, convert};

/// A value as a key part needs it.
#[derive(Debug, Clone, PartialEq)]
enum KeyValue {
    Exact(Value),
    /// Between this value and the next greater one.
    Above(Value),
    /// Less than every value of the column.
    BelowAll,
    /// Greater than every value of the column.
    AboveAll,
    /// NULL, or nothing that compares with the column at all.
    Nothing,
    /// No idea: test the rows.
    Unknown,
}

/// A bound access path.
#[derive(Debug, Default)]
pub(crate) struct BoundAccess {
    pub points: PointSet,
    /// In key order, disjoint.
    pub ranges: Vec<KeyRange>,
    /// The conditions of the access path hold for every row found.
    pub exact: bool,
    /// A member cannot be looked for by key: everything is read and tested.
    unkeyed: bool,
    scratch: Scratch,
}

impl BoundAccess {
    /// Bytes that it holds, near enough.
    pub fn memory(&self) -> usize {
        self.points.memory()
            + self.ranges.capacity() * size_of::<KeyRange>()
            + self.scratch.arena.capacity()
            + self.scratch.members.capacity() * size_of::<(u32, u32)>()
    }
}

/// Encoded members of the key parts, before they are multiplied.
#[derive(Debug, Default)]
struct Scratch {
    arena: Vec<u8>,
    members: Vec<(u32, u32)>,
    /// For each group of parts: its members.
    groups: Vec<(u32, u32)>,
    key: Vec<u8>,
}

/// Points are read by `get_many`, ranges one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundKind {
    Points,
    Ranges,
    Empty,
}

fn key_error(e: &nfold_types::key::KeyError) -> SqlError {
    SqlError::with_message(
        nfold_types::ErrorCode::ER_UNKNOWN_ERROR,
        format!("key: {e}"),
    )
}

fn whole_number(v: i128, ty: &ColumnType) -> KeyValue {
    let (min, max) = match ty.kind {
        TypeKind::Bit(n) => (0, (1i128 << n) - 1),
        // '0000' lies below the others.
        TypeKind::Year => (0, 2155),
        _ => ty
            .int_range()
            .unwrap_or((i128::from(i64::MIN), i128::from(u64::MAX))),
    };
    let unsigned = ty.unsigned || matches!(ty.kind, TypeKind::Bit(_) | TypeKind::Year);
    if v < min {
        KeyValue::BelowAll
    } else if v > max {
        KeyValue::AboveAll
    } else if unsigned {
        KeyValue::Exact(Value::UInt(v as u64))
    } else {
        KeyValue::Exact(Value::Int(v as i64))
    }
}

fn integer_key(cx: &EvalCx<'_>, v: &Val<'_>, from: &ExprType, ty: &ColumnType) -> KeyValue {
    let as_decimal = |d: &Decimal| {
        let Some(floor) = d.floor() else {
            return KeyValue::Unknown;
        };
        let whole = match (floor.to_i64(), floor.to_u64()) {
            (Some(i), _) => i128::from(i),
            (None, Some(u)) => i128::from(u),
            (None, None) if d.is_negative() => return KeyValue::BelowAll,
            (None, None) => return KeyValue::AboveAll,
        };
        match whole_number(whole, ty) {
            KeyValue::Exact(v) if floor != *d => KeyValue::Above(v),
            other => other,
        }
    };
    match v {
        Val::Int(i) => whole_number(i128::from(*i), ty),
        Val::UInt(u) => whole_number(i128::from(*u), ty),
        Val::Decimal(d) => as_decimal(d),
        Val::Bytes(_) if convert::binary_number(from) => match convert::to_integer(cx, v, from) {
            Some(i) => whole_number(i, ty),
            None => KeyValue::Nothing,
        },
        // A hexadecimal or bit literal is a number here.
        Val::Bytes(bytes) if convert::binary_number(from) => {
            whole_number(i128::from(convert::bytes_as_number(bytes)), ty)
        }
        Val::Bytes(text) => {
            // A string that is an integer in full; another number keeps its fraction.
            let parsed = nfold_types::convert::number::parse_decimal(text);
            if parsed.truncated {
                let _ = convert::to_f64(cx, v, from);
            }
            as_decimal(&parsed.value)
        }
        Val::Double(_) | Val::Float(_) => match convert::to_f64(cx, v, from) {
            Some(f) if f.is_finite() && f.abs() < 9e15 => match whole_number(f.floor() as i128, ty)
            {
                KeyValue::Exact(v) if f.floor() != f => KeyValue::Above(v),
                other => other,
            },
            Some(f) if f < -1e20 => KeyValue::BelowAll,
            Some(f) if f > 1e20 => KeyValue::AboveAll,
            _ => KeyValue::Unknown,
        },
        _ => match convert::to_integer(cx, v, from) {
            Some(i) => whole_number(i, ty),
            None => KeyValue::Nothing,
        },
    }
}

/// `v` as a value of a column of type `ty`.
fn key_value(cx: &EvalCx<'_>, v: &Val<'_>, from: &ExprType, ty: &ColumnType) -> KeyValue {
    if v.is_null() {
        return KeyValue::Nothing;
    }
    match (&ty.kind, Class::of(ty)) {
        (_, Class::Int) => integer_key(cx, v, from, ty),
        (TypeKind::Decimal { precision, scale }, _) => {
            let Some(d) = convert::to_decimal(cx, v, from) else {
                return KeyValue::Nothing;
            };
            if d.int_digits() > u32::from(precision - scale) {
                return if d.is_negative() {
                    KeyValue::BelowAll
                } else {
                    KeyValue::AboveAll
                };
            }
            if ty.unsigned && d.is_negative() && !d.is_zero() {
                return KeyValue::BelowAll;
            }
            let cut = d.truncate(i32::from(*scale));
            let Some(scaled) = cut.rescale(*scale) else {
                return KeyValue::Unknown;
            };
            if scaled == d {
                KeyValue::Exact(Value::Decimal(scaled))
            } else {
                KeyValue::Unknown
            }
        }
        (TypeKind::Double, _) => convert::to_f64(cx, v, from)
            .map_or(KeyValue::Nothing, |f| KeyValue::Exact(Value::Double(f))),
        (TypeKind::Float, _) => match convert::to_f64(cx, v, from) {
            None => KeyValue::Nothing,
            Some(f) if f64::from(f as f32) == f => KeyValue::Exact(Value::Float(f as f32)),
            Some(_) => KeyValue::Unknown,
        },
        (_, Class::String) => match convert::to_text(cx, v.clone(), from, ty.collation) {
            None => KeyValue::Nothing,
            Some(text) => KeyValue::Exact(Value::Bytes(text.into_owned())),
        },
        (TypeKind::Date, _) => match compare::date_side(cx, (v, from), ty) {
            None => KeyValue::Unknown,
            Some(d) if d.packed() == d.date().at_midnight().packed() => {
                KeyValue::Exact(Value::Date(d.date()))
            }
            Some(d) => KeyValue::Above(Value::Date(d.date())),
        },
        (TypeKind::DateTime(fsp), _) => match compare::date_side(cx, (v, from), ty) {
            None => KeyValue::Unknown,
            Some(d) => {
                let cut = d.truncate(*fsp);
                if cut == d {
                    KeyValue::Exact(Value::DateTime(cut))
                } else {
                    KeyValue::Above(Value::DateTime(cut))
                }
            }
        },
        (TypeKind::Timestamp(fsp), _) => timestamp_key(cx, v, from, ty, *fsp),
        (TypeKind::Time(fsp), _) => match compare::time_side(cx, (v, from)) {
            None => KeyValue::Unknown,
            Some(t) if t.truncate(*fsp) == t => KeyValue::Exact(Value::Time(t.truncate(*fsp))),
            Some(_) => KeyValue::Unknown,
        },
        _ => KeyValue::Unknown,
    }
}

fn timestamp_key(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    from: &ExprType,
    ty: &ColumnType,
    fsp: u8,
) -> KeyValue {
    let d = match compare::date_side(cx, (v, from), ty) {
        None => return KeyValue::Unknown,
        Some(d) => d,
    };
    if d.packed() == 0 {
        return KeyValue::Exact(Value::Timestamp(Timestamp::ZERO));
    }
    let cut = d.truncate(fsp);
    match cx.env().time_zone().to_instant(cut) {
        Some((at, true)) if cut == d => {
            KeyValue::Exact(Value::Timestamp(Timestamp::from_micros(at.micros(), fsp)))
        }
        Some((at, true)) => {
            KeyValue::Above(Value::Timestamp(Timestamp::from_micros(at.micros(), fsp)))
        }
        _ => KeyValue::Unknown,
    }
}

impl BoundAccess {
    /// Binds `kind` with the rows of `cx` as the outer ones.
    pub fn bind<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        table: &Table,
        index: usize,
        kind: &'a AccessKind,
    ) -> Result<BoundKind, SqlError> {
        self.points.clear();
        self.ranges.clear();
        self.exact = true;
        self.unkeyed = false;
        let layout = table.key_layout(index);
        match kind {
            AccessKind::Full => {
                self.ranges.push(KeyRange::all());
                Ok(BoundKind::Ranges)
            }
            AccessKind::Points(parts) => {
                let any = self.encode_groups(cx, layout, parts)?;
                if self.unkeyed {
                    self.exact = false;
                    self.ranges.push(KeyRange::all());
                    return Ok(BoundKind::Ranges);
                }
                if !any {
                    return Ok(BoundKind::Empty);
                }
                let points = &mut self.points;
                product(&mut self.scratch, &mut |key| points.push(key));
                self.points.seal();
                Ok(if self.points.is_empty() {
                    BoundKind::Empty
                } else {
                    BoundKind::Points
                })
            }
            AccessKind::Range { prefix, range } => {
                let any = self.encode_groups(cx, layout, prefix)?;
                if self.unkeyed {
                    self.exact = false;
                    self.ranges.push(KeyRange::all());
                    return Ok(BoundKind::Ranges);
                }
                if !any {
                    return Ok(BoundKind::Empty);
                }
                let Some(bounds) = self.range(cx, layout, prefix.len(), range)? else {
                    return Ok(BoundKind::Empty);
                };
                let points = &mut self.points;
                product(&mut self.scratch, &mut |key| points.push(key));
                self.points.seal();
                for key in self.points.iter() {
                    self.ranges.push(bounds.under(key));
                }
                Ok(BoundKind::Ranges)
            }
            AccessKind::Ranges(list) => {
                let mut all = Vec::with_capacity(list.len());
                for range in list {
                    if let Some(bounds) = self.range(cx, layout, 0, range)? {
                        all.push(bounds.under(&[]).as_bytes());
                    }
                }
                self.ranges = merge(all);
                Ok(if self.ranges.is_empty() {
                    BoundKind::Empty
                } else {
                    BoundKind::Ranges
                })
            }
            AccessKind::Source | AccessKind::Hash { .. } | AccessKind::Empty => {
                Ok(BoundKind::Empty)
            }
        }
    }

    /// Encodes the members of each part. False: one part has none, so nothing can be found.
    fn encode_groups<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        layout: &KeyLayout,
        parts: &'a [PointPart],
    ) -> Result<bool, SqlError> {
        self.scratch.arena.clear();
        self.scratch.members.clear();
        self.scratch.groups.clear();
        let mut at = 0;
        while at < parts.len() {
            let start = self.scratch.members.len() as u32;
            let taken = match &parts[at] {
                PointPart::List { of: 2.., .. } | PointPart::Rows { .. } => {
                    self.encode_rows(cx, layout, parts, at)?
                }
                single => {
                    self.encode_single(cx, layout, at, single)?;
                    1
                }
            };
            let end = self.scratch.members.len() as u32;
            if start == end {
                return Ok(false);
            }
            self.scratch.groups.push((start, end));
            at += taken;
        }
        Ok(true)
    }

    fn encode_single<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        layout: &KeyLayout,
        at: usize,
        part: &'a PointPart,
    ) -> Result<(), SqlError> {
        let s = &mut self.scratch;
        match part {
            PointPart::Eq { expr, null_safe } => {
                let v = cx.val(expr)?;
                let ty = &layout.parts()[at].ty;
                let v = match ty.is_temporal() {
                    true => match moment(cx, (expr, v), ty, true, !*null_safe)? {
                        Some(v) => v,
                        None => return Ok(()),
                    },
                    false => v,
                };
                member(s, cx, layout, at, &v, &expr.ty, *null_safe)
            }
            PointPart::In(list) => list.iter().try_for_each(|e| {
                let ty = &layout.parts()[at].ty;
                let v = cx.val(e)?;
                let date = ty.kind == TypeKind::Date;
                if date
                    && compare::is_no_date(cx, &v, &e.ty)
                    && compare::constant_dates(list.iter())
                {
                    return Ok(());
                }
                let v = listed(cx, v, &e.ty, ty);
                member(s, cx, layout, at, &v, &e.ty, false)
            }),
            PointPart::List { list, .. } => {
                let ty = &layout.parts()[at].ty;
                let direct = direct_kind(ty);
                let dates = matches!(Class::of(ty), Class::Date | Class::DateTime);
                if let (true, 1, Some(only)) = (
                    dates,
                    cx.st.params.list(*list).0.len(),
                    cx.st.params.list(*list).0.next(),
                ) {
                    let v = Val::from_ref(only);
                    let from = compare::member_type(cx, *list, 0, &v);
                    compare::refuse_text(cx, &v, &from, ty)?;
                }
                let several = cx.st.params.list(*list).0.len() > 1;
                for (i, value) in cx.st.params.list(*list).0.enumerate() {
                    if direct.is_some_and(|d| d(&value, ty)) {
                        let from = s.arena.len() as u32;
                        layout
                            .encode_part(at, value, &mut s.arena)
                            .map_err(|e| key_error(&e))?;
                        s.members.push((from, s.arena.len() as u32));
                        continue;
                    }
                    let v = Val::from_ref(value);
                    let from = compare::member_type(cx, *list, i, &v);
                    let date = several && ty.kind == TypeKind::Date;
                    if date && compare::is_no_date(cx, &v, &from) {
                        continue;
                    }
                    let v = if several {
                        listed(cx, v, &from, ty)
                    } else if ty.is_temporal() {
                        // A list of one is a comparison.
                        let v = compare::as_column(cx, &from, v, ty, false);
                        compare::rounded(cx, v, &from, ty)
                    } else {
                        v
                    };
                    member(s, cx, layout, at, &v, &from, false)?;
                }
                Ok(())
            }
            PointPart::Rows { .. } => Ok(()),
        }
    }

    /// Row constructors: the parts from `at` on that belong together, encoded row by row. Gives how many parts they are.
    fn encode_rows<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        layout: &KeyLayout,
        parts: &'a [PointPart],
        at: usize,
    ) -> Result<usize, SqlError> {
        let s = &mut self.scratch;
        let mut taken = 0;
        let same = |p: &PointPart| match (&parts[at], p) {
            (PointPart::List { list: a, .. }, PointPart::List { list: b, of, .. }) => {
                a == b && *of > 1
            }
            (PointPart::Rows { rows: a, .. }, PointPart::Rows { rows: b, .. }) => {
                std::sync::Arc::ptr_eq(a, b) || a == b
            }
            _ => false,
        };
        while parts.get(at + taken).is_some_and(same) {
            taken += 1;
        }
        let values: Vec<ValueRef<'_>> = match &parts[at] {
            PointPart::List { list, .. } => cx.st.params.list(*list).0.collect(),
            _ => Vec::new(),
        };
        let count = match &parts[at] {
            PointPart::List { of, .. } => values.len() / (*of).max(1),
            PointPart::Rows { rows, .. } => rows.len(),
            _ => 0,
        };
        for row in 0..count {
            let start = s.arena.len() as u32;
            let mut whole = true;
            for (n, part) in parts[at..at + taken].iter().enumerate() {
                let (v, ty) = match part {
                    PointPart::List { list, at: col, of } => {
                        let i = row * of + col;
                        let v = Val::from_ref(values[i]);
                        let ty = compare::member_type(cx, *list, i, &v);
                        (v, ty)
                    }
                    PointPart::Rows { rows, at: col } => {
                        let e = &rows[row][*col];
                        (cx.val(e)?, e.ty.clone())
                    }
                    _ => continue,
                };
                let part_ty = &layout.parts()[at + n].ty;
                // A number among strings compares as a number, which no key of strings can find.
                if Class::of(part_ty) == Class::String && !matches!(v, Val::Bytes(_) | Val::Null) {
                    self.unkeyed = true;
                }
                let key = key_value(cx, &v, &ty, part_ty);
                match key {
                    KeyValue::Exact(value) => layout
                        .encode_part(at + n, value.as_ref(), &mut s.arena)
                        .map_err(|e| key_error(&e))?,
                    _ => {
                        whole = false;
                        break;
                    }
                }
            }
            if whole {
                s.members.push((start, s.arena.len() as u32));
            } else {
                s.arena.truncate(start as usize);
            }
        }
        Ok(taken)
    }

    /// The bounds of a range over part `part`. `None`: nothing is inside.
    fn range<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        layout: &KeyLayout,
        part: usize,
        range: &'a RangePart,
    ) -> Result<Option<PartBounds>, SqlError> {
        let ty = &layout.parts()[part].ty;
        let mut lo = End::Open;
        let mut hi = End::Open;
        // BETWEEN takes a text that is no date as zero; the other comparisons refuse it.
        let between = matches!((&range.lo, &range.hi), (Some((_, true)), Some((_, true))));
        let refuses = !between;
        // `BETWEEN a AND a` is `= a`.
        let equal = range.between && same_constant(cx, range, ty)?;
        if let Some((e, inside)) = &range.lo {
            match self.bound(cx, e, ty, refuses, equal)? {
                KeyValue::Nothing | KeyValue::AboveAll => return Ok(None),
                KeyValue::BelowAll => {}
                KeyValue::Unknown => self.exact = false,
                KeyValue::Exact(v) => lo = End::At(v, *inside),
                KeyValue::Above(v) => lo = End::At(v, false),
            }
        }
        if let Some((e, inside)) = &range.hi {
            match self.bound(cx, e, ty, refuses, equal)? {
                KeyValue::Nothing | KeyValue::BelowAll => return Ok(None),
                KeyValue::AboveAll => {}
                KeyValue::Unknown => self.exact = false,
                KeyValue::Exact(v) => hi = End::At(v, *inside),
                KeyValue::Above(v) => hi = End::At(v, true),
            }
        }
        if let Some((pattern, escape)) = &range.like
            && let Some(prefix) = like_prefix(cx, pattern, escape.as_ref(), &layout.parts()[part])?
            && matches!((&lo, &hi), (End::Open, End::Open))
        {
            // What every match begins with, encoded.
            lo = End::Raw(prefix.clone());
            hi = End::Raw(prefix);
        }
        PartBounds::new(layout, part, &lo, &hi).map(Some)
    }

    fn bound<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        e: &'a Expr,
        ty: &ColumnType,
        refuses: bool,
        round: bool,
    ) -> Result<KeyValue, SqlError> {
        let v = cx.val(e)?;
        if !ty.is_temporal() {
            return Ok(key_value(cx, &v, &e.ty, ty));
        }
        Ok(match moment(cx, (e, v), ty, refuses, round)? {
            Some(v) => key_value(cx, &v, &e.ty, ty),
            None => KeyValue::Nothing,
        })
    }
}

/// An operand's value as a column of dates or times is looked up by it. `None`: it matches nothing. `refuses`: a constant text that is none is an
/// error. `round`: a constant is looked for as the column would keep it, and what is found is not compared again.
fn moment<'a>(
    cx: &EvalCx<'a>,
    (expr, v): (&'a Expr, Val<'a>),
    ty: &ColumnType,
    refuses: bool,
    round: bool,
) -> Result<Option<Val<'a>>, SqlError> {
    let (constant, marker) = (is_constant(expr), compare::is_marker(cx, expr));
    let v = if constant {
        compare::as_column(cx, &expr.ty, v, ty, marker)
    } else {
        v
    };
    let Some(v) = compare::settled(cx, expr, v, ty) else {
        return Ok(None);
    };
    let dates = matches!(Class::of(ty), Class::Date | Class::DateTime);
    if refuses && constant && !marker && dates {
        compare::refuse_text(cx, &v, &expr.ty, ty)?;
    }
    Ok(Some(if round && constant && !v.is_null() {
        compare::rounded(cx, v, &expr.ty, ty)
    } else {
        v
    }))
}

/// Whether both bounds are one and the same constant moment.
fn same_constant(cx: &EvalCx<'_>, range: &RangePart, ty: &ColumnType) -> Result<bool, SqlError> {
    let (Some((lo, _)), Some((hi, _))) = (&range.lo, &range.hi) else {
        return Ok(false);
    };
    if !matches!(Class::of(ty), Class::DateTime | Class::Time) {
        return Ok(false);
    }
    let constant = is_constant(lo) && is_constant(hi) && lo.ty == hi.ty;
    Ok(constant && cx.val(lo)? == cx.val(hi)?)
}

/// For the most frequent lists: whether a member is of the column's own kind and within its range, so that it needs no conversion.
type Direct = fn(&ValueRef<'_>, &ColumnType) -> bool;

fn direct_kind(ty: &ColumnType) -> Option<Direct> {
    if !matches!(
        ty.kind,
        TypeKind::TinyInt
            | TypeKind::SmallInt
            | TypeKind::MediumInt
            | TypeKind::Int
            | TypeKind::BigInt
    ) || ty.unsigned
    {
        return None;
    }
    Some(|v, ty| match v {
        ValueRef::Int(i) => ty
            .int_range()
            .is_some_and(|(lo, hi)| (lo..=hi).contains(&i128::from(*i))),
        _ => false,
    })
}

/// Adds one member of a key part, if it can be found at all.
/// A member of a list as it compares with a TIME column: a text is as much of a time as it is.
fn listed<'v>(cx: &EvalCx<'v>, v: Val<'v>, from: &ExprType, ty: &ColumnType) -> Val<'v> {
    match (&v, Class::of(ty)) {
        (Val::Bytes(_), Class::Time) => {
            Val::Time(convert::to_time(cx, &v, from).unwrap_or_default())
        }
        _ => v,
    }
}

fn member(
    s: &mut Scratch,
    cx: &EvalCx<'_>,
    layout: &KeyLayout,
    part: usize,
    v: &Val<'_>,
    from: &ExprType,
    null_safe: bool,
) -> Result<(), SqlError> {
    let start = s.arena.len() as u32;
    let value = if v.is_null() && null_safe {
        if !layout.parts()[part].nullable {
            return Ok(());
        }
        Value::Null
    } else {
        match key_value(cx, v, from, &layout.parts()[part].ty) {
            KeyValue::Exact(value) => value,
            // What lies between two values, or beyond all of them, equals none.
            _ => return Ok(()),
        }
    };
    layout
        .encode_part(part, value.as_ref(), &mut s.arena)
        .map_err(|e| key_error(&e))?;
    s.members.push((start, s.arena.len() as u32));
    Ok(())
}

/// Calls `f` with every combination of one member per group.
fn product(s: &mut Scratch, f: &mut dyn FnMut(&[u8])) {
    fn step(s: &Scratch, group: usize, key: &mut Vec<u8>, f: &mut dyn FnMut(&[u8])) {
        let Some(&(start, end)) = s.groups.get(group) else {
            return f(key);
        };
        let before = key.len();
        for &(a, b) in &s.members[start as usize..end as usize] {
            key.extend_from_slice(&s.arena[a as usize..b as usize]);
            step(s, group + 1, key, f);
            key.truncate(before);
        }
    }
    let mut key = std::mem::take(&mut s.key);
    key.clear();
    step(s, 0, &mut key, f);
    s.key = key;
}

/// One end of a range over a key part.
enum End {
    Open,
    /// Value, and whether it is inside.
    At(Value, bool),
    /// Encoded already: keys that begin with this are inside.
    Raw(Vec<u8>),
}

/// Bounds of one key part, encoded, to be put behind a prefix.
struct PartBounds {
    lo: KeyBound,
    hi: KeyBound,
}

impl PartBounds {
    fn new(layout: &KeyLayout, part: usize, lo: &End, hi: &End) -> Result<PartBounds, SqlError> {
        let encode = |end: &End| -> Result<KeyBound, SqlError> {
            Ok(match end {
                End::Open => KeyBound::Unbounded,
                End::Raw(bytes) => KeyBound::Included(bytes.clone()),
                End::At(value, inside) => {
                    let mut out = Vec::new();
                    layout
                        .encode_part(part, value.as_ref(), &mut out)
                        .map_err(|e| key_error(&e))?;
                    // A prefix stands for all values that begin so: the bound itself is never outside.
                    if *inside || layout.parts()[part].prefix_len != 0 {
                        KeyBound::Included(out)
                    } else {
                        KeyBound::Excluded(out)
                    }
                }
            })
        };
        let (mut low, mut high) = (encode(lo)?, encode(hi)?);
        let desc = layout.parts()[part].desc;
        if desc {
            std::mem::swap(&mut low, &mut high);
        }
        // NULL is in no range; it sorts first, last when descending.
        if layout.parts()[part].nullable {
            let mut null = Vec::new();
            layout
                .encode_part(part, ValueRef::Null, &mut null)
                .map_err(|e| key_error(&e))?;
            if desc && matches!(high, KeyBound::Unbounded) {
                high = KeyBound::Excluded(null);
            } else if !desc && matches!(low, KeyBound::Unbounded) {
                low = KeyBound::Excluded(null);
            }
        }
        Ok(PartBounds { lo: low, hi: high })
    }

    /// The range behind `prefix`.
    fn under(&self, prefix: &[u8]) -> KeyRange {
        let join = |b: &KeyBound| match b {
            KeyBound::Unbounded if prefix.is_empty() => KeyBound::Unbounded,
            KeyBound::Unbounded => KeyBound::Included(prefix.to_vec()),
            KeyBound::Included(k) => KeyBound::Included([prefix, k].concat()),
            KeyBound::Excluded(k) => KeyBound::Excluded([prefix, k].concat()),
        };
        KeyRange {
            lo: join(&self.lo),
            hi: join(&self.hi),
        }
    }
}

/// Puts ranges in order and melts those that meet, so that no row is found twice.
fn merge(mut all: Vec<(Vec<u8>, Option<Vec<u8>>)>) -> Vec<KeyRange> {
    all.retain(|(lo, hi)| hi.as_ref().is_none_or(|hi| lo < hi));
    all.sort();
    let mut out: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::with_capacity(all.len());
    for (lo, hi) in all {
        if let Some((_, last)) = out.last_mut() {
            let meets = last.as_ref().is_none_or(|l| *l >= lo);
            if meets {
                let longer = match (last.as_ref(), hi.as_ref()) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(l), Some(h)) => h > l,
                };
                if longer {
                    *last = hi;
                }
                continue;
            }
        }
        out.push((lo, hi));
    }
    out.into_iter()
        .map(|(lo, hi)| KeyRange {
            // Plain byte bounds: the lower one is inside, and so is everything that begins with it.
            lo: if lo.is_empty() {
                KeyBound::Unbounded
            } else {
                KeyBound::Included(lo)
            },
            hi: hi.map_or(KeyBound::Unbounded, KeyBound::Excluded),
        })
        .collect()
}

/// The key bytes that every match of a LIKE pattern begins with; `None` where it begins with a wildcard.
fn like_prefix<'a>(
    cx: &EvalCx<'a>,
    pattern: &'a Expr,
    escape: Option<&'a Expr>,
    part: &KeyPart,
) -> Result<Option<Vec<u8>>, SqlError> {
    let collation = part.ty.collation.known();
    let Some(pattern) = cx.text(pattern, part.ty.collation)? else {
        return Ok(None);
    };
    let escape = match escape {
        None => Some('\\'),
        Some(e) => compare::escape_char(cx.bytes(e)?.as_deref()),
    };
    let mut literal = Vec::new();
    collation.like_prefix(&pattern, escape, &mut literal);
    if part.prefix_len != 0 {
        let keep = collation
            .char_prefix(&literal, part.prefix_len as usize)
            .len();
        literal.truncate(keep);
    }
    if literal.is_empty() {
        return Ok(None);
    }
    let mut sort = Vec::new();
    collation.sort_key_prefix(&literal, &mut sort);
    if sort.is_empty() {
        return Ok(None);
    }
    // As a key part holds it: a mark for NOT NULL, zeros escaped, and no end mark, since more may follow.
    let mut key = Vec::with_capacity(sort.len() + 2);
    if part.nullable {
        key.push(1);
    }
    for b in sort {
        key.push(b);
        if b == 0 {
            key.push(0xFF);
        }
    }
    if part.desc {
        key.iter_mut().for_each(|b| *b = !*b);
    }
    Ok(Some(key))
}
