//! Queries: blocks, set operations, VALUES.
//!
//! The operators of a query are created at its first run. They are cached beside those of the block
//! that contains it as a derived table, a subquery or a side of a set operation. So a warm
//! statement opens no table, however deep its blocks are nested.
//!
//! # Invariants
//! - Q1: while a query runs, its operators are taken out of their [`CachedQuery`]. A query that
//!   runs inside itself gets operators of its own.

pub(crate) mod block;
mod counted;
mod grouped;
mod measured;
mod recursion;
mod rolled_up;
mod sort_first;
pub(crate) mod subquery;
mod subquery_groups;
mod subquery_results;
mod subquery_set;
mod subquery_tests;
mod windowed;

use std::cell::Cell;

use nfold_plan::expr::{Expr, ExprType};
use nfold_plan::query::{QueryBody, QueryPlan};
use nfold_sql::ast::SetOp;
use nfold_types::row::RowLayout;
use nfold_types::{SqlError, TypeKind};

use crate::env::RowSink;
use crate::env::batch::POOLED_BYTES;
use crate::expr::eval::tuple;
use crate::expr::eval::tuple::KeyMaker;
use crate::expr::eval::{EvalCx, NoSubqueries, RowCounts, RowRef, Val};
use crate::operators::copied_row::RowCopier;
use crate::operators::distinct::Distinct;
use crate::operators::output;
use crate::operators::row_out::{Limits, RowOut, give_sorted, projected, values_of};
use crate::operators::sort::Sorter;
use crate::operators::step::DerivedTable;
use crate::runtime::Runtime;
use crate::runtime::profile::Stage;
use block::BlockExec;
use counted::Counted;
use measured::MeasuredRows;

/// The cached operators of a query; empty before its first run.
#[derive(Default)]
pub(crate) struct CachedQuery(Cell<Option<Box<QueryExec>>>);

impl CachedQuery {
    /// Runs the query, and passes its rows to `out`.
    pub fn run(
        &self,
        rt: &Runtime<'_>,
        q: &QueryPlan,
        outer: &[&[RowRef<'_>]],
        out: &mut dyn RowOut,
    ) -> Result<(), SqlError> {
        let mut exec = self.take(rt, q)?;
        let result = exec.run(rt, q, outer, out);
        self.0.set(Some(exec));
        result
    }

    /// Runs the query, and passes each row's image, in `layout`, to `push`.
    pub fn collect(
        &self,
        rt: &Runtime<'_>,
        q: &QueryPlan,
        outer: &[&[RowRef<'_>]],
        layout: &RowLayout,
        push: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut exec = self.take(rt, q)?;
        let mut out = Images {
            layout,
            copier: RowCopier::default(),
            image: std::mem::take(&mut exec.image),
            push,
        };
        let result = exec.run(rt, q, outer, &mut out);
        if out.image.capacity() <= POOLED_BYTES {
            exec.image = out.image;
        }
        self.0.set(Some(exec));
        result
    }

    /// The memory that it keeps between executions, approximately, in bytes.
    pub fn memory(&self) -> usize {
        let exec = self.0.take();
        let held = exec.as_ref().map_or(0, |exec| exec.memory());
        self.0.set(exec);
        held
    }

    fn take(&self, rt: &Runtime<'_>, q: &QueryPlan) -> Result<Box<QueryExec>, SqlError> {
        match self.0.take() {
            Some(exec) => Ok(exec),
            None => Ok(Box::new(QueryExec::open(rt, q)?)),
        }
    }
}

/// Runs a query by operators that are not cached.
pub(crate) fn run_once(
    rt: &Runtime<'_>,
    q: &QueryPlan,
    out: &mut dyn RowOut,
) -> Result<(), SqlError> {
    QueryExec::open(rt, q)?.run(rt, q, &[], out)
}

impl CachedQuery {
    /// The operators of a derived table, for the slot that reads it.
    pub fn derived() -> Box<dyn DerivedTable> {
        Box::new(CachedQuery::default())
    }
}

impl DerivedTable for CachedQuery {
    fn run(
        &self,
        rt: &Runtime<'_>,
        q: &QueryPlan,
        outer: &[&[RowRef<'_>]],
        out: &mut dyn RowOut,
    ) -> Result<(), SqlError> {
        CachedQuery::run(self, rt, q, outer, out)
    }

    fn collect(
        &self,
        rt: &Runtime<'_>,
        q: &QueryPlan,
        outer: &[&[RowRef<'_>]],
        layout: &RowLayout,
        push: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        CachedQuery::collect(self, rt, q, outer, layout, push)
    }

    fn memory(&self) -> usize {
        CachedQuery::memory(self)
    }
}

/// See [`CachedQuery`].
struct QueryExec {
    body: Body,
    /// A buffer for the current row, if rows are passed as images.
    image: Vec<u8>,
}

enum Body {
    Block(Box<BlockExec>),
    Set(Box<SetExec>),
}

impl QueryExec {
    fn open(rt: &Runtime<'_>, q: &QueryPlan) -> Result<QueryExec, SqlError> {
        let body = match &q.body {
            QueryBody::Block(block) => {
                let limits = Limits::new(rt, q.limit.as_ref())?;
                Body::Block(Box::new(BlockExec::open(rt, block, limits)?))
            }
            _ => Body::Set(Box::new(SetExec::open(rt, q))),
        };
        Ok(QueryExec {
            body,
            image: Vec::new(),
        })
    }

    fn memory(&self) -> usize {
        let body = match &self.body {
            Body::Block(exec) => exec.memory(),
            Body::Set(exec) => {
                let operands: usize = exec.operands.iter().map(CachedQuery::memory).sum();
                operands + exec.image.capacity() + exec.key.capacity()
            }
        };
        body + self.image.capacity()
    }

    fn run(
        &mut self,
        rt: &Runtime<'_>,
        q: &QueryPlan,
        outer: &[&[RowRef<'_>]],
        out: &mut dyn RowOut,
    ) -> Result<(), SqlError> {
        let limits = Limits::new(rt, q.limit.as_ref())?;
        match (&mut self.body, &q.body) {
            (Body::Block(exec), QueryBody::Block(block)) => exec.run(rt, block, limits, outer, out),
            (Body::Set(exec), _) => match &rt.profile {
                None => exec.run(rt, q, limits, outer, out),
                Some(profile) => {
                    let mut out = MeasuredRows::new(out);
                    let result = exec.run(rt, q, limits, outer, &mut out);
                    profile.end(q, Stage::Result, &out.execution);
                    result
                }
            },
            (Body::Block(_), _) => Ok(()),
        }
    }
}

/// Converts result rows to row images.
struct Images<'o> {
    layout: &'o RowLayout,
    copier: RowCopier,
    image: Vec<u8>,
    push: &'o mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
}

impl RowOut for Images<'_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        self.image.clear();
        let value = |n: usize| cx.val(&select[n]);
        let copier = &mut self.copier;
        if !copier.append(cx, select, self.layout, value, &mut self.image)? {
            let values = values_of(cx, select)?;
            tuple::encode_row(self.layout, &values, &mut self.image)?;
        }
        (self.push)(&self.image)?;
        Ok(true)
    }

    fn takes_images(&self, layout: &RowLayout) -> bool {
        self.layout.columns() == layout.columns()
    }

    fn image(&mut self, image: &[u8]) -> Result<bool, SqlError> {
        (self.push)(image)?;
        Ok(true)
    }
}

/// Sends result rows to the client.
pub(crate) struct ToSink<'o> {
    pub sink: &'o mut dyn RowSink,
    pub counts: &'o RowCounts,
}

impl RowOut for ToSink<'_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        output::emit(cx, select, self.sink)?;
        self.counts.add_sent(1);
        Ok(true)
    }

    fn skip(&mut self) {
        self.counts.add_skipped(1);
    }

    fn sink(&mut self) -> Option<(&mut dyn RowSink, &RowCounts)> {
        Some((self.sink, self.counts))
    }
}

/// The operators of a set operation, a recursion, or VALUES.
struct SetExec {
    /// The layout of its rows.
    layout: RowLayout,
    /// The columns of its rows.
    columns: Vec<Expr>,
    /// The operands of a set operation, or the seed and the steps of a recursion.
    operands: Vec<CachedQuery>,
    order: KeyMaker,
    /// Builds the keys by which rows are distinct.
    unique: KeyMaker,
    /// Buffers for the current row and its sort key.
    image: Vec<u8>,
    key: Vec<u8>,
}

impl SetExec {
    fn open(rt: &Runtime<'_>, q: &QueryPlan) -> SetExec {
        let of_type = |ty: &ExprType| Expr {
            ty: ty.clone(),
            ..Expr::null()
        };
        let columns: Vec<Expr> = q.types.iter().map(of_type).collect();
        SetExec {
            layout: tuple::layout_of(&q.types),
            unique: KeyMaker::new(q.types.iter().map(|ty| (ty, false))),
            columns: projected(&columns),
            operands: (0..operand_count(q))
                .map(|_| CachedQuery::default())
                .collect(),
            order: KeyMaker::of_order(
                q.order.iter().map(|o| (&q.types[o.column], o.desc)),
                rt.env.max_sort_length(),
            ),
            image: Vec::new(),
            key: Vec::new(),
        }
    }

    fn run(
        &mut self,
        rt: &Runtime<'_>,
        q: &QueryPlan,
        limits: Limits,
        outer: &[&[RowRef<'_>]],
        out: &mut dyn RowOut,
    ) -> Result<(), SqlError> {
        let SetExec {
            layout,
            columns,
            operands: kept,
            order: maker,
            unique,
            image,
            key,
        } = self;
        let (layout, columns) = (&*layout, &*columns);
        let state = rt.state(&NoSubqueries);
        let counting = counts_all(q);
        let seen = Cell::new(0u64);
        let as_images = limits.is_none() && out.takes_images(layout);
        let mut give = |image: &[u8]| -> Result<bool, SqlError> {
            if as_images {
                seen.set(seen.get() + 1);
                return out.image(image);
            }
            let rows = [RowRef {
                layout,
                image: Some(image),
                places: None,
            }];
            let cx = EvalCx {
                rows: &rows,
                outer: &[],
                st: &state,
            };
            let (n, end) = (seen.get() + 1, limits.wanted());
            seen.set(n);
            if n <= limits.skip {
                out.skip();
            } else if n <= end && !out.row(&cx, columns)? {
                return Ok(false);
            }
            Ok(counting || n < end)
        };
        if limits.wanted() == 0 && !counting {
            return Ok(());
        }
        let mut operands = Operands {
            rt,
            q,
            outer,
            layout,
            unique,
            kept,
            image,
        };
        let found = || rt.found_rows.set(counting.then(|| seen.get()));
        if q.order.is_empty() {
            operands.run(&mut give)?;
            found();
            return Ok(());
        }
        let mut sorter = Sorter::new(rt.env.work_memory(), 0);
        operands.run(&mut |image| {
            key.clear();
            for (n, o) in q.order.iter().enumerate() {
                let v = layout
                    .get(image, o.column)
                    .map_err(|e| crate::expr::eval::row_error(&e))?;
                maker.push(n, &Val::from_ref(v), key)?;
            }
            sorter.push(rt, key, image)?;
            Ok(true)
        })?;
        let rows = give_sorted(rt, sorter, &mut give)?;
        rt.count_sort(rows);
        found();
        Ok(())
    }
}

/// The number of queries that a set operation or a recursion runs.
fn operand_count(q: &QueryPlan) -> usize {
    match &q.body {
        QueryBody::Set {
            op: SetOp::Union, ..
        } => q.chain().count(),
        QueryBody::Set { .. } => 2,
        QueryBody::Recursive(plan) => plan.queries().count(),
        QueryBody::Block(_) | QueryBody::Rows(_) | QueryBody::Working(_) => 0,
    }
}

/// Whether SQL_CALC_FOUND_ROWS in the first block of a set operation makes it count all of its
/// rows.
fn counts_all(q: &QueryPlan) -> bool {
    match &q.body {
        QueryBody::Block(block) => block.calc_found_rows,
        QueryBody::Set { left, .. } => counts_all(left),
        QueryBody::Rows(_) | QueryBody::Recursive(_) | QueryBody::Working(_) => false,
    }
}

/// Consumes the rows of a set operation's operands one after the other, and converts them to its
/// types.
struct SetOut<'o, 's> {
    rt: &'o Runtime<'s>,
    types: &'o [ExprType],
    layout: &'o RowLayout,
    unique: &'o KeyMaker,
    distinct: Option<Distinct>,
    /// Whether equal rows have equal images, so that the image is the key of a distinct row.
    identical: bool,
    copier: RowCopier,
    image: &'o mut Vec<u8>,
    rows: &'o mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
}

impl RowOut for SetOut<'_, '_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        self.image.clear();
        let value = |n: usize| tuple::kept(cx, &select[n], &self.types[n]);
        let by_image = self.distinct.is_none() || self.identical;
        let copier = &mut self.copier;
        if !(by_image && copier.append(cx, select, self.layout, value, self.image)?) {
            let mut values: smallvec::SmallVec<[Val<'a>; 4]> = smallvec::SmallVec::new();
            for (e, ty) in select.iter().zip(self.types) {
                values.push(tuple::kept(cx, e, ty)?);
            }
            if let Some(seen) = self.distinct.as_mut().filter(|_| !self.identical)
                && !seen.is_new(
                    self.rt,
                    |key| self.unique.push_all(&values, key),
                    |out| tuple::encode_row(self.layout, &values, out),
                )?
            {
                return Ok(true);
            }
            tuple::encode_row(self.layout, &values, self.image)?;
        }
        let image = &*self.image;
        let append = |out: &mut Vec<u8>| {
            out.extend_from_slice(image);
            Ok(())
        };
        if let Some(seen) = self.distinct.as_mut().filter(|_| self.identical)
            && !seen.is_new(self.rt, append, append)?
        {
            return Ok(true);
        }
        (self.rows)(self.image)
    }
}

/// Whether two rows of these columns are equal exactly if their images are.
fn are_identical_if_equal(layout: &RowLayout) -> bool {
    use TypeKind::{BigInt, Date, DateTime, Decimal, Time};
    let exact =
        |kind: &TypeKind| matches!(kind, BigInt | Date | DateTime(_) | Decimal { .. } | Time(_));
    layout.columns().iter().all(|column| exact(&column.ty.kind))
}

/// Produces the rows of a set operation or of VALUES, as images of its own types.
struct Operands<'o, 's> {
    rt: &'o Runtime<'s>,
    q: &'o QueryPlan,
    outer: &'o [&'o [RowRef<'o>]],
    layout: &'o RowLayout,
    unique: &'o KeyMaker,
    kept: &'o [CachedQuery],
    image: &'o mut Vec<u8>,
}

impl Operands<'_, '_> {
    fn run(
        &mut self,
        rows: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let more = Cell::new(true);
        let mut watched = |image: &[u8]| -> Result<bool, SqlError> {
            more.set(rows(image)?);
            Ok(more.get())
        };
        let (rt, q) = (self.rt, self.q);
        let mut set = SetOut {
            rt,
            types: &q.types,
            layout: self.layout,
            unique: self.unique,
            distinct: None,
            identical: are_identical_if_equal(self.layout),
            copier: RowCopier::default(),
            image: self.image,
            rows: &mut watched,
        };
        match &q.body {
            QueryBody::Block(_) => Ok(()),
            QueryBody::Rows(list) => {
                let state = rt.state(rt);
                let cx = EvalCx {
                    rows: &[],
                    outer: self.outer,
                    st: &state,
                };
                for row in list {
                    if !set.row(&cx, row)? {
                        break;
                    }
                }
                Ok(())
            }
            QueryBody::Working(number) => {
                drop(set);
                let Some(rows) = rt.working.take(*number) else {
                    return Ok(());
                };
                rows.each(rt, &mut |_, image| watched(image))
            }
            QueryBody::Recursive(plan) => {
                drop(set);
                let of_rows = (self.layout, self.unique, &mut *self.image);
                let Some((seed, steps)) = self.kept.split_first() else {
                    return Ok(());
                };
                recursion::run(rt, plan, (seed, steps), self.outer, of_rows, &mut watched)
            }
            QueryBody::Set {
                op: SetOp::Union,
                distinct,
                ..
            } => {
                // The rows of all operands of a chain are converted and deduplicated once.
                set.distinct = distinct.then(|| Distinct::new(rt.env.work_memory()));
                for (operand, kept) in q.chain().zip(self.kept) {
                    kept.run(rt, operand, self.outer, &mut set)?;
                    if !more.get() {
                        return Ok(());
                    }
                }
                match set.distinct {
                    Some(distinct) => {
                        distinct.count(rt);
                        distinct.give_deferred(rt, &mut watched)
                    }
                    None => Ok(()),
                }
            }
            QueryBody::Set {
                op,
                distinct,
                left,
                right,
                ..
            } => {
                drop(set);
                let [first, second] = self.kept else {
                    return Ok(());
                };
                let mut rows = Counted::new(rt, &q.types, self.layout, self.unique);
                first.run(rt, left, self.outer, &mut rows)?;
                rows.turn();
                second.run(rt, right, self.outer, &mut rows)?;
                rows.give(*op, *distinct, &mut watched)
            }
        }
    }
}
