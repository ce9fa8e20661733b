//! Lists in a form that is searched, not walked: made at the first use in an execution, in memory that the worker lends.

use std::cell::RefCell;
use std::thread::LocalKey;

use nfold_plan::expr::{Class, CmpKind, Expr, ExprKind, ExprType};
use rustc_hash::FxHashMap;

use nfold_types::CollationId;

use super::super::{EvalCx, Val, convert};
use super::as_text;
use super::list::member_type;
use crate::scratch::{Lent, Memory, Pool};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Form {
    Ints,
    Keys,
    /// Compared one by one.
    #[default]
    Walk,
}

/// The members of one list.
#[derive(Default)]
pub(super) struct PreparedList {
    /// The address of the list's expression.
    id: usize,
    pub form: Form,
    pub has_null: bool,
    /// Sorted.
    ints: Vec<i128>,
    /// Sort keys in the arena, sorted.
    arena: Vec<u8>,
    keys: Vec<(u32, u32)>,
    /// The key that is looked for.
    key: Vec<u8>,
}

impl PreparedList {
    fn clear(&mut self) {
        self.ints.clear();
        self.arena.clear();
        self.keys.clear();
    }

    fn bytes(&self) -> usize {
        self.ints.capacity() * size_of::<i128>()
            + self.arena.capacity()
            + self.keys.capacity() * size_of::<(u32, u32)>()
            + self.key.capacity()
    }

    /// Of list parameter `list`.
    pub fn prepare(&mut self, cx: &EvalCx<'_>, kind: CmpKind, list: u32) {
        let (members, _) = cx.st.params.list(list);
        self.has_null = members.clone().any(|v| v.is_null());
        let typed = members.enumerate().map(|(i, v)| {
            let v = Val::from_ref(v);
            let ty = member_type(cx, list, i, &v);
            (v, ty)
        });
        match kind {
            CmpKind::Int => {
                self.form = Form::Ints;
                self.ints
                    .extend(typed.filter_map(|(v, ty)| convert::to_integer(cx, &v, &ty)));
                self.ints.sort_unstable();
            }
            CmpKind::String(collation) => {
                self.form = Form::Keys;
                for (v, ty) in typed {
                    self.add_key(cx, v, &ty, collation);
                }
                self.sort_keys();
            }
            _ => self.form = Form::Walk,
        }
    }

    /// Of members that are written out: parameters that are integers among integers, or texts among texts; what else is among them is
    /// compared one by one.
    pub fn prepare_members(&mut self, cx: &EvalCx<'_>, members: &[(CmpKind, Expr)]) {
        self.has_null = false;
        self.form = match members {
            [(CmpKind::Int, _), ..] => Form::Ints,
            [(CmpKind::String(_), _), ..] => Form::Keys,
            _ => Form::Walk,
        };
        for (kind, member) in members {
            let ExprKind::Param(_) = member.kind else {
                self.form = Form::Walk;
                break;
            };
            // A parameter is a value.
            let v = cx.val(member).map(|v| as_text(cx, v, &member.ty));
            match (self.form, kind, v) {
                (Form::Ints | Form::Keys, _, Ok(Val::Null)) => self.has_null = true,
                (Form::Ints, CmpKind::Int, Ok(Val::Int(v))) => self.ints.push(v.into()),
                (Form::Ints, CmpKind::Int, Ok(Val::UInt(v))) => self.ints.push(v.into()),
                (Form::Keys, CmpKind::String(collation), Ok(v @ Val::Bytes(_)))
                    if *kind == members[0].0 && member.ty.class() == Class::String =>
                {
                    self.add_key(cx, v, &member.ty, *collation);
                }
                _ => {
                    self.form = Form::Walk;
                    break;
                }
            }
        }
        self.ints.sort_unstable();
        self.sort_keys();
    }

    fn add_key(&mut self, cx: &EvalCx<'_>, v: Val<'_>, ty: &ExprType, collation: CollationId) {
        let Some(text) = convert::to_text(cx, v, ty, collation) else {
            return;
        };
        let start = self.arena.len() as u32;
        collation.known().sort_key(&text, &mut self.arena);
        self.keys.push((start, self.arena.len() as u32));
    }

    fn sort_keys(&mut self) {
        let PreparedList { arena, keys, .. } = self;
        keys.sort_unstable_by(|a, b| key_at(arena, *a).cmp(key_at(arena, *b)));
    }

    pub fn has_int(&self, v: i128) -> bool {
        self.ints.binary_search(&v).is_ok()
    }

    /// Whether it holds the key that `make` appends.
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

fn key_at(arena: &[u8], (start, end): (u32, u32)) -> &[u8] {
    &arena[start as usize..end as usize]
}

thread_local! {
    static POOL: Pool<Lists> = const { Pool::new() };
}

/// Those of one execution, and behind them memory for more.
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

/// Prepared lists of one execution, by the address of their expression.
#[derive(Default)]
pub struct ListCache {
    lists: RefCell<Option<Lent<Lists>>>,
    /// Where each `RAND(constant)` stands in its sequence.
    pub(crate) sequences: RefCell<FxHashMap<usize, [u64; 2]>>,
}

impl ListCache {
    /// Looks into the list of the expression at address `id`, which `prepare` makes of an empty one at the first use.
    pub(super) fn with<R>(
        &self,
        id: usize,
        prepare: impl FnOnce(&mut PreparedList),
        look: impl FnOnce(&mut PreparedList) -> R,
    ) -> R {
        let mut lists = self.lists.borrow_mut();
        let Lists { all, used } = &mut **lists.get_or_insert_with(Lent::take);
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
