//! IN lists prepared for binary search. A list is prepared at its first use in an execution, in
//! memory that the worker's statements share.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::thread::LocalKey;

use nfold_plan::expr::{ArithOp, Class, CmpKind, Expr, ExprKind, ExprType};
use rustc_hash::{FxHashMap, FxHashSet};

use nfold_types::convert::number;
use nfold_types::temporal::{DateFlags, parse};
use nfold_types::{CollationId, Value, ValueRef};
use smallvec::SmallVec;

use super::branches::Branches;
use super::compare::{as_text, is_beyond_doubles};
use super::list::{listed_integer, member_type};
use super::temporal_list::{Listed, is_marker, listed_time_point};
use super::tuple::normal_key;
use super::{EvalCx, Val, convert};
use crate::env::scratch::{Memory, Pool, Pooled};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ListForm {
    Ints,
    /// Sort keys of strings of one collation.
    Keys,
    /// Sort keys of mixed kinds. Each key begins with the index of its kind in `kinds`.
    Kinds,
    /// Sort keys of rows whose columns have `kinds`.
    Rows,
    /// Disjoint ranges; `ints` holds the first and the last integer of each.
    Ranges,
    /// The members are compared one by one.
    #[default]
    Walk,
}

/// One prepared IN list.
#[derive(Default)]
pub(crate) struct PreparedList {
    /// The address of the list's expression.
    id: usize,
    pub form: ListForm,
    pub has_null: bool,
    /// Whether a member is a string that is compared as DOUBLE.
    has_texts: bool,
    /// Sorted.
    ints: Vec<i128>,
    kinds: SmallVec<[CmpKind; 4]>,
    /// The bytes of all sort keys.
    arena: Vec<u8>,
    /// Start and end of each sort key in `arena`, in ascending order of the keys.
    keys: Vec<(u32, u32)>,
    /// The sort key that is searched for.
    key: Vec<u8>,
}

impl PreparedList {
    fn clear(&mut self) {
        self.ints.clear();
        self.arena.clear();
        self.keys.clear();
        self.kinds.clear();
        self.has_texts = false;
    }

    fn bytes(&self) -> usize {
        self.ints.capacity() * size_of::<i128>()
            + self.arena.capacity()
            + self.keys.capacity() * size_of::<(u32, u32)>()
            + self.key.capacity()
    }

    /// Prepares list parameter `list`. `kind_of` returns the kind of comparison for a member of a
    /// type; it is used if `kind`, that of the whole list, is neither integer nor string.
    pub fn prepare(
        &mut self,
        cx: &EvalCx<'_>,
        kind: CmpKind,
        list: u32,
        left: &ExprType,
        kind_of: impl Fn(&ExprType) -> CmpKind,
    ) {
        let (members, _) = cx.st.params.list(list);
        self.has_null = members.clone().any(|v| v.is_null());
        let typed = members.enumerate().map(|(i, v)| {
            let v = Val::from_ref(v);
            let ty = member_type(cx, list, i, &v);
            (v, ty)
        });
        match kind {
            // A text alone is compared as a DOUBLE.
            CmpKind::Int if is_lone_text(cx, list) => self.form = ListForm::Walk,
            CmpKind::Int => {
                self.form = ListForm::Ints;
                self.ints
                    .extend(typed.filter_map(|(v, ty)| listed_integer(cx, &v, &ty)));
                self.ints.sort_unstable();
            }
            CmpKind::String(collation) => {
                self.form = ListForm::Keys;
                for (v, ty) in typed {
                    self.add_key(cx, v, &ty, collation);
                }
                self.sort_keys();
            }
            _ => self.add_all(
                cx,
                left,
                typed.map(|(v, ty)| Some((kind_of(&ty), v, Cow::Owned(ty)))),
            ),
        }
    }

    /// Prepares the rows of list parameter `list`, of `width` columns each. `kind_of` returns the
    /// kind of comparison for a member of a type in a column.
    pub fn prepare_param_rows(
        &mut self,
        cx: &EvalCx<'_>,
        list: u32,
        width: usize,
        kind_of: impl Fn(usize, &ExprType) -> CmpKind,
    ) {
        let (members, _) = cx.st.params.list(list);
        let typed = members.enumerate().map(|(i, v)| {
            let v = Val::from_ref(v);
            let ty = member_type(cx, list, i, &v);
            Some((kind_of(i % width, &ty), v, Cow::Owned(ty)))
        });
        self.add_rows(cx, width, typed);
    }

    /// Prepares a written list of rows of `width` columns each.
    pub fn prepare_rows(&mut self, cx: &EvalCx<'_>, width: usize, rows: &[Vec<(CmpKind, Expr)>]) {
        let members = rows.iter().flatten();
        self.add_rows(cx, width, members.map(|m| plain_member(cx, m)));
    }

    /// Adds rows, whose columns `all` returns row by row. A row with a NULL gets no key.
    fn add_rows<'v>(
        &mut self,
        cx: &EvalCx<'_>,
        width: usize,
        all: impl Iterator<Item = Option<Member<'v>>>,
    ) {
        self.has_null = false;
        self.form = ListForm::Rows;
        let mut start = 0;
        let mut whole = true;
        for (i, member) in all.enumerate() {
            let at = i % width;
            if at == 0 {
                start = self.arena.len() as u32;
                whole = true;
            }
            let Some((kind, v, ty)) = member else {
                return self.form = ListForm::Walk;
            };
            if v.is_null() {
                self.has_null = true;
                whole = false;
            }
            if i == at {
                self.kinds.push(kind);
            }
            if v.is_null() || !whole && kind == self.kinds[at] {
                continue;
            }
            let fits = kind == self.kinds[at] && is_silent(&v, &ty, kind);
            if !fits || !normal_key(cx, (&v, &ty), kind, &mut self.arena) {
                return self.form = ListForm::Walk;
            }
            if at + 1 == width {
                self.keys.push((start, self.arena.len() as u32));
            }
        }
        self.sort_keys();
    }

    /// Adds members of mixed kinds. The list is searched if every member has a sort key that
    /// represents it exactly; otherwise its form is [`ListForm::Walk`].
    fn add_all<'v>(
        &mut self,
        cx: &EvalCx<'_>,
        left: &ExprType,
        all: impl Iterator<Item = Option<Member<'v>>> + Clone,
    ) {
        // A list in the form `Walk` needs it as well.
        self.has_null = all.clone().flatten().any(|(_, v, _)| v.is_null());
        self.form = ListForm::Walk;
        // A string that is no number warns once if all members are compared as DOUBLE, and at each
        // comparison otherwise.
        let mut doubles = all.clone().flatten().filter(|(_, v, _)| !v.is_null());
        let doubles = doubles.all(|(kind, ..)| kind == CmpKind::Double);
        let fits = |m: Option<Member<'v>>| {
            m.is_some_and(|(kind, v, ty)| {
                let number = doubles && matches!(v, Val::Bytes(_));
                v.is_null() || number || is_time_point(left, kind, &ty) || is_silent(&v, &ty, kind)
            })
        };
        if !all.clone().all(fits) {
            return;
        }
        for (kind, v, ty) in all.flatten() {
            if v.is_null() {
                continue;
            }
            let (v, ty) = match is_time_point(left, kind, &ty) {
                false => (v, ty),
                // The conversion warns here, once per execution.
                true => match listed_time_point(cx, v, &ty, &left.col, false) {
                    Listed::Value(v) => (v, Cow::Owned(left.clone())),
                    Listed::Nothing | Listed::Unknown => continue,
                },
            };
            let known = self.kinds.iter().position(|k| *k == kind);
            let place = known.unwrap_or_else(|| {
                self.kinds.push(kind);
                self.kinds.len() - 1
            });
            let Ok(place) = u8::try_from(place) else {
                return;
            };
            let start = self.arena.len() as u32;
            self.arena.push(place);
            if !normal_key(cx, (&v, &ty), kind, &mut self.arena) {
                return;
            }
            self.has_texts |= kind == CmpKind::Double && matches!(v, Val::Bytes(_));
            self.keys.push((start, self.arena.len() as u32));
        }
        self.sort_keys();
        self.form = ListForm::Kinds;
    }

    /// Whether `x`, which is not NULL, is a member of a list of [`ListForm::Kinds`]. `None`: the
    /// caller must compare the members one by one.
    pub fn has_value(
        &mut self,
        cx: &EvalCx<'_>,
        expr: &Expr,
        (x, ty): (&Val<'_>, &ExprType),
    ) -> Option<bool> {
        if self.has_texts && is_beyond_doubles(expr, x) {
            return None;
        }
        // A text among numbers and texts is read as a number, and warns, only if no text before the
        // first number equals it.
        let texts = self
            .kinds
            .iter()
            .any(|kind| matches!(kind, CmpKind::String(_)));
        if texts && self.kinds.contains(&CmpKind::Double) && !is_silent(x, ty, CmpKind::Double) {
            return None;
        }
        // MySQL may compare this integer with others by its 64 bits.
        let other = matches!(x, Val::Int(..0)) || matches!(x, Val::UInt(v) if *v >> 63 == 1);
        if other && self.kinds.len() > 1 && self.kinds.contains(&CmpKind::Int) {
            return None;
        }
        if !self.kinds.iter().all(|kind| is_left_side(x, ty, *kind)) {
            return None;
        }
        for i in 0..self.kinds.len() {
            let kind = self.kinds[i];
            let make = |key: &mut Vec<u8>| {
                key.push(i as u8);
                normal_key(cx, (x, ty), kind, key)
            };
            if self.find(make)? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Whether `row` is in a list of [`ListForm::Rows`]. `None`: the caller must compare the rows
    /// one by one.
    pub fn has_row(&mut self, cx: &EvalCx<'_>, left: &[Expr], row: &[Val<'_>]) -> Option<bool> {
        let kinds = self.kinds.clone();
        let fits = |((x, l), kind): ((&Val<'_>, &Expr), &CmpKind)| {
            !x.is_null() && is_left_side(x, &l.ty, *kind)
        };
        if !row.iter().zip(left).zip(&kinds).all(fits) {
            return None;
        }
        let make = |key: &mut Vec<u8>| {
            let mut columns = row.iter().zip(left).zip(&kinds);
            columns.all(|((x, l), kind)| normal_key(cx, (x, &l.ty), *kind, key))
        };
        match self.find(make)? {
            // A row with a NULL may match, so the result may be NULL.
            false if self.has_null => None,
            found => Some(found),
        }
    }

    /// Whether the list has the sort key that `make` appends. `None`: `make` returned false.
    fn find(&mut self, make: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<bool> {
        let mut made = false;
        let found = self.has_key(|key| made = make(key));
        made.then_some(found)
    }

    /// Prepares a written list: as integers if all members are integers, otherwise as members of
    /// mixed kinds.
    pub fn prepare_members(
        &mut self,
        cx: &EvalCx<'_>,
        left: &ExprType,
        members: &[(CmpKind, Expr)],
    ) {
        self.has_null = false;
        self.form = ListForm::Ints;
        for member in members {
            match plain_member(cx, member) {
                Some((_, Val::Null, _)) => self.has_null = true,
                Some((CmpKind::Int, Val::Int(v), _)) => self.ints.push(v.into()),
                Some((CmpKind::Int, Val::UInt(v), _)) => self.ints.push(v.into()),
                _ => {
                    self.form = ListForm::Walk;
                    break;
                }
            }
        }
        if self.form == ListForm::Ints {
            self.ints.sort_unstable();
            return;
        }
        self.add_all(cx, left, members.iter().map(|m| plain_member(cx, m)));
    }

    fn add_key(&mut self, cx: &EvalCx<'_>, v: Val<'_>, ty: &ExprType, collation: CollationId) {
        let Some(text) = convert::to_text(cx, v, ty, collation) else {
            return;
        };
        let start = self.arena.len() as u32;
        collation.known().sort_key(&text, &mut self.arena);
        self.keys.push((start, self.arena.len() as u32));
    }

    /// Fills the list with sort keys.
    pub fn set_keys<'k>(&mut self, all: impl Iterator<Item = &'k [u8]>, has_null: bool) {
        self.form = ListForm::Keys;
        self.has_null = has_null;
        for key in all {
            let start = self.arena.len() as u32;
            self.arena.extend_from_slice(key);
            self.keys.push((start, self.arena.len() as u32));
        }
        self.sort_keys();
        let PreparedList { arena, keys, .. } = self;
        keys.dedup_by(|a, b| key_at(arena, *a) == key_at(arena, *b));
    }

    /// Marks the list as one that cannot be searched.
    pub fn set_unknown(&mut self) {
        self.form = ListForm::Walk;
        self.has_null = false;
    }

    /// The sort keys in ascending order.
    pub fn sorted_keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.keys.iter().map(|at| key_at(&self.arena, *at))
    }

    fn sort_keys(&mut self) {
        let PreparedList { arena, keys, .. } = self;
        keys.sort_unstable_by(|a, b| key_at(arena, *a).cmp(key_at(arena, *b)));
    }

    /// Prepares ranges of integers. If one of them is `None`, the form is [`ListForm::Walk`].
    pub fn prepare_ranges(&mut self, ranges: impl Iterator<Item = Option<(i128, i128)>>) {
        self.has_null = false;
        self.form = ListForm::Walk;
        let Some(mut ranges) = ranges.collect::<Option<Vec<_>>>() else {
            return;
        };
        ranges.retain(|(first, last)| first <= last);
        ranges.sort_unstable();
        for (first, last) in ranges {
            match self.ints.last_mut() {
                Some(end) if first <= *end => *end = last.max(*end),
                _ => self.ints.extend([first, last]),
            }
        }
        self.form = ListForm::Ranges;
    }

    /// Whether one of the ranges contains a value.
    pub fn has_in_range(&self, v: i128) -> bool {
        let ranges = self.ints.as_chunks::<2>().0;
        let next = ranges.partition_point(|[_, last]| *last < v);
        ranges.get(next).is_some_and(|[first, _]| *first <= v)
    }

    pub fn has_int(&self, v: i128) -> bool {
        self.ints.binary_search(&v).is_ok()
    }

    /// Whether the list has the sort key that `make` appends.
    pub fn has_key(&mut self, make: impl FnOnce(&mut Vec<u8>)) -> bool {
        let PreparedList {
            arena, keys, key, ..
        } = self;
        key.clear();
        make(key);
        let found = keys.binary_search_by(|at| key_at(arena, *at).cmp(key));
        found.is_ok()
    }
}

/// Whether a list parameter has one member, which is a string.
fn is_lone_text(cx: &EvalCx<'_>, list: u32) -> bool {
    let mut members = cx.st.params.list(list).0;
    members.len() == 1 && matches!(members.next(), Some(ValueRef::Bytes(_)))
}

/// The length of a date and time with six fractional digits.
const MOMENT_MAX: usize = 26;

/// A member with the kind of its comparison and its type.
type Member<'v> = (CmpKind, Val<'v>, Cow<'v, ExprType>);

/// Evaluates a member of a written list. `None`: it is not constant, or evaluating it may warn or
/// have an effect.
fn plain_member<'v>(cx: &EvalCx<'v>, (kind, e): &'v (CmpKind, Expr)) -> Option<Member<'v>> {
    let time_point = matches!(kind, CmpKind::DateTime | CmpKind::Time);
    if !is_plain(e) || time_point && is_marker(cx, e) {
        return None;
    }
    let v = as_text(cx, cx.val(e).ok()?, &e.ty);
    Some((*kind, v, Cow::Borrowed(&e.ty)))
}

pub(super) fn is_plain(e: &Expr) -> bool {
    let exact = |e: &Expr| matches!(e.ty.class(), Class::Int | Class::Decimal);
    match &e.kind {
        ExprKind::Const(_) | ExprKind::Param(_) => true,
        ExprKind::Neg(of) => exact(of) && is_plain(of),
        ExprKind::Collate(of) => is_plain(of),
        ExprKind::Cast { expr, to } => is_whole_time_point(expr, Class::of(to)),
        ExprKind::Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Mul, sides) => {
            sides.iter().all(|e| exact(e) && is_plain(e))
        }
        _ => false,
    }
}

/// Whether a literal (`DATE'2024-01-31'`) is a complete valid value of a temporal class: no part is
/// truncated, and neither month nor day is zero.
fn is_whole_time_point(e: &Expr, class: Class) -> bool {
    let ExprKind::Const(Value::Bytes(text)) = &e.kind else {
        return false;
    };
    let date = || {
        let parsed = parse::parse_datetime(text, DateFlags::default()).ok()?;
        let plain = parsed.odd.is_none() && parsed.offset_s.is_none() && parsed.nanos == 0;
        let whole = plain && !parsed.truncated && text.len() <= MOMENT_MAX;
        let date = parsed.value.date();
        (whole && date.month() > 0 && date.day() > 0).then_some(parsed.value)
    };
    match class {
        Class::Date => date().is_some_and(|d| d == d.date().at_midnight()),
        Class::DateTime => date().is_some(),
        Class::Time => {
            let parsed = parse::parse_time(text);
            let whole = |p: parse::ParsedTime| {
                !p.truncated && !p.clamped && p.nanos == 0 && p.dated.is_none() && p.odd.is_none()
            };
            text.len() <= MOMENT_MAX && parsed.is_ok_and(whole)
        }
        _ => false,
    }
}

/// Whether a member is a number that is compared with `left` as a temporal value.
pub(crate) fn is_time_point(left: &ExprType, kind: CmpKind, ty: &ExprType) -> bool {
    let time_point = matches!(kind, CmpKind::DateTime | CmpKind::Time);
    time_point && left.class().is_temporal() && ty.class().is_number()
}

/// Whether the sort key of a member under `kind` is equal to that of an operand exactly if the two
/// compare as equal, and making the key never warns. The member is not NULL.
pub(super) fn is_silent(v: &Val<'_>, ty: &ExprType, kind: CmpKind) -> bool {
    let class = ty.class();
    match (kind, v) {
        (CmpKind::String(_), Val::Bytes(_)) => class == Class::String,
        (CmpKind::Double, Val::Bytes(text)) => {
            let parsed = number::parse_double(text);
            !parsed.truncated && !parsed.overflow
        }
        (CmpKind::DateTime, Val::Bytes(text)) => {
            let parsed = parse::parse_datetime(text, DateFlags::default());
            class == Class::String && parsed.is_ok_and(|p| !p.truncated && p.odd.is_none())
        }
        (CmpKind::Time, Val::Bytes(text)) => {
            let parsed = parse::parse_time(text);
            let silent = |p: parse::ParsedTime| !p.truncated && !p.clamped && p.odd.is_none();
            class == Class::String && parsed.is_ok_and(silent)
        }
        (CmpKind::String(_), _) => false,
        _ => is_left_side(v, ty, kind),
    }
}

/// Whether the sort key of an operand under `kind` is equal to that of a member exactly if the two
/// compare as equal. The operand is not NULL.
fn is_left_side(v: &Val<'_>, ty: &ExprType, kind: CmpKind) -> bool {
    let class = ty.class();
    match kind {
        CmpKind::Int => matches!(v, Val::Int(_) | Val::UInt(_)),
        CmpKind::Decimal => matches!(v, Val::Int(_) | Val::UInt(_) | Val::Decimal(_)),
        CmpKind::Double => !matches!(v, Val::Date(_) | Val::DateTime(_) | Val::Time(_)),
        CmpKind::String(_) => true,
        CmpKind::DateTime => {
            let temporal = matches!(class, Class::Date | Class::DateTime);
            temporal && matches!(v, Val::Date(_) | Val::DateTime(_))
        }
        CmpKind::Time => class == Class::Time && matches!(v, Val::Time(_)),
        CmpKind::Json => true,
    }
}

fn key_at(arena: &[u8], (start, end): (u32, u32)) -> &[u8] {
    &arena[start as usize..end as usize]
}

thread_local! {
    static POOL: Pool<Lists> = const { Pool::new() };
}

/// The lists of one execution (the first `used`), and memory for more.
#[derive(Default)]
struct Lists {
    all: Vec<PreparedList>,
    used: usize,
}

impl Memory for Lists {
    fn pool() -> &'static LocalKey<Pool<Lists>> {
        &POOL
    }

    fn clear(&mut self) {
        self.used = 0;
    }

    fn bytes(&self) -> usize {
        self.all.iter().map(PreparedList::bytes).sum()
    }
}

/// The prepared lists and CASEs of one execution, by the address of their expression.
#[derive(Default)]
pub struct ListCache {
    lists: RefCell<Option<Pooled<Lists>>>,
    /// The state of each `RAND(constant)` generator.
    pub(crate) sequences: RefCell<FxHashMap<usize, [u64; 2]>>,
    /// How many rows each GROUP_CONCAT has put into texts.
    pub(crate) concatenated: RefCell<FxHashMap<usize, u64>>,
    /// The types of the constants that have caused their only warning ([`TextOrigin::Once`]).
    ///
    /// [`TextOrigin::Once`]: nfold_plan::expr::TextOrigin::Once
    pub(crate) warned: RefCell<FxHashSet<usize>>,
    /// Whether the check before the first row has warned of members of IN lists. Those that it has
    /// converted ([`TextOrigin::Checked`]) do not warn again.
    ///
    /// [`TextOrigin::Checked`]: nfold_plan::expr::TextOrigin::Checked
    pub(crate) members_warned: Cell<bool>,
    /// The values of computed constants, by the address of their expression.
    pub(crate) constants: RefCell<Option<Box<FxHashMap<usize, Value>>>>,
    /// The branches of each long CASE.
    pub(crate) branches: RefCell<FxHashMap<usize, Branches>>,
    /// How each long FIELD or INTERVAL compares, by the address of its arguments.
    compared: RefCell<FxHashMap<usize, ComparedAs>>,
}

/// How FIELD and INTERVAL compare their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparedAs {
    Strings,
    /// Strings and temporal values.
    Texts,
    Ints,
    Decimals,
    Doubles,
    /// As each of these, with constants that INTERVAL finds by binary search.
    ConstantInts,
    ConstantDecimals,
    ConstantDoubles,
}

/// From this number of arguments on, [`ListCache::compared_as`] decides once in an execution.
const DECIDED_ONCE_MIN: usize = 8;

impl ListCache {
    /// How a function compares its arguments, which `decide` finds out.
    pub(crate) fn compared_as(
        &self,
        args: &[Expr],
        decide: impl FnOnce(&[Expr]) -> ComparedAs,
    ) -> ComparedAs {
        if args.len() < DECIDED_ONCE_MIN {
            return decide(args);
        }
        let mut known = self.compared.borrow_mut();
        *known
            .entry(args.as_ptr().addr())
            .or_insert_with(|| decide(args))
    }

    /// Whether the list of the expression at address `id` is prepared.
    pub(super) fn has(&self, id: usize) -> bool {
        let lists = self.lists.borrow();
        let used = lists.as_ref().map(|lists| &lists.all[..lists.used]);
        used.is_some_and(|used| used.iter().any(|l| l.id == id))
    }

    /// Calls `look` with the list of the expression at address `id`. At the first use, `prepare`
    /// fills an empty list first.
    pub(crate) fn with<R>(
        &self,
        id: usize,
        prepare: impl FnOnce(&mut PreparedList),
        look: impl FnOnce(&mut PreparedList) -> R,
    ) -> R {
        let mut lists = self.lists.borrow_mut();
        let Lists { all, used } = &mut **lists.get_or_insert_with(Pooled::take);
        if let Some(known) = all[..*used].iter_mut().find(|l| l.id == id) {
            return look(known);
        }
        if *used == all.len() {
            all.push(PreparedList::default());
        }
        let prepared = &mut all[*used];
        *used += 1;
        prepared.id = id;
        prepared.clear();
        prepare(prepared);
        look(prepared)
    }
}
