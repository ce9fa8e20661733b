//! Outer, semi and anti joins during placement: which table may come next, and which step tests
//! which condition. A semi or anti join is placed like an outer join whose inner side is one table.

use super::joins::slots_of;
use crate::logical::expr::Expr;
use crate::logical::query::{JoinType, OuterJoin};
use crate::physical::{Block, NestedJoinEnd, NestedJoinStep};

/// An outer, semi or anti join of the block.
struct Join {
    kind: JoinType,
    /// The ON conditions that are not assigned to a step yet.
    on: Vec<Expr>,
    /// The slots of its inner side and of its outer side, as bit sets.
    inner: u64,
    outer: u64,
    /// The innermost outer join whose inner side contains this join.
    around: Option<usize>,
    /// The slot of its inner side that was placed first.
    first: Option<usize>,
}

/// The outer joins of a block, inner ones first.
pub(super) struct OuterJoins(Vec<Join>);

/// The part of a placed table in outer joins: its ON conditions, and where nested outer joins begin
/// and end.
#[derive(Default)]
pub(super) struct OuterJoinPart {
    pub on: Vec<Expr>,
    pub nested_join: Option<Box<NestedJoinStep>>,
    /// Whether no nested outer join is open after this step, so that its rows are complete.
    pub whole: bool,
}

impl OuterJoins {
    /// Takes over the outer joins of a block.
    pub fn new(joins: Vec<OuterJoin>) -> OuterJoins {
        let joins = joins.into_iter().map(|join| Join {
            kind: join.kind,
            on: join.on,
            inner: join.inner,
            outer: join.outer,
            around: None,
            first: None,
        });
        let mut list: Vec<Join> = joins.collect();
        for n in 0..list.len() {
            let own = list[n].inner;
            list[n].around = (n + 1..list.len()).find(|&m| list[m].inner & own != 0);
        }
        OuterJoins(list)
    }

    /// How slot `t` is joined: by the innermost join that has it on its inner side.
    pub fn kind(&self, t: usize) -> JoinType {
        self.of(t).map_or(JoinType::Inner, |n| self.0[n].kind)
    }

    /// The innermost join that has slot `t` on its inner side.
    fn of(&self, t: usize) -> Option<usize> {
        self.0.iter().position(|join| join.inner >> t & 1 == 1)
    }

    fn chain(&self, from: Option<usize>) -> impl Iterator<Item = &Join> {
        let join = |n: usize| &self.0[n];
        std::iter::successors(from.map(join), move |j| j.around.map(join))
    }

    /// Whether slot `t` may be placed next: after the outer sides of its joins, and without another
    /// table between the inner tables of one join.
    pub fn may_place(&self, t: usize, placed: u64) -> bool {
        let begun = |join: &Join| join.inner & placed != 0;
        let open = |join: &&Join| begun(join) && join.inner & !placed != 0;
        let inside = self.0.iter().find(open);
        inside.is_none_or(|join| join.inner >> t & 1 == 1)
            && self
                .chain(self.of(t))
                .all(|join| begun(join) || join.outer & !placed == 0)
    }

    /// Whether slot `t` alone is the inner side of a join that is not itself on an inner side.
    pub fn is_alone(&self, t: usize) -> bool {
        self.of(t)
            .is_some_and(|n| self.0[n].around.is_none() && self.0[n].inner == 1 << t)
    }

    /// The ON conditions that decide which rows of slot `t` match, as far as their tables are in
    /// `in_sight`. `None` if the slot is on no inner side.
    pub fn conditions(&self, block: &Block, t: usize, in_sight: u64) -> Option<Vec<&Expr>> {
        let join = &self.0[self.of(t)?];
        let all = self.is_alone(t);
        let ready = |e: &&Expr| all || slots_of(e, block) & !in_sight == 0;
        Some(join.on.iter().filter(ready).collect())
    }

    /// Records that slot `t` is placed; `placed` includes it.
    pub fn place(&mut self, block: &Block, t: usize, placed: u64) -> OuterJoinPart {
        let Some(own) = self.of(t) else {
            return OuterJoinPart {
                whole: true,
                ..OuterJoinPart::default()
            };
        };
        let whole = |join: &Join| join.inner & !placed == 0;
        let begins = self.0[own].first.is_none();
        let within = match begins {
            true => self.0[own].around.and_then(|n| self.0[n].first),
            false => self.0[own].first,
        };
        self.0[own].first.get_or_insert(t);
        if self.is_alone(t) {
            return OuterJoinPart {
                on: std::mem::take(&mut self.0[own].on),
                nested_join: None,
                whole: true,
            };
        }
        let on = self.take_ready(block, own, placed);
        let mut ends = Vec::new();
        let mut at = Some(own);
        while let Some(n) = at.filter(|&n| whole(&self.0[n])) {
            at = self.0[n].around;
            ends.push(NestedJoinEnd {
                first: self.0[n].first.unwrap_or(t),
                within: at.and_then(|n| self.0[n].first),
                on: at.map_or_else(Vec::new, |n| self.take_ready(block, n, placed)),
            });
        }
        OuterJoinPart {
            on,
            nested_join: Some(Box::new(NestedJoinStep {
                within,
                begins,
                ends,
            })),
            whole: at.is_none(),
        }
    }

    /// Takes the ON conditions of join `n` that have all their tables; all of its conditions once
    /// its inner side is complete.
    fn take_ready(&mut self, block: &Block, n: usize, placed: u64) -> Vec<Expr> {
        let join = &mut self.0[n];
        let all = join.inner & !placed == 0;
        let ready = |e: &mut Expr| all || slots_of(e, block) & !placed == 0;
        join.on.extract_if(.., ready).collect()
    }
}
