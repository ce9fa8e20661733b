//! List parameters in a form that is searched, not walked: made at the first use in an execution, in memory that the worker lends.

use std::cell::RefCell;
use std::thread::LocalKey;

use nfold_plan::expr::CmpKind;
use rustc_hash::FxHashMap;

use super::super::{EvalCx, Val, convert};
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

    fn prepare(&mut self, cx: &EvalCx<'_>, kind: CmpKind, list: u32) {
        self.clear();
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
                let PreparedList { arena, keys, .. } = self;
                for (v, ty) in typed {
                    let Some(text) = convert::to_text(cx, v, &ty, collation) else {
                        continue;
                    };
                    let start = arena.len() as u32;
                    collation.known().sort_key(&text, arena);
                    keys.push((start, arena.len() as u32));
                }
                keys.sort_unstable_by(|a, b| key_at(arena, *a).cmp(key_at(arena, *b)));
            }
            _ => self.form = Form::Walk,
        }
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
    /// Looks into list `list`, prepared for the comparison `kind` of the expression at `id`.
    pub(super) fn with<R>(
        &self,
        cx: &EvalCx<'_>,
        (id, kind, list): (usize, CmpKind, u32),
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
        prepared.prepare(cx, kind, list);
        look(prepared)
    }
}
