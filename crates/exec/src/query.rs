//! Whole queries: blocks, set operations, VALUES; and subqueries, which are queries run in the middle of an expression.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nfold_plan::expr::{CmpKind, Expr, ExprType, SubqueryPlan, SubqueryUse};
use nfold_plan::query::{QueryBody, QueryPlan};
use nfold_sql::ast::{BinaryOp, SetOp};
use nfold_types::row::RowLayout;
use nfold_types::{ErrorCode, SqlError, Value};

use crate::aggregate::owned;
use crate::block::{BlockExec, Counts, Limits, RowOut, give_sorted, projected, values_of};
use crate::distinct::Distinct;
use crate::env::RowSink;
use crate::eval::{EvalCx, NoSubqueries, RowRef, Subqueries, Val, compare};
use crate::hash::{HashTable, hash_of};
use crate::output;
use crate::runtime::Runtime;
use crate::sort::Sorter;
use crate::tuple::normal_key;
use crate::tuple::{self, KeyMaker};

/// Runs a query; its rows go to `out`.
pub(crate) fn run(
    rt: &Runtime<'_>,
    q: &QueryPlan,
    outer: &[&[RowRef<'_>]],
    out: &mut dyn RowOut,
) -> Result<(), SqlError> {
    let limits = Limits::new(rt, q.limit.as_ref())?;
    match &q.body {
        QueryBody::Block(block) => {
            BlockExec::open(rt, block, limits)?.run(rt, block, limits, outer, out)
        }
        QueryBody::Rows(_) | QueryBody::Set { .. } => run_set(rt, q, limits, outer, out),
    }
}

/// Runs a query; each row's image, in `layout`, goes to `push`.
pub(crate) fn collect(
    rt: &Runtime<'_>,
    q: &QueryPlan,
    outer: &[&[RowRef<'_>]],
    layout: &RowLayout,
    push: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let mut out = Images {
        layout,
        types: &q.types,
        image: Vec::new(),
        push,
    };
    run(rt, q, outer, &mut out)
}

/// Result rows as row images.
struct Images<'o> {
    layout: &'o RowLayout,
    types: &'o [ExprType],
    image: Vec<u8>,
    push: &'o mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
}

impl RowOut for Images<'_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        let values = values_of(cx, select)?;
        let _ = self.types;
        self.image.clear();
        tuple::encode_row(self.layout, &values, &mut self.image)?;
        (self.push)(&self.image)?;
        Ok(true)
    }
}

/// Result rows for the client.
pub(crate) struct ToSink<'o> {
    pub sink: &'o mut dyn RowSink,
    pub counts: Counts,
}

impl RowOut for ToSink<'_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        output::emit(cx, select, self.sink)?;
        self.counts.sent += 1;
        Ok(true)
    }

    fn skip(&mut self) {
        self.counts.skipped += 1;
    }

    fn sink(&mut self) -> Option<(&mut dyn RowSink, &mut Counts)> {
        Some((self.sink, &mut self.counts))
    }
}

/// A set operation's operands, converted to its types, one after the other.
struct SetOut<'o, 's> {
    rt: &'o Runtime<'s>,
    types: &'o [ExprType],
    layout: &'o RowLayout,
    distinct: Option<Distinct>,
    rows: &'o mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
}

impl RowOut for SetOut<'_, '_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        let mut values = Vec::with_capacity(select.len());
        for (e, ty) in select.iter().zip(self.types) {
            values.push(owned(cx.val_as(e, ty)?.to_value()));
        }
        if let Some(seen) = &mut self.distinct
            && !seen.is_new(self.rt, &values, |out| {
                tuple::encode_row(self.layout, &values, out)
            })?
        {
            return Ok(true);
        }
        let mut image = Vec::new();
        tuple::encode_row(self.layout, &values, &mut image)?;
        (self.rows)(&image)
    }
}

fn run_set(
    rt: &Runtime<'_>,
    q: &QueryPlan,
    limits: Limits,
    outer: &[&[RowRef<'_>]],
    out: &mut dyn RowOut,
) -> Result<(), SqlError> {
    let layout = tuple::layout_of(&q.types);
    let state = rt.state(&NoSubqueries);
    let columns = projected(
        &q.types
            .iter()
            .map(|t| Expr {
                ty: t.clone(),
                ..Expr::null()
            })
            .collect::<Vec<_>>(),
    );
    let counting = counts_all(q);
    let seen = Cell::new(0u64);
    let mut give = |image: &[u8]| -> Result<bool, SqlError> {
        let rows = [RowRef {
            layout: &layout,
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
        } else if n <= end && !out.row(&cx, &columns)? {
            return Ok(false);
        }
        Ok(counting || n < end)
    };
    if limits.wanted() == 0 && !counting {
        return Ok(());
    }
    let found = || rt.found_rows.set(counting.then(|| seen.get()));
    if q.order.is_empty() {
        operands(rt, q, outer, &layout, &mut give)?;
        found();
        return Ok(());
    }
    let maker = KeyMaker::of_order(
        q.order.iter().map(|o| (&q.types[o.column], o.desc)),
        rt.env.max_sort_length(),
    );
    let mut sorter = Sorter::new(rt.env.work_memory(), 0);
    let mut key = Vec::new();
    operands(rt, q, outer, &layout, &mut |image| {
        key.clear();
        for (n, o) in q.order.iter().enumerate() {
            let v = layout
                .get(image, o.column)
                .map_err(|e| crate::eval::row_error(&e))?;
            maker.push(n, &Val::from_ref(v), &mut key)?;
        }
        sorter.push(rt, &key, image)?;
        Ok(true)
    })?;
    give_sorted(rt, sorter, &mut give)?;
    found();
    Ok(())
}

/// SQL_CALC_FOUND_ROWS in the first block of a set operation counts the rows of the whole.
fn counts_all(q: &QueryPlan) -> bool {
    match &q.body {
        QueryBody::Block(block) => block.calc_found_rows,
        QueryBody::Set { left, .. } => counts_all(left),
        QueryBody::Rows(_) => false,
    }
}

/// The rows of a set operation or of VALUES, as images of its own types.
fn operands(
    rt: &Runtime<'_>,
    q: &QueryPlan,
    outer: &[&[RowRef<'_>]],
    layout: &RowLayout,
    rows: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    let more = Cell::new(true);
    let mut watched = |image: &[u8]| -> Result<bool, SqlError> {
        more.set(rows(image)?);
        Ok(more.get())
    };
    match &q.body {
        QueryBody::Block(_) => Ok(()),
        QueryBody::Rows(list) => {
            let state = rt.state(&NoSubqueries);
            let cx = EvalCx {
                rows: &[],
                outer,
                st: &state,
            };
            let mut set = SetOut {
                rt,
                types: &q.types,
                layout,
                distinct: None,
                rows: &mut watched,
            };
            for row in list {
                if !set.row(&cx, row)? {
                    break;
                }
            }
            Ok(())
        }
        QueryBody::Set {
            op,
            distinct,
            left,
            right,
            chained: _,
        } => {
            if *op != SetOp::Union {
                return Err(SqlError::not_supported("INTERSECT and EXCEPT"));
            }
            let distinct = distinct.then(|| {
                Distinct::new(
                    &q.types
                        .iter()
                        .map(|t| Expr {
                            ty: t.clone(),
                            ..Expr::null()
                        })
                        .collect::<Vec<_>>(),
                    rt.env.work_memory(),
                )
            });
            let mut set = SetOut {
                rt,
                types: &q.types,
                layout,
                distinct,
                rows: &mut watched,
            };
            run(rt, left, outer, &mut set)?;
            let SetOut { mut distinct, .. } = set;
            if more.get() {
                let mut set = SetOut {
                    rt,
                    types: &q.types,
                    layout,
                    distinct,
                    rows: &mut watched,
                };
                run(rt, right, outer, &mut set)?;
                distinct = set.distinct;
            }
            match distinct {
                Some(distinct) if more.get() => distinct.put_off(rt, &mut watched),
                _ => Ok(()),
            }
        }
    }
}

/// A subquery's rows.
struct SubRows {
    rows: Vec<Vec<Value>>,
    types: Vec<ExprType>,
    /// For IN over one uncorrelated column, instead of the rows.
    set: Option<RefCell<KeySet>>,
}

/// Keys of a subquery's only column.
#[derive(Default)]
struct KeySet {
    keys: HashTable,
    any: bool,
    null: bool,
}

impl KeySet {
    fn collect(
        rt: &Runtime<'_>,
        plan: &QueryPlan,
        kind: CmpKind,
        cx: &EvalCx<'_>,
        outer: &[&[RowRef<'_>]],
    ) -> Result<KeySet, SqlError> {
        let column = Expr {
            ty: plan.types[0].clone(),
            ..Expr::null()
        };
        let layout = tuple::layout_of(&plan.types);
        let (mut set, mut key) = (KeySet::default(), Vec::new());
        collect(rt, plan, outer, &layout, &mut |image| {
            let value = layout
                .get(image, 0)
                .map_err(|e| crate::eval::row_error(&e))?;
            set.any = true;
            key.clear();
            if !normal_key(cx, &Val::from_ref(value), &column, kind, &mut key) {
                set.null = true;
                return Ok(());
            }
            let hash = hash_of(&key);
            // Beyond memory the file may hold a key several times.
            if !set.keys.is_building_file() && set.keys.contains(rt, hash, &key)? {
                return Ok(());
            }
            set.keys.push(rt, hash, &key)
        })?;
        set.keys.finish(rt)?;
        Ok(set)
    }

    /// `left IN (keys)`
    fn find<'a>(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'a>,
        left: &'a Expr,
        kind: CmpKind,
    ) -> Result<Option<bool>, SqlError> {
        if !self.any {
            return Ok(Some(false));
        }
        let mut key = Vec::new();
        if !normal_key(cx, &cx.val(left)?, left, kind, &mut key) {
            return Ok(None);
        }
        Ok(match self.keys.contains(rt, hash_of(&key), &key)? {
            true => Some(true),
            false if self.null => None,
            false => Some(false),
        })
    }
}

impl SubRows {
    /// Column `n` of the only row; error 1242 where there are more.
    fn only<'a>(&self, n: usize) -> Result<Val<'a>, SqlError> {
        match self.rows.as_slice() {
            [] => Ok(Val::Null),
            [row] => Ok(owned(row[n].clone())),
            _ => Err(SqlError::new(ErrorCode::ER_SUBQUERY_NO_1_ROW, &[])),
        }
    }
}

/// Subqueries of a block while it runs. What is not correlated runs once.
pub(crate) struct BlockSubqueries<'r, 's> {
    rt: &'r Runtime<'s>,
    plans: &'r [SubqueryPlan],
    known: RefCell<Vec<Option<Rc<SubRows>>>>,
}

impl<'r, 's> BlockSubqueries<'r, 's> {
    pub fn new(rt: &'r Runtime<'s>, plans: &'r [SubqueryPlan]) -> Self {
        BlockSubqueries {
            rt,
            plans,
            known: RefCell::new(vec![None; plans.len()]),
        }
    }

    fn rows(
        &self,
        cx: &EvalCx<'_>,
        index: u16,
        use_as: &SubqueryUse,
    ) -> Result<Rc<SubRows>, SqlError> {
        let n = usize::from(index);
        if let Some(known) = self.known.borrow()[n].clone() {
            return Ok(known);
        }
        let sub = &self.plans[n];
        let mut frames: Vec<&[RowRef<'_>]> = cx.outer.to_vec();
        frames.push(cx.rows);
        if let (SubqueryUse::In { kinds, .. }, false) = (use_as, sub.correlated)
            && let ([kind], [_]) = (kinds.as_slice(), sub.plan.types.as_slice())
        {
            let set = KeySet::collect(self.rt, &sub.plan, *kind, cx, &frames)?;
            let rows = Rc::new(SubRows {
                rows: Vec::new(),
                types: sub.plan.types.clone(),
                set: Some(RefCell::new(set)),
            });
            self.known.borrow_mut()[n] = Some(rows.clone());
            return Ok(rows);
        }
        let most = match use_as {
            SubqueryUse::Exists => 1,
            SubqueryUse::Scalar | SubqueryUse::Column(_) => 2,
            _ => usize::MAX,
        };
        let mut out = Values {
            rows: Vec::new(),
            most,
        };
        run(self.rt, &sub.plan, &frames, &mut out)?;
        let rows = SubRows {
            rows: out.rows,
            types: sub.plan.types.clone(),
            set: None,
        };
        let rows = Rc::new(rows);
        if !sub.correlated {
            self.known.borrow_mut()[n] = Some(rows.clone());
        }
        Ok(rows)
    }
}

/// Keeps rows as values, up to a number.
struct Values {
    rows: Vec<Vec<Value>>,
    most: usize,
}

impl RowOut for Values {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        self.rows
            .push(values_of(cx, select)?.iter().map(Val::to_value).collect());
        Ok(self.rows.len() < self.most)
    }
}

impl Subqueries for BlockSubqueries<'_, '_> {
    fn sleep(&self, time: std::time::Duration) -> Result<(), SqlError> {
        self.rt.sleep(time)
    }

    fn value<'a>(
        &self,
        cx: &EvalCx<'a>,
        index: u16,
        use_as: &'a SubqueryUse,
        _: &'a ExprType,
    ) -> Result<Val<'a>, SqlError> {
        let rows = self.rows(cx, index, use_as)?;
        match use_as {
            SubqueryUse::Scalar => rows.only(0),
            SubqueryUse::Column(n) => rows.only(usize::from(*n)),
            SubqueryUse::Exists => Ok(Val::Int(i64::from(!rows.rows.is_empty()))),
            SubqueryUse::In {
                left,
                kinds,
                negated,
            } => {
                let found = match (&rows.set, left.as_slice()) {
                    (Some(set), [left]) => set.borrow_mut().find(self.rt, cx, left, kinds[0])?,
                    _ => in_rows(cx, &rows, left, kinds)?,
                };
                Ok(Val::from_bool(found.map(|f| f != *negated)))
            }
            SubqueryUse::Quantified {
                left,
                op,
                kind,
                all,
            } => {
                let x = cx.val(left)?;
                let mut unknown = false;
                for row in &rows.rows {
                    let y = Val::from_ref(row[0].as_ref());
                    match compare::order(cx, *kind, (&x, &left.ty), (&y, &rows.types[0])) {
                        None => unknown = true,
                        Some(o) => {
                            let holds = compare::holds(
                                if *op == BinaryOp::NullSafeEq {
                                    BinaryOp::Eq
                                } else {
                                    *op
                                },
                                o,
                            );
                            if holds != *all {
                                return Ok(Val::Int(i64::from(!all)));
                            }
                        }
                    }
                }
                Ok(if unknown {
                    Val::Null
                } else {
                    Val::Int(i64::from(*all))
                })
            }
        }
    }
}

/// `left IN (rows)`.
fn in_rows<'a>(
    cx: &EvalCx<'a>,
    rows: &SubRows,
    left: &'a [Expr],
    kinds: &[CmpKind],
) -> Result<Option<bool>, SqlError> {
    if rows.rows.is_empty() {
        return Ok(Some(false));
    }
    let values = values_of(cx, left)?;
    let mut unknown = false;
    for row in &rows.rows {
        let mut result = Some(true);
        for (n, (x, e)) in values.iter().zip(left).enumerate() {
            let y = Val::from_ref(row[n].as_ref());
            match compare::order(cx, kinds[n], (x, &e.ty), (&y, &rows.types[n])) {
                Some(o) if o.is_eq() => {}
                Some(_) => {
                    result = Some(false);
                    break;
                }
                None => result = None,
            }
        }
        match result {
            Some(true) => return Ok(Some(true)),
            None => unknown = true,
            Some(false) => {}
        }
    }
    Ok(if unknown { None } else { Some(false) })
}
