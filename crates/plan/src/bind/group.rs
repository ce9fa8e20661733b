//! Grouping: which values may be selected from a group, and their positions in the grouped row.

use nfold_types::{ErrorCode, SqlError};

use super::dependencies::determined;
use super::rollup;
use super::{AGGREGATES, BlockBinder, GROUPINGS, Grouped, WINDOWS, WindowDraft};
use crate::logical::clauses::{AggFunc, Aggregate};
use crate::logical::context::ParamType;
use crate::logical::describe::{is_computed_member, keep};
use crate::logical::expr::{ColumnAt, Expr, ExprKind};
use crate::logical::mode::SqlMode;
use crate::logical::query::{Grouping, OuterJoin, Subquery};
use crate::logical::walk::outer_columns;

/// The clause of an expression, for error 1055.
#[derive(Clone, Copy)]
pub(super) enum GroupPosition<'p> {
    Select(usize),
    Having,
    Order(usize),
    /// A PARTITION BY or ORDER BY member of a window. It has no name if the window is written out
    /// behind OVER.
    Window(&'p str, usize),
}

/// Rewrites expressions over joined rows into expressions over grouped rows.
pub(super) struct Grouper<'g, 'b> {
    block: &'g BlockBinder<'b>,
    pub plan: Grouping,
    /// The GROUPING calls, over the grouped row.
    groupings: Vec<Expr>,
    /// For each select item the key that GROUP BY makes of it, where that is known.
    pub item_keys: Vec<Option<usize>>,
    /// Columns that have one value per group.
    determined: Vec<ColumnAt>,
    strict: bool,
    /// The correlated subqueries as rewritten over the grouped row. They are numbered after the
    /// subqueries of the block.
    pub subqueries: Vec<Subquery>,
    /// For each of `subqueries`: its number in the block.
    regrouped: Vec<u16>,
    /// Window functions. Their arguments are over the grouped row once the function is in `met`.
    pub drafts: Vec<WindowDraft>,
    met: Vec<u16>,
}

impl BlockBinder<'_> {
    /// The name of a column with its table and database, for messages.
    pub(super) fn full_name(&self, at: ColumnAt) -> String {
        let slot = &self.scope[usize::from(at.table)];
        let column = &slot.columns[usize::from(at.column)].name;
        match slot.schema.as_ref().or(slot.view_schema.as_ref()) {
            Some(schema) => format!("{schema}.{}.{column}", slot.alias),
            None => format!("{}.{column}", slot.alias),
        }
    }

    /// Whether evaluating an expression twice may return different values.
    pub(super) fn varies(&self, e: &Expr) -> bool {
        e.any(&mut |e| match e.kind {
            ExprKind::Call { func, .. } => {
                self.cx.funcs.get(func).flags & crate::logical::func::VOLATILE != 0
            }
            _ => false,
        })
    }

    /// Whether a list parameter has exactly one member.
    pub(super) fn is_single(&self, list: u32) -> bool {
        matches!(
            self.cx.params.get(list as usize),
            Some(ParamType::List { count: 1, .. })
        )
    }
}

impl<'g, 'b> Grouper<'g, 'b> {
    pub fn new(
        block: &'g BlockBinder<'b>,
        keys: Vec<Expr>,
        implicit: bool,
        conditions: &[Expr],
        outer_joins: &[OuterJoin],
    ) -> Result<Self, SqlError> {
        let strict = block.cx.mode.has(SqlMode::ONLY_FULL_GROUP_BY);
        let rollup = block.grouped == Grouped::RolledUp && !implicit;
        // A ROLLUP row summarizes several groups: its keys determine no other column.
        let determined = match rollup {
            true => keys.iter().filter_map(Expr::as_column).collect(),
            false => determined(block, &keys, conditions, outer_joins),
        };
        let plan = Grouping {
            keys,
            aggregates: block.aggregates.borrow().clone(),
            implicit,
            rollup,
        };
        let groupings = block.groupings.iter();
        let groupings = groupings.map(|args| rollup::over_groups(args, &plan));
        Ok(Grouper {
            block,
            groupings: groupings.collect::<Result<_, _>>()?,
            plan,
            item_keys: Vec::new(),
            determined,
            strict,
            subqueries: Vec::new(),
            regrouped: Vec::new(),
            drafts: Vec::new(),
            met: Vec::new(),
        })
    }

    /// Returns the grouping. A key that is a computed ENUM or SET member becomes its text, as a
    /// temporary table would store it.
    pub fn finish(mut self) -> Grouping {
        for key in self.plan.keys.iter_mut().filter(|k| is_computed_member(k)) {
            keep(key);
        }
        self.plan
    }

    /// Rewrites `e` over the joined row into an expression over the grouped row.
    pub fn rewrite(&mut self, mut e: Expr, place: GroupPosition<'_>) -> Result<Expr, SqlError> {
        self.walk(&mut e, place, true)?;
        Ok(e)
    }

    fn at(place: usize) -> ExprKind {
        ExprKind::Column(ColumnAt {
            table: 0,
            column: place as u16,
        })
    }

    fn walk(
        &mut self,
        e: &mut Expr,
        place: GroupPosition<'_>,
        whole: bool,
    ) -> Result<(), SqlError> {
        if let Some(k) = self.key_of(e, place, whole) {
            // A select item that equals a grouping expression as a whole is allowed; a part of a
            // larger item is not.
            let part = self.strict && !whole && matches!(place, GroupPosition::Select(_));
            if let Some(at) = self.undetermined(e).filter(|_| part) {
                return Err(self.not_grouped(at, place));
            }
            if is_computed_member(e) {
                e.ty = e.ty.kept();
            }
            e.kind = Self::at(k);
            e.ty.nullable |= self.plan.rollup;
            return Ok(());
        }
        match e.kind {
            ExprKind::Column(at) if at.table == AGGREGATES => {
                return self.aggregate(e, usize::from(at.column), place);
            }
            ExprKind::Column(at) if at.table == GROUPINGS => {
                *e = self.groupings[usize::from(at.column)].clone();
                return Ok(());
            }
            ExprKind::Column(at) if at.table == WINDOWS => return self.window(at.column, place),
            ExprKind::Column(at) => {
                if self.strict && !self.determined.contains(&at) {
                    return Err(self.not_grouped(at, place));
                }
                return self.any(e);
            }
            _ => {}
        }
        if let ExprKind::Subquery { index, .. } = &mut e.kind {
            *index = self.subquery(*index, place)?;
        }
        let mut result = Ok(());
        e.each_child_mut(&mut |child| {
            if result.is_ok() {
                result = self.walk(child, place, false);
            }
        });
        e.ty.nullable |= self.plan.rollup && self.is_rolled_up(e);
        result
    }

    /// The member of GROUP BY that `e` is; of several equal ones the one that names the select
    /// item.
    fn key_of(&self, e: &Expr, place: GroupPosition<'_>, whole: bool) -> Option<usize> {
        // As in MySQL, INTERVAL() equals no other expression.
        let never_same = |e: &Expr| {
            let ExprKind::Call { func, .. } = &e.kind else {
                return false;
            };
            self.block.cx.funcs.get(*func).name == "interval"
        };
        let is_same =
            |k: &usize| self.plan.keys[*k].kind == e.kind && !e.any(&mut |e| never_same(e));
        let own = match place {
            GroupPosition::Select(n) if whole => self.item_keys.get(n).copied().flatten(),
            GroupPosition::Order(n) if whole => {
                let item = self.block.order_items.get(n).copied().flatten();
                item.and_then(|n| self.item_keys.get(n).copied().flatten())
            }
            _ => None,
        };
        own.filter(is_same)
            .or_else(|| (0..self.plan.keys.len()).find(is_same))
    }

    /// Whether an expression over the grouped row reads a key or the row's rollup level.
    fn is_rolled_up(&self, e: &Expr) -> bool {
        let keys = self.plan.keys.len();
        e.any(&mut |e| {
            e.as_column()
                .is_some_and(|at| at.table == 0 && usize::from(at.column) <= keys)
        })
    }

    /// Rewrites a reference to aggregate `n`. With ROLLUP, ANY_VALUE(x) becomes `x` of the current
    /// row, whose keys may be NULL.
    fn aggregate(
        &mut self,
        e: &mut Expr,
        n: usize,
        place: GroupPosition<'_>,
    ) -> Result<(), SqlError> {
        let agg = &self.plan.aggregates[n];
        if self.plan.rollup && agg.func == AggFunc::Any {
            *e = agg.args[0].clone();
            let strict = std::mem::take(&mut self.strict);
            let done = self.walk(e, place, false);
            self.strict = strict;
            return done;
        }
        e.ty.nullable |= self.plan.implicit && agg.func == AggFunc::Any;
        e.kind = Self::at(self.plan.first_aggregate() + n);
        Ok(())
    }

    /// Rewrites the arguments of window function `n`, at its first occurrence.
    fn window(&mut self, n: u16, place: GroupPosition<'_>) -> Result<(), SqlError> {
        if self.met.contains(&n) {
            return Ok(());
        }
        self.met.push(n);
        let mut args = std::mem::take(&mut self.drafts[usize::from(n)].args);
        let done = args.iter_mut().try_for_each(|e| self.walk(e, place, false));
        self.drafts[usize::from(n)].args = args;
        done
    }

    /// Rewrites the arguments of window functions that no clause names any more.
    pub fn rest_of_windows(&mut self) -> Result<(), SqlError> {
        (0..self.drafts.len()).try_for_each(|n| self.window(n as u16, GroupPosition::Order(0)))
    }

    /// Rewrites a correlated subquery over the grouped row and returns its new index. The keys and
    /// the aggregates' arguments keep the original subquery, over the joined row.
    fn subquery(&mut self, index: u16, place: GroupPosition<'_>) -> Result<u16, SqlError> {
        let first = self.block.subqueries.len();
        if !self.block.subqueries[usize::from(index)].correlated {
            return Ok(index);
        }
        if let Some(known) = self.regrouped.iter().position(|i| *i == index) {
            return Ok((first + known) as u16);
        }
        let mut sub = self.block.subqueries[usize::from(index)].clone();
        outer_columns(&mut sub.query, 1, &mut |at, ty| {
            let mut e = Expr {
                kind: ExprKind::Column(*at),
                ty: ty.clone(),
            };
            self.walk(&mut e, place, false)?;
            if let Some(new) = e.as_column() {
                (*at, *ty) = (new, e.ty);
            }
            Ok(())
        })?;
        self.regrouped.push(index);
        self.subqueries.push(sub);
        Ok((first + self.subqueries.len() - 1) as u16)
    }

    /// A column in `e` that has no single value per group.
    fn undetermined(&self, e: &Expr) -> Option<ColumnAt> {
        let mut found = None;
        e.any(&mut |e| {
            found = e
                .as_column()
                .filter(|at| at.table < WINDOWS && !self.determined.contains(at));
            found.is_some()
        });
        found
    }

    /// Replaces a column by its value in any row of the group.
    fn any(&mut self, e: &mut Expr) -> Result<(), SqlError> {
        let agg = Aggregate {
            func: AggFunc::Any,
            args: vec![e.clone()],
            distinct: false,
            order: Vec::new(),
            separator: Vec::new(),
            ty: e.ty.clone(),
        };
        let place = self
            .plan
            .aggregates
            .iter()
            .position(|a| *a == agg)
            .unwrap_or_else(|| {
                self.plan.aggregates.push(agg);
                self.plan.aggregates.len() - 1
            });
        e.kind = Self::at(self.plan.first_aggregate() + place);
        if self.plan.implicit || self.plan.rollup {
            e.ty.nullable = true;
        }
        Ok(())
    }

    fn not_grouped(&self, at: ColumnAt, place: GroupPosition<'_>) -> SqlError {
        let name = self.block.full_name(at);
        let mode = "sql_mode=only_full_group_by";
        let (clause, n) = match place {
            GroupPosition::Select(n) => ("SELECT list".into(), n + 1),
            GroupPosition::Order(n) => ("ORDER BY clause".into(), n + 1),
            GroupPosition::Having => ("HAVING clause".into(), 1),
            GroupPosition::Window(window, n) => (
                format!("PARTITION BY or ORDER BY clause of window '{window}'"),
                n + 1,
            ),
        };
        if self.plan.implicit {
            SqlError::with_message(
                ErrorCode::ER_MIX_OF_GROUP_FUNC_AND_FIELDS,
                format!(
                    "In aggregated query without GROUP BY, expression #{n} of {clause} contains nonaggregated column '{name}'; \
                     this is incompatible with {mode}"
                ),
            )
        } else {
            SqlError::with_message(
                ErrorCode::ER_WRONG_FIELD_WITH_GROUP,
                format!(
                    "Expression #{n} of {clause} is not in GROUP BY clause and contains nonaggregated column '{name}' which is not \
                     functionally dependent on columns in GROUP BY clause; this is incompatible with {mode}"
                ),
            )
        }
    }
}
