//! Binding an access path: evaluates its values and encodes them as keys and ranges.
//!
//! A value that the column's type cannot hold exactly is never rounded into a match: an equality
//! with it finds nothing, and a bound moves to the nearest value inside the range. If not even that
//! is certain, the bound is left open and [`Bound::exact`] is false, so that the conditions of the
//! access path are tested on the rows.

mod range;
mod suffix;
mod value;

use nfold_engine::{EqualityKeys, KeyBytes, KeyRange, Table};
use nfold_plan::expr::is_constant;
use nfold_plan::expr::{Class, CmpKind, ElementTarget, Expr, ExprKind, ExprType};
use nfold_plan::fulltext::MatchCall;
use nfold_plan::query::{AccessKind, PointPart, RangePart};
use nfold_types::convert::number;
use nfold_types::key::KeyLayout;
use nfold_types::{ColumnType, SqlError, TypeKind, Value, ValueRef};
use smallvec::SmallVec;
use std::cell::LazyCell;

use super::eval::array_elements;
use super::eval::compare::is_exact_constant;
use super::eval::prepared::{ListForm, PreparedList};
use super::eval::temporal_list::numbers_between;
use super::eval::{EvalCx, Val, compare, convert};
use super::func::search as full_text_search;
pub(crate) use suffix::Suffixes;

use range::{ByteRange, End, PartBounds, like_prefix, merge};
use value::{Integers, KeyValue, key_value, listed, time_point, time_point_member};

/// A bound access path.
#[derive(Debug, Default)]
pub(crate) struct BoundAccess {
    pub points: EqualityKeys,
    /// In key order, and disjoint.
    pub ranges: Vec<KeyRange>,
    /// Of a full-text search: whether a row may have several entries in the ranges.
    pub repeats: bool,
    /// Whether the conditions of the access path hold for every row found.
    pub exact: bool,
    /// Whether the members cannot be looked up by key, or are too many for that. All rows are read
    /// and tested then.
    pub unkeyed: bool,
    scratch: Scratch,
}

impl BoundAccess {
    /// The memory that it holds, approximately, in bytes.
    pub fn memory(&self) -> usize {
        self.points.memory()
            + self.ranges.capacity() * size_of::<KeyRange>()
            + self.scratch.arena.capacity()
            + self.scratch.members.capacity() * size_of::<(u32, u32)>()
            + self.scratch.words.capacity() * size_of::<u64>()
    }
}

/// The encoded members of the key parts, before they are combined.
#[derive(Debug, Default)]
struct Scratch {
    arena: Vec<u8>,
    members: Vec<(u32, u32)>,
    /// For each group of parts: the range of its members in `members`.
    groups: Vec<(u32, u32)>,
    /// The members of one group as words, and which group that is.
    words: Vec<u64>,
    word_group: Option<WordGroup>,
    /// Inexact members of the last group, each as a range between two values: the offset of its
    /// first value in `arena`, and where the two values end.
    near: Vec<(u32, u32, u32)>,
    key: Vec<u8>,
}

/// A group of integers, as in most lists: the first `len` bytes of [`Scratch::words`].
#[derive(Debug, Clone, Copy)]
struct WordGroup {
    group: usize,
    len: usize,
}

impl Scratch {
    fn clear(&mut self) {
        self.arena.clear();
        self.members.clear();
        self.groups.clear();
        self.near.clear();
        self.words.clear();
        self.word_group = None;
    }

    /// Stores members of part `at` as words, as long as they are integers that the column can hold.
    /// Returns how many members it stored. The caller adds the rest, if any, in the general form,
    /// to which the words are converted then.
    fn take_words<'v>(
        &mut self,
        layout: &KeyLayout,
        at: usize,
        members: impl ExactSizeIterator<Item = ValueRef<'v>> + Clone,
    ) -> usize {
        let integers = layout.integer_part(at);
        let (Some(integers), None) = (integers, self.word_group) else {
            return 0;
        };
        self.words.reserve(members.len());
        let count = members.len();
        let mut words = members.map_while(|value| integers.word(&value));
        self.words.extend(words.by_ref());
        self.word_group = Some(WordGroup {
            group: self.groups.len(),
            len: integers.key_len(),
        });
        let taken = self.words.len();
        if taken < count {
            self.spell_out();
        }
        taken
    }

    /// Converts the words to members in the general form.
    fn spell_out(&mut self) {
        let Some(WordGroup { group, len }) = self.word_group.take() else {
            return;
        };
        let start = self.members.len() as u32;
        for word in self.words.drain(..) {
            let from = self.arena.len();
            self.arena.extend_from_slice(&word.to_be_bytes()[..len]);
            self.members.push((from as u32, (from + len) as u32));
        }
        if let Some(members) = self.groups.get_mut(group) {
            *members = (start, self.members.len() as u32);
        }
    }

    /// Whether the members can remain words: no other group has several members, and none has
    /// ranges.
    fn words_are_alone(&self) -> bool {
        let mut groups = self.groups.iter().enumerate();
        let alone =
            |w: WordGroup| groups.all(|(n, &(start, end))| n == w.group || end - start == 1);
        self.near.is_empty() && self.word_group.is_some_and(alone)
    }
}

/// Keys are read by `get_many`, ranges one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundKind {
    Points,
    Ranges,
    /// Keys that an index merge finds.
    Merged,
    /// The values of the first parts of an index, one after the other.
    Skipped,
    Empty,
}

fn key_error(e: &nfold_types::key::KeyError) -> SqlError {
    SqlError::with_message(
        nfold_types::ErrorCode::ER_UNKNOWN_ERROR,
        format!("key: {e}"),
    )
}

impl BoundAccess {
    /// Binds a full-text search: the ranges of entries that find each matching row.
    fn bind_search<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        search: &'a Expr,
    ) -> Result<BoundKind, SqlError> {
        let call = match &search.kind {
            ExprKind::Call { args, .. } => MatchCall::of_args(args),
            _ => None,
        };
        let program = match call {
            Some(call) => full_text_search(cx, &call)?,
            None => None,
        };
        let candidates = program.as_ref().and_then(|p| p.candidates());
        let Some(candidates) = candidates else {
            return Ok(BoundKind::Empty);
        };
        self.repeats = candidates.prefixes.len() > 1 || candidates.truncated;
        let ranges = candidates.prefixes.into_iter().map(KeyRange::prefix);
        self.ranges.extend(ranges);
        Ok(BoundKind::Ranges)
    }

    /// Binds `kind`. The outer rows are those of `cx`.
    pub fn bind<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        table: &Table,
        index: usize,
        kind: &'a AccessKind,
    ) -> Result<BoundKind, SqlError> {
        self.points.clear();
        self.ranges.clear();
        self.repeats = false;
        self.exact = true;
        self.unkeyed = false;
        let layout = table.key_layout(index);
        match kind {
            // If an index merge or a skip scan cannot be used, all rows are read and tested.
            AccessKind::Full | AccessKind::Merge(_) | AccessKind::Skip(_) => {
                self.ranges.push(KeyRange::all());
                Ok(BoundKind::Ranges)
            }
            AccessKind::Points(parts) => {
                if let Some(bound) = self.bind_prefix(cx, layout, parts)? {
                    return Ok(bound);
                }
                product(&mut self.scratch, &mut self.points);
                self.points.seal();
                Ok(if self.points.is_empty() {
                    BoundKind::Empty
                } else {
                    BoundKind::Points
                })
            }
            AccessKind::Range { prefix, range } => {
                if let Some(bound) = self.bind_prefix(cx, layout, prefix)? {
                    return Ok(bound);
                }
                let Some(bounds) = self.range(cx, layout, prefix.len(), range)? else {
                    return Ok(BoundKind::Empty);
                };
                product(&mut self.scratch, &mut self.points);
                self.points.seal();
                for key in self.points.iter() {
                    self.ranges.push(bounds.under(key));
                }
                Ok(BoundKind::Ranges)
            }
            AccessKind::Ranges(list) => {
                let mut all = SmallVec::<[ByteRange; 2]>::new();
                for range in list {
                    if let Some(bounds) = self.range(cx, layout, 0, range)? {
                        all.push(bounds.under(&[]).as_bytes());
                    }
                }
                merge(&mut all, &mut self.ranges);
                Ok(if self.ranges.is_empty() {
                    BoundKind::Empty
                } else {
                    BoundKind::Ranges
                })
            }
            AccessKind::Fulltext(search) => self.bind_search(cx, search),
            AccessKind::Source | AccessKind::Hash { .. } | AccessKind::Empty => {
                Ok(BoundKind::Empty)
            }
        }
    }

    /// Encodes the equality lists of the first key parts. Returns what is read if they decide it
    /// alone: no row, or ranges whose rows are tested.
    #[inline]
    fn bind_prefix<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        layout: &KeyLayout,
        parts: &'a [PointPart],
    ) -> Result<Option<BoundKind>, SqlError> {
        let any = self.encode_groups(cx, layout, parts)?;
        if self.unkeyed {
            self.exact = false;
            self.ranges.push(KeyRange::all());
            return Ok(Some(BoundKind::Ranges));
        }
        if !any {
            return Ok(Some(BoundKind::Empty));
        }
        if !self.scratch.near.is_empty() {
            self.near_ranges(layout);
            return Ok(Some(BoundKind::Ranges));
        }
        Ok(None)
    }

    /// The last group has inexact members: the keys are replaced by ranges, whose rows are tested.
    fn near_ranges(&mut self, layout: &KeyLayout) {
        self.exact = false;
        let part = self.scratch.groups.len() - 1;
        let Some((start, end)) = self.scratch.groups.pop() else {
            return;
        };
        product(&mut self.scratch, &mut self.points);
        self.points.seal();
        let mut all = SmallVec::<[ByteRange; 2]>::new();
        let s = &self.scratch;
        let bytes = |from: u32, to: u32| &s.arena[from as usize..to as usize];
        for prefix in self.points.iter() {
            for &(from, to) in &s.members[start as usize..end as usize] {
                let bounds = PartBounds::between(bytes(from, to), bytes(from, to));
                all.push(bounds.under(prefix).as_bytes());
            }
            for &(from, middle, to) in &s.near {
                let (lo, hi) = (bytes(from, middle), bytes(middle, to));
                let bounds = match layout.parts()[part].desc {
                    false => PartBounds::between(lo, hi),
                    true => PartBounds::between(hi, lo),
                };
                all.push(bounds.under(prefix).as_bytes());
            }
        }
        merge(&mut all, &mut self.ranges);
    }

    /// Encodes the members of each part. Returns false if a part has none, so that no row can
    /// match.
    fn encode_groups<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        layout: &KeyLayout,
        parts: &'a [PointPart],
    ) -> Result<bool, SqlError> {
        self.scratch.clear();
        let mut at = 0;
        while at < parts.len() {
            let start = self.scratch.members.len() as u32;
            let words = self.scratch.words.len();
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
            let near = !self.scratch.near.is_empty();
            if start == end && !near && words == self.scratch.words.len() {
                return Ok(false);
            }
            self.scratch.groups.push((start, end));
            if near {
                break;
            }
            at += taken;
        }
        if !self.scratch.words_are_alone() {
            self.scratch.spell_out();
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
        let list = matches!(part, PointPart::In(_) | PointPart::List { .. });
        match list && cx.st.lists.members_warned.get() {
            true => cx.silently(|cx| self.encode_part(cx, layout, at, part)),
            false => self.encode_part(cx, layout, at, part),
        }
    }

    fn encode_part<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        layout: &KeyLayout,
        at: usize,
        part: &'a PointPart,
    ) -> Result<(), SqlError> {
        let s = &mut self.scratch;
        match part {
            PointPart::Eq { expr, null_safe } => equal(s, cx, layout, at, expr, *null_safe),
            PointPart::AnyEq(list) => list
                .iter()
                .try_for_each(|e| equal(s, cx, layout, at, e, false)),
            PointPart::In(list) => self.encode_members(cx, layout, at, list),
            PointPart::List { list, .. } => self.encode_list(cx, layout, at, *list),
            PointPart::Subquery { index, kind, most } => {
                self.encode_values(cx, layout, at, (*index, *kind, *most))
            }
            PointPart::Elements { value, to, most } => {
                let id = std::ptr::from_ref(part) as usize;
                self.encode_elements(cx, id, (value, to), *most)
            }
            PointPart::Rows { .. } => Ok(()),
        }
    }

    /// Encodes the members of a list of expressions.
    fn encode_members<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        layout: &KeyLayout,
        at: usize,
        list: &'a [Expr],
    ) -> Result<(), SqlError> {
        let s = &mut self.scratch;
        let ty = &layout.parts()[at].ty;
        let integers = Integers::of(ty);
        let mixed = LazyCell::new(|| list.iter().any(|e| e.ty.class().is_number()));
        // Integers bound to `?`, as most members are, are read without conversion.
        let bound = |e: &Expr| match e.kind {
            ExprKind::Param(n) => cx.st.params.get(n),
            _ => ValueRef::Null,
        };
        let as_words = s.take_words(layout, at, list.iter().map(bound));
        list.iter().skip(as_words).try_for_each(|e| {
            let v = cx.val(e)?;
            if let Some(value) = integers.as_ref().and_then(|i| i.member(&v.as_value_ref())) {
                return plain_member(s, layout, at, value);
            }
            let Some(v) = time_point_member(cx, v, &e.ty, ty, compare::is_marker(cx, e)) else {
                return Ok(());
            };
            let date = ty.kind == TypeKind::Date;
            if date && compare::is_no_date(cx, &v, &e.ty) && compare::constant_dates(list.iter()) {
                return Ok(());
            }
            let time = Class::of(ty) == Class::Time;
            if time && compare::is_no_time(cx, &v, &e.ty) && *mixed {
                return Ok(());
            }
            let v = listed(cx, v, &e.ty, ty);
            let value = (&v, &e.ty, is_constant_text(e, &v));
            if *mixed && list.len() > 1 && is_cut_number(&v, &e.ty, ty) {
                self.exact = false;
                return cx.silently(|cx| member(s, cx, layout, at, value, false));
            }
            member(s, cx, layout, at, value, false)
        })
    }

    /// Encodes the members of the list in a parameter slot.
    fn encode_list(
        &mut self,
        cx: &EvalCx<'_>,
        layout: &KeyLayout,
        at: usize,
        list: u32,
    ) -> Result<(), SqlError> {
        let ty = &layout.parts()[at].ty;
        let integers = Integers::of(ty);
        let dates = matches!(Class::of(ty), Class::Date | Class::DateTime);
        if let (true, 1, Some(only)) = (
            dates,
            cx.st.params.list(list).0.len(),
            cx.st.params.list(list).0.next(),
        ) {
            let v = Val::from_ref(only);
            let from = compare::member_type(cx, list, 0, &v);
            compare::refuse_text(cx, &v, &from, ty)?;
        }
        let several = cx.st.params.list(list).0.len() > 1;
        let mixed = LazyCell::new(|| compare::has_numbers(cx, list));
        let as_words = self
            .scratch
            .take_words(layout, at, cx.st.params.list(list).0);
        let s = &mut self.scratch;
        for (i, value) in cx.st.params.list(list).0.enumerate().skip(as_words) {
            if let Some(value) = integers.as_ref().and_then(|i| i.member(&value)) {
                plain_member(s, layout, at, value)?;
                continue;
            }
            let v = Val::from_ref(value);
            let from = compare::member_type(cx, list, i, &v);
            let v = match several {
                true => time_point_member(cx, v, &from, ty, false),
                false => Some(v),
            };
            let Some(v) = v else { continue };
            let date = several && ty.kind == TypeKind::Date;
            if date && compare::is_no_date(cx, &v, &from) {
                continue;
            }
            let time = several && Class::of(ty) == Class::Time;
            if time && compare::is_no_time(cx, &v, &from) && *mixed {
                continue;
            }
            let (v, from) = match several {
                true => (listed(cx, v, &from, ty), from),
                // IN with one member is a comparison.
                false => compare::lone_member(cx, &from, v, ty),
            };
            let v = match several || !ty.is_temporal() || cx.st.changes {
                true => v,
                false => compare::rounded(cx, v, &from, ty),
            };
            // A text that is no number warns when a row is compared with it, as in MySQL.
            if several && is_cut_number(&v, &from, ty) && *mixed {
                self.exact = false;
                cx.silently(|cx| member(s, cx, layout, at, (&v, &from, true), false))?;
                continue;
            }
            member(s, cx, layout, at, (&v, &from, true), false)?;
        }
        Ok(())
    }

    /// Encodes the elements of a constant operand of MEMBER OF, JSON_OVERLAPS or JSON_CONTAINS,
    /// unless there are more than `most`. `id` names the operand among prepared lists.
    fn encode_elements<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        id: usize,
        (value, to): (&'a Expr, &'a ElementTarget),
        most: usize,
    ) -> Result<(), SqlError> {
        let s = &mut self.scratch;
        let look = |known: &mut PreparedList| {
            // A row with all elements is found by the first of them. No row is found if one
            // is NULL, because arrays have no NULL. Without any element every row
            // qualifies, so the index is of no use.
            let count = match to.all {
                true if known.has_null => 0,
                true => 1,
                false => known.sorted_keys().len(),
            };
            let none = count > known.sorted_keys().len();
            if known.form != ListForm::Keys || none || count > most.max(1) {
                return false;
            }
            for key in known.sorted_keys().take(count) {
                let start = s.arena.len() as u32;
                s.arena.extend_from_slice(key);
                s.members.push((start, s.arena.len() as u32));
            }
            true
        };
        let are_keys = array_elements::with_elements(cx, id, (value, to), look)?;
        self.unkeyed |= !are_keys;
        Ok(())
    }

    /// Encodes the values of a subquery, unless there are too many.
    fn encode_values(
        &mut self,
        cx: &EvalCx<'_>,
        layout: &KeyLayout,
        at: usize,
        (index, kind, most): (u16, CmpKind, usize),
    ) -> Result<(), SqlError> {
        let ty = &layout.parts()[at].ty;
        let integers = Integers::of(ty);
        let (s, mut known) = (&mut self.scratch, true);
        let few = cx
            .st
            .subqueries
            .members(cx, index, kind, most, &mut |v, from| {
                if let Some(value) = integers.as_ref().and_then(|i| i.member(&v.as_value_ref())) {
                    return plain_member(s, layout, at, value);
                }
                known &= key_value(cx, v, from, ty, false) != KeyValue::Unknown;
                member(s, cx, layout, at, (v, from, false), false)
            })?;
        self.unkeyed |= !few || !known;
        Ok(())
    }

    /// Encodes row constructors, row by row, for the parts from `at` on that belong together.
    /// Returns the number of these parts.
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
        let (list, of) = match &parts[at] {
            PointPart::List { list, of, .. } => (*list, (*of).max(1)),
            _ => (u32::MAX, 1),
        };
        let (mut members, _) = cx.st.params.list(list);
        let count = match &parts[at] {
            PointPart::Rows { rows, .. } => rows.len(),
            _ => members.len() / of,
        };
        for row in 0..count {
            let values: SmallVec<[ValueRef<'_>; 4]> = members.by_ref().take(of).collect();
            let start = s.arena.len() as u32;
            let mut whole = true;
            for (n, part) in parts[at..at + taken].iter().enumerate() {
                let (v, ty, constant) = match part {
                    PointPart::List { list, at: col, of } => {
                        let v = Val::from_ref(values[*col]);
                        let ty = compare::member_type(cx, *list, row * of + col, &v);
                        (v, ty, true)
                    }
                    PointPart::Rows { rows, at: col } => {
                        let e = &rows[row][*col];
                        let v = cx.val(e)?;
                        let constant = is_constant_text(e, &v);
                        (v, e.ty.clone(), constant)
                    }
                    _ => continue,
                };
                let part_ty = &layout.parts()[at + n].ty;
                let v = match count > 1 {
                    true => compare::row_member(cx, v, &ty, part_ty),
                    false => v,
                };
                // A number among strings is compared as a number, which no string key can find.
                if Class::of(part_ty) == Class::String && !matches!(v, Val::Bytes(_) | Val::Null) {
                    self.unkeyed = true;
                }
                let key = key_value(cx, &v, &ty, part_ty, constant);
                self.unkeyed |= matches!(key, KeyValue::Near(..));
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

    /// The bounds of a range over part `part`. `None`: no value is inside.
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
        if range.between
            && ty.is_temporal()
            && let (Some((low, _)), Some((high, _))) = (&range.lo, &range.hi)
            && numbers_between(cx, ty, [low, high])?.is_some()
        {
            self.exact = false;
            let all = PartBounds::new(layout, part, &lo, &hi, &mut self.scratch.key);
            return all.map(Some);
        }
        // BETWEEN takes a string that is no date as zero; other comparisons refuse it.
        let refuses = !range.between;
        // `BETWEEN a AND a` is `= a`.
        let equal = range.between && !cx.st.changes && same_constant(cx, range, ty)?;
        if let Some((e, inside)) = &range.lo {
            match self.bound(cx, e, ty, refuses, equal)? {
                KeyValue::Nothing | KeyValue::AboveAll => return Ok(None),
                KeyValue::BelowAll => {}
                KeyValue::Unknown => self.exact = false,
                KeyValue::Near(v, _) => {
                    self.exact = false;
                    lo = End::At(v, true);
                }
                KeyValue::Exact(v) => lo = End::At(v, *inside),
                KeyValue::Above(v) => lo = End::At(v, false),
            }
        }
        if let Some((e, inside)) = &range.hi {
            match self.bound(cx, e, ty, refuses, equal)? {
                KeyValue::Nothing | KeyValue::BelowAll => return Ok(None),
                KeyValue::AboveAll => {}
                KeyValue::Unknown => self.exact = false,
                KeyValue::Near(_, v) => {
                    self.exact = false;
                    hi = End::At(v, true);
                }
                KeyValue::Exact(v) => hi = End::At(v, *inside),
                KeyValue::Above(v) => hi = End::At(v, true),
            }
        }
        if let Some((pattern, escape)) = &range.like
            && let Some(prefix) = like_prefix(cx, pattern, escape.as_ref(), &layout.parts()[part])?
            && matches!((&lo, &hi), (End::Open, End::Open))
        {
            // The encoded prefix of every match.
            let prefix = KeyBytes::from_vec(prefix);
            lo = End::Raw(prefix.clone());
            hi = End::Raw(prefix);
        }
        PartBounds::new(layout, part, &lo, &hi, &mut self.scratch.key).map(Some)
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
            let constant = is_constant_text(e, &v);
            // As in MySQL, each row warns again about the rest of the text behind the number.
            if let Val::Bytes(text) = &v
                && constant
                && Class::of(ty).is_number()
                && number::parse_double(text).truncated
            {
                self.exact = false;
            }
            return Ok(key_value(cx, &v, &e.ty, ty, constant));
        }
        Ok(match time_point(cx, (e, v), ty, refuses, round)? {
            Some(v) => key_value(cx, &v, &e.ty, ty, is_constant_text(e, &v)),
            None => KeyValue::Nothing,
        })
    }
}

/// Whether `e` is a constant and its value a string, which is as exact as the column it is compared
/// with. Only strings are checked.
fn is_constant_text(e: &Expr, v: &Val<'_>) -> bool {
    matches!(v, Val::Bytes(_)) && is_exact_constant(e)
}

/// Whether both bounds are the same temporal constant.
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

/// Adds a member of a key part that needs no conversion.
#[inline]
fn plain_member(
    s: &mut Scratch,
    layout: &KeyLayout,
    part: usize,
    value: ValueRef<'_>,
) -> Result<(), SqlError> {
    let start = s.arena.len() as u32;
    layout
        .encode_part(part, value, &mut s.arena)
        .map_err(|e| key_error(&e))?;
    s.members.push((start, s.arena.len() as u32));
    Ok(())
}

/// Adds the members that `=` or `<=>` finds.
fn equal<'a>(
    s: &mut Scratch,
    cx: &EvalCx<'a>,
    layout: &KeyLayout,
    part: usize,
    expr: &'a Expr,
    null_safe: bool,
) -> Result<(), SqlError> {
    let v = cx.val(expr)?;
    let ty = &layout.parts()[part].ty;
    let v = match ty.is_temporal() {
        true => match time_point(cx, (expr, v), ty, true, !null_safe && !cx.st.changes)? {
            Some(v) => v,
            None => return Ok(()),
        },
        false => v,
    };
    let constant = is_constant_text(expr, &v);
    member(s, cx, layout, part, (&v, &expr.ty, constant), null_safe)
}

/// Adds a member of a key part, if any value can match it.
fn member(
    s: &mut Scratch,
    cx: &EvalCx<'_>,
    layout: &KeyLayout,
    part: usize,
    (v, from, constant): (&Val<'_>, &ExprType, bool),
    null_safe: bool,
) -> Result<(), SqlError> {
    let start = s.arena.len() as u32;
    let value = if v.is_null() && null_safe {
        if !layout.parts()[part].nullable {
            return Ok(());
        }
        Value::Null
    } else {
        match key_value(cx, v, from, &layout.parts()[part].ty, constant) {
            KeyValue::Exact(value) => value,
            KeyValue::Near(lo, hi) => {
                let encode = |v: &Value, arena: &mut Vec<u8>| {
                    let done = layout.encode_part(part, v.as_ref(), arena);
                    done.map(|()| arena.len() as u32).map_err(|e| key_error(&e))
                };
                let middle = encode(&lo, &mut s.arena)?;
                let end = encode(&hi, &mut s.arena)?;
                s.near.push((start, middle, end));
                return Ok(());
            }
            // A value between two values of the column, or beyond all, equals none.
            _ => return Ok(()),
        }
    };
    layout
        .encode_part(part, value.as_ref(), &mut s.arena)
        .map_err(|e| key_error(&e))?;
    s.members.push((start, s.arena.len() as u32));
    Ok(())
}

/// Whether a value is a text beside a number of which only a part is a number.
fn is_cut_number(v: &Val<'_>, from: &ExprType, column: &ColumnType) -> bool {
    let Val::Bytes(text) = v else { return false };
    let number = Class::of(column).is_number() && !convert::binary_number(from);
    number && number::parse_double(text).truncated
}

/// Adds each combination of one member per group as a key.
fn product(s: &mut Scratch, points: &mut EqualityKeys) {
    let mut key = std::mem::take(&mut s.key);
    key.clear();
    let member = |&(a, b): &(u32, u32)| &s.arena[a as usize..b as usize];
    if let Some(WordGroup { group, len }) = s.word_group {
        // All other groups have one member.
        let only = |&(start, _): &(u32, u32)| member(&s.members[start as usize]);
        let (before, behind) = (&s.groups[..group], &s.groups[group + 1..]);
        before.iter().for_each(|g| key.extend_from_slice(only(g)));
        let middle = key.len();
        behind.iter().for_each(|g| key.extend_from_slice(only(g)));
        let (before, behind) = key.split_at(middle);
        if points.push_joined_words(before, (&s.words, len), behind) {
            s.key = key;
            return;
        }
        key.clear();
        s.spell_out();
    }
    // Groups of one member at the end add the same bytes to every key.
    let several = |&(start, end): &(u32, u32)| end - start > 1;
    let listed = s.groups.iter().rposition(several).map_or(0, |n| n + 1);
    let (groups, fixed) = s.groups.split_at(listed);
    let member = |&(a, b): &(u32, u32)| &s.arena[a as usize..b as usize];
    for (start, _) in fixed {
        key.extend_from_slice(member(&s.members[*start as usize]));
    }
    match groups {
        [] => points.push(&key),
        _ => combine(s, groups, key.len(), &mut key, points),
    }
    s.key = key;
}

/// Adds the combinations of `groups`, which is not empty. Each is put after `key[behind..]` and
/// before `key[..behind]`.
fn combine(
    s: &Scratch,
    groups: &[(u32, u32)],
    behind: usize,
    key: &mut Vec<u8>,
    points: &mut EqualityKeys,
) {
    let member = |&(a, b): &(u32, u32)| &s.arena[a as usize..b as usize];
    let members = |&(a, b): &(u32, u32)| &s.members[a as usize..b as usize];
    match groups {
        [] => {}
        [last] => {
            let (behind, before) = key.split_at(behind);
            points.push_joined(before, members(last).iter().map(member), behind);
        }
        [first, rest @ ..] => {
            let len = key.len();
            for m in members(first) {
                key.extend_from_slice(member(m));
                combine(s, rest, behind, key, points);
                key.truncate(len);
            }
        }
    }
}
