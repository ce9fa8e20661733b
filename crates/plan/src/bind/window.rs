//! Window functions: the clauses that allow them, their windows, and the passes that compute them.
//!
//! A call first becomes a [`WindowDraft`] and a column of the placeholder slot [`WINDOWS`]. Once
//! the whole block is bound, its windows are resolved ([`WindowSpecs`]), their expressions are
//! rewritten over the grouped row if there is a grouping, and [`passes`] assigns each call to a
//! pass.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_sql::ast::{self, FunctionCall, Ident, Window};
use nfold_types::{CollationId, ErrorCode, SqlError, TextSize, TypeKind, Value};

use super::group::{GroupPosition, Grouper};
use super::types::{aggregate_named, aggregate_type, arith_type};
use super::{BlockBinder, WINDOWS, WindowDraft};
use crate::logical::clauses::{AggFunc, OrderKey};
use crate::logical::collate;
use crate::logical::expr::{
    ArithOp, Class, CmpKind, ColumnAt, Expr, ExprKind, ExprType, is_constant,
};
use crate::logical::window::{FrameBound, WindowCall, WindowFrame, WindowFunc, WindowPass};

/// The name of an unnamed window in messages.
const UNNAMED: &str = "<unnamed window>";

/// The maximum number of windows of a block, both named and written out behind OVER.
const MAX_WINDOWS: usize = 127;

/// The windows of a block.
#[derive(Default)]
pub(crate) struct WindowSpecs {
    pub list: Vec<WindowSpec>,
    /// For each draft: its window, as an index into `list`.
    of: Vec<usize>,
}

impl WindowSpecs {
    /// The PARTITION BY and ORDER BY expressions of all windows.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.list.iter_mut().flat_map(|s| {
            let order = s.order.iter_mut().map(|k| &mut k.expr);
            s.partition.iter_mut().chain(order)
        })
    }

    /// Rewrites the expressions of all windows over the grouped row.
    pub fn regroup(&mut self, g: &mut Grouper<'_, '_>) -> Result<(), SqlError> {
        g.rest_of_windows()?;
        for spec in &mut self.list {
            let name = spec.name.clone();
            for (n, e) in spec.partition.iter_mut().enumerate() {
                *e = g.rewrite(e.clone(), GroupPosition::Window(&name, n))?;
            }
            for (n, k) in spec.order.iter_mut().enumerate() {
                k.expr = g.rewrite(k.expr.clone(), GroupPosition::Window(&name, n))?;
            }
        }
        Ok(())
    }
}

/// A window, with the clauses it inherits from the window that it names.
pub(crate) struct WindowSpec {
    pub name: Arc<str>,
    pub partition: Vec<Expr>,
    pub order: Vec<OrderKey>,
    frame: Option<Frame>,
}

struct Frame {
    range: bool,
    start: Bound,
    end: Bound,
}

enum Bound {
    CurrentRow,
    Unbounded,
    By {
        amount: Expr,
        unit: Option<ast::IntervalUnit>,
        following: bool,
    },
}

/// Whether an expression contains a window function.
pub(super) fn has_window(e: &Expr) -> bool {
    e.any(&mut |e| is_window(e))
}

/// Whether an expression is a window function call.
pub(super) fn is_window(e: &Expr) -> bool {
    e.as_column().is_some_and(|at| at.table == WINDOWS)
}

/// Error 3594: an alias of a window function where none is allowed.
pub(super) fn alias_misplaced(name: &str) -> SqlError {
    SqlError::new(ErrorCode::ER_WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE, &[&name])
}

fn func_named(call: &FunctionCall) -> Option<WindowFunc> {
    Some(match call.name.as_str() {
        "row_number" => WindowFunc::RowNumber,
        "rank" => WindowFunc::Rank,
        "dense_rank" => WindowFunc::DenseRank,
        "percent_rank" => WindowFunc::PercentRank,
        "cume_dist" => WindowFunc::CumeDist,
        "ntile" => WindowFunc::Ntile,
        "lead" => WindowFunc::Lead,
        "lag" => WindowFunc::Lag,
        "first_value" => WindowFunc::FirstValue,
        "last_value" => WindowFunc::LastValue,
        "nth_value" => WindowFunc::NthValue,
        _ => WindowFunc::Aggregate(aggregate_named(&call.name, call.star)?),
    })
}

/// Longer strings are TEXT or BLOB in a temporary table (MySQL's `CONVERT_IF_BIGGER_TO_BLOB`).
const MAX_VARCHAR: u64 = 512;

/// The type of a value that a window function passes on from a row: that of a temporary table's
/// column.
fn handed_on(ty: &ExprType) -> ExprType {
    let chars = ty.max_length();
    let mut ty = ty.item();
    let binary = ty.col.collation == CollationId::BINARY;
    match ty.col.kind {
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int => {
            ty.col.kind = TypeKind::BigInt;
        }
        _ if ty.class() != Class::String => {}
        _ if chars <= MAX_VARCHAR => {
            ty.col.width = 0;
            ty.col.kind = match binary {
                true => TypeKind::VarBinary(chars as u32),
                false => TypeKind::VarChar(chars as u32),
            };
        }
        _ if !ty.col.is_blob() => {
            ty.col.width = chars as u32;
            ty.col.kind = match binary {
                true => TypeKind::Blob(TextSize::Normal),
                false => TypeKind::Text(TextSize::Normal),
            };
        }
        _ => {}
    }
    ty
}

impl BlockBinder<'_> {
    /// Binds a call of a window function.
    pub(super) fn window_call(
        &mut self,
        call: &FunctionCall,
        over: &Window,
    ) -> Result<Expr, SqlError> {
        if let Some(name) = &self.window_spec {
            let code = ErrorCode::ER_WINDOW_NESTED_WINDOW_FUNC_USE_IN_WINDOW_SPEC;
            return Err(SqlError::new(code, &[name]));
        }
        if !self.windows_allowed || self.in_aggregate || self.in_window {
            return Err(SqlError::new(
                ErrorCode::ER_WINDOW_INVALID_WINDOW_FUNC_USE,
                &[&call.name],
            ));
        }
        let Some(func) = func_named(call) else {
            let what = format_args!("{} as window function", call.name);
            return Err(SqlError::not_supported(what));
        };
        self.in_window = true;
        let args: Result<Vec<Expr>, SqlError> = call.args.iter().map(|a| self.expr(a)).collect();
        self.in_window = false;
        let mut args = args?;
        let number = match func {
            WindowFunc::Ntile => args.pop(),
            WindowFunc::Lead | WindowFunc::Lag if args.len() > 1 => Some(args.remove(1)),
            WindowFunc::NthValue => args.pop(),
            _ => None,
        };
        if let Some(e) = &number {
            check_number(func, e)?;
        }
        let ty = self.window_type(func, &args, &call.name)?;
        let too_many = |_| SqlError::new(ErrorCode::ER_TOO_MANY_FIELDS, &[]);
        let column = u16::try_from(self.windows.len()).map_err(too_many)?;
        self.windows.push(WindowDraft {
            func,
            args,
            number,
            over: over.clone(),
            ty: ty.clone(),
        });
        let at = ColumnAt {
            table: WINDOWS,
            column,
        };
        Ok(Expr {
            kind: ExprKind::Column(at),
            ty,
        })
    }

    fn window_type(
        &self,
        func: WindowFunc,
        args: &[Expr],
        name: &str,
    ) -> Result<ExprType, SqlError> {
        Ok(match func {
            WindowFunc::RowNumber
            | WindowFunc::Rank
            | WindowFunc::DenseRank
            | WindowFunc::Ntile => ExprType::ubigint(false),
            WindowFunc::PercentRank | WindowFunc::CumeDist => ExprType::double(false),
            WindowFunc::Lead | WindowFunc::Lag => {
                let types: Vec<&ExprType> = args.iter().map(|a| &a.ty).collect();
                let mut ty = handed_on(&collate::common_type(&types, self.cx.connection, name)?);
                ty.nullable |= args.len() == 1;
                ty
            }
            WindowFunc::FirstValue | WindowFunc::LastValue | WindowFunc::NthValue => ExprType {
                nullable: true,
                ..handed_on(&args[0].ty)
            },
            WindowFunc::Aggregate(func) => {
                let ty = aggregate_type(func, args, self.cx, name)?;
                match func {
                    AggFunc::Min | AggFunc::Max => handed_on(&ty),
                    _ => ty,
                }
            }
        })
    }

    /// Resolves all windows of the block: those of the WINDOW clause first, then those written out
    /// behind OVER.
    pub(super) fn window_specs(
        &mut self,
        named: &[(Ident, Window)],
    ) -> Result<WindowSpecs, SqlError> {
        let drafts = std::mem::take(&mut self.windows);
        let specs = self.specs_of(named, &drafts);
        self.windows = drafts;
        specs
    }

    fn specs_of(
        &mut self,
        named: &[(Ident, Window)],
        drafts: &[WindowDraft],
    ) -> Result<WindowSpecs, SqlError> {
        let mut written: Vec<(Arc<str>, &Window)> = Vec::new();
        for (name, window) in named {
            written.push((name.value.as_str().into(), window));
        }
        let mut of = Vec::new();
        for draft in drafts {
            of.push(match &draft.over.name {
                Some(name) if !draft.over.written => place_of(named, name)?,
                _ => {
                    written.push((UNNAMED.into(), &draft.over));
                    written.len() - 1
                }
            });
        }
        if written.len() > MAX_WINDOWS {
            let code = ErrorCode::ER_TOO_MANY_WINDOWS;
            return Err(SqlError::new(code, &[&written.len(), &MAX_WINDOWS]));
        }
        let mut list = Vec::new();
        for (name, window) in &written {
            list.push(self.spec(name, window)?);
        }
        for (n, (name, _)) in named.iter().enumerate() {
            let same = |(other, _): &&(Ident, Window)| eq_name(&other.value, &name.value);
            if let Some((first, _)) = named[..n].iter().find(same) {
                let code = ErrorCode::ER_WINDOW_DUPLICATE_NAME;
                return Err(SqlError::new(code, &[&first.value]));
            }
        }
        let windows: Vec<&Window> = written.iter().map(|(_, w)| *w).collect();
        inherit(named, &windows, &mut list)?;
        list.iter().try_for_each(check_frame)?;
        Ok(WindowSpecs { list, of })
    }

    /// Binds a window's own clauses, without what it inherits.
    fn spec(&mut self, name: &Arc<str>, window: &Window) -> Result<WindowSpec, SqlError> {
        let clause = self.clause;
        self.window_spec = Some(name.clone());
        let spec = self.spec_members(name, window);
        self.window_spec = None;
        self.clause = clause;
        spec
    }

    fn spec_members(&mut self, name: &Arc<str>, window: &Window) -> Result<WindowSpec, SqlError> {
        self.clause = "window partition by";
        let mut partition: Vec<Expr> = Vec::new();
        for e in &window.partition_by {
            let e = self.window_member(name, e)?;
            if !partition.iter().any(|p| p.kind == e.kind) {
                partition.push(e);
            }
        }
        self.clause = "window order by";
        let mut order = Vec::new();
        for o in &window.order_by {
            order.push(OrderKey {
                expr: self.window_member(name, &o.expr)?,
                desc: o.descending,
            });
        }
        let frame = match &window.frame {
            None => None,
            Some(f) => Some(Frame {
                range: f.range,
                start: self.bound(name, &f.start, true)?,
                end: self.bound(name, &f.end, false)?,
            }),
        };
        Ok(WindowSpec {
            name: name.clone(),
            partition,
            order,
            frame,
        })
    }

    /// The select item whose column, under its original name, is the bare name `e`.
    fn listed_column(&self, e: &ast::Expr) -> Result<Option<Expr>, SqlError> {
        let ast::Expr::Column(c) = e else {
            return Ok(None);
        };
        if c.table.is_some() {
            return Ok(None);
        }
        let named = |at: ColumnAt| {
            let slot = self.scope.get(usize::from(at.table));
            let own = slot.and_then(|s| s.columns.get(usize::from(at.column)));
            own.is_some_and(|own| eq_name(&own.name, &c.name.value))
        };
        let listed = self.alias(&c.name.value, self.clause)?;
        Ok(listed.filter(|e| e.as_column().is_some_and(named)))
    }

    fn window_member(&mut self, name: &str, e: &ast::Expr) -> Result<Expr, SqlError> {
        if matches!(e, ast::Expr::Literal(ast::Literal::Int(_))) {
            let code = ErrorCode::ER_WINDOW_ILLEGAL_ORDER_BY;
            return Err(SqlError::new(code, &[&name]));
        }
        let bound = match self.listed_column(e)? {
            Some(listed) => listed,
            None => self.expr(e)?,
        };
        let mut outer = None;
        bound.any(&mut |e| {
            if let ExprKind::Outer { level, at } = e.kind {
                outer = Some((level, at));
            }
            outer.is_some()
        });
        match outer {
            None => Ok(bound),
            Some((level, at)) => {
                let mut block = Some(&*self);
                for _ in 0..level {
                    block = block.and_then(|b| b.outer);
                }
                let column = block.map(|b| b.full_name(at)).unwrap_or_default();
                let code = ErrorCode::ER_OUTER_REFERENCE_IN_WINDOW_SPEC;
                Err(SqlError::new(code, &[&column]))
            }
        }
    }

    fn bound(
        &mut self,
        name: &str,
        bound: &ast::FrameBound,
        is_start: bool,
    ) -> Result<Bound, SqlError> {
        Ok(match bound {
            ast::FrameBound::CurrentRow => Bound::CurrentRow,
            ast::FrameBound::Unbounded { following } if *following == is_start => {
                let code = match is_start {
                    true => ErrorCode::ER_WINDOW_FRAME_START_ILLEGAL,
                    false => ErrorCode::ER_WINDOW_FRAME_END_ILLEGAL,
                };
                return Err(SqlError::new(code, &[&name]));
            }
            ast::FrameBound::Unbounded { .. } => Bound::Unbounded,
            ast::FrameBound::By {
                amount,
                unit,
                following,
            } => Bound::By {
                amount: self.expr(amount)?,
                unit: *unit,
                following: *following,
            },
        })
    }
}

fn place_of(named: &[(Ident, Window)], name: &Ident) -> Result<usize, SqlError> {
    let found = named
        .iter()
        .position(|(n, _)| eq_name(&n.value, &name.value));
    found.ok_or_else(|| SqlError::new(ErrorCode::ER_WINDOW_NO_SUCH_WINDOW, &[&name.value]))
}

/// Adds the inherited clauses to windows that name another window. `windows` pairs each window as
/// written with its position in `list`.
fn inherit(
    named: &[(Ident, Window)],
    windows: &[&Window],
    list: &mut [WindowSpec],
) -> Result<(), SqlError> {
    let mut parents = Vec::new();
    for window in windows {
        parents.push(match &window.name {
            Some(name) => Some(place_of(named, name)?),
            None => None,
        });
    }
    for start in 0..windows.len() {
        let mut at = parents[start];
        for _ in 0..windows.len() {
            at = at.and_then(|n| parents[n]);
        }
        if at.is_some() {
            let code = ErrorCode::ER_WINDOW_CIRCULARITY_IN_WINDOW_GRAPH;
            return Err(SqlError::new(code, &[]));
        }
    }
    for (n, window) in windows.iter().enumerate() {
        let Some(parent) = parents[n] else { continue };
        if !window.partition_by.is_empty() {
            let code = ErrorCode::ER_WINDOW_NO_CHILD_PARTITIONING;
            return Err(SqlError::new(code, &[]));
        }
        let (own, of) = (&list[n].name, &list[parent].name);
        if list[parent].frame.is_some() {
            return Err(SqlError::new(ErrorCode::ER_WINDOW_NO_INHERIT_FRAME, &[of]));
        }
        let mut ordered = !window.order_by.is_empty();
        let mut ancestor = Some(parent);
        while let Some(a) = ancestor {
            if ordered && !windows[a].order_by.is_empty() {
                let code = ErrorCode::ER_WINDOW_NO_REDEFINE_ORDER_BY;
                return Err(SqlError::new(code, &[own, of]));
            }
            ordered |= !windows[a].order_by.is_empty();
            ancestor = parents[a];
        }
    }
    for n in 0..windows.len() {
        let mut ancestor = parents[n];
        while let Some(a) = ancestor {
            let (partition, order) = (list[a].partition.clone(), list[a].order.clone());
            let spec = &mut list[n];
            if spec.partition.is_empty() {
                spec.partition = partition;
            }
            if spec.order.is_empty() {
                spec.order = order;
            }
            ancestor = parents[a];
        }
    }
    Ok(())
}

/// Whether a literal is not a number, is negative, or (with `whole`) has decimals. Other
/// expressions are checked when they are evaluated.
fn is_wrong_amount(e: &Expr, whole: bool) -> bool {
    match &e.kind {
        ExprKind::Const(Value::Null) => true,
        ExprKind::Const(Value::Int(v)) => *v < 0,
        ExprKind::Const(Value::UInt(_)) => false,
        ExprKind::Const(Value::Decimal(d)) => whole || d.is_negative(),
        ExprKind::Const(Value::Double(d)) => whole || *d < 0.0,
        ExprKind::Neg(inner) => matches!(inner.kind, ExprKind::Const(_)),
        _ => false,
    }
}

fn check_frame(spec: &WindowSpec) -> Result<(), SqlError> {
    let Some(frame) = &spec.frame else {
        return Ok(());
    };
    let err = |code| Err(SqlError::new(code, &[&spec.name]));
    let backwards = match (&frame.start, &frame.end) {
        (Bound::CurrentRow, Bound::By { following, .. }) => !following,
        (Bound::By { following, .. }, Bound::CurrentRow) => *following,
        (Bound::By { following: a, .. }, Bound::By { following: b, .. }) => *a && !b,
        _ => false,
    };
    if backwards {
        return err(ErrorCode::ER_WINDOW_FRAME_ILLEGAL);
    }
    for bound in [&frame.start, &frame.end] {
        let Bound::By { amount, unit, .. } = bound else {
            continue;
        };
        if !frame.range && unit.is_some() {
            return err(ErrorCode::ER_WINDOW_ROWS_INTERVAL_USE);
        }
        if frame.range {
            let [OrderKey { expr, .. }] = spec.order.as_slice() else {
                return err(ErrorCode::ER_WINDOW_RANGE_FRAME_ORDER_TYPE);
            };
            let class = expr.ty.class();
            if !class.is_number() && !class.is_temporal() {
                return err(ErrorCode::ER_WINDOW_RANGE_FRAME_ORDER_TYPE);
            }
            match (class.is_temporal(), unit.is_some()) {
                (true, false) => return err(ErrorCode::ER_WINDOW_RANGE_FRAME_TEMPORAL_TYPE),
                (false, true) => return err(ErrorCode::ER_WINDOW_RANGE_FRAME_NUMERIC_TYPE),
                _ => {}
            }
        }
        if !is_constant(amount) {
            return err(ErrorCode::ER_WINDOW_RANGE_BOUND_NOT_CONSTANT);
        }
        if is_wrong_amount(amount, !frame.range) {
            return err(ErrorCode::ER_WINDOW_FRAME_ILLEGAL);
        }
    }
    Ok(())
}

/// Error 1210 for a literal that NTILE, LEAD, LAG or NTH_VALUE does not accept.
fn check_number(func: WindowFunc, e: &Expr) -> Result<(), SqlError> {
    let least = match func {
        WindowFunc::Ntile | WindowFunc::NthValue => 1,
        _ => 0,
    };
    let fits = match &e.kind {
        ExprKind::Const(Value::Int(v)) => *v >= least,
        ExprKind::Const(Value::UInt(v)) => i64::try_from(*v).is_ok(),
        ExprKind::Param(_) | ExprKind::UserVar(_) => true,
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => Err(SqlError::new(
            ErrorCode::ER_WRONG_ARGUMENTS,
            &[&func.name()],
        )),
    }
}

/// Groups `drafts` into passes and returns the position of each draft's result. The slots of the
/// passes follow the `slots` others.
pub(super) fn passes(
    b: &BlockBinder<'_>,
    drafts: Vec<WindowDraft>,
    specs: &WindowSpecs,
    slots: usize,
) -> (Vec<WindowPass>, Vec<ColumnAt>) {
    let mut passes: Vec<WindowPass> = Vec::new();
    // Calls without PARTITION BY and ORDER BY come first: they keep the order of the incoming rows,
    // while each later pass sorts.
    let sorts = |n: usize| {
        let spec = &specs.list[specs.of[n]];
        !spec.partition.is_empty() || !spec.order.is_empty()
    };
    let mut turns: Vec<usize> = (0..drafts.len()).collect();
    turns.sort_by_key(|n| sorts(*n));
    let mut drafts: Vec<Option<WindowDraft>> = drafts.into_iter().map(Some).collect();
    let mut places = vec![
        ColumnAt {
            table: 0,
            column: 0
        };
        drafts.len()
    ];
    for n in turns {
        let Some(draft) = drafts[n].take() else {
            continue;
        };
        let spec = &specs.list[specs.of[n]];
        let at = passes.iter().position(|p| {
            let common = p.order.len().min(spec.order.len());
            p.partition == spec.partition && p.order[..common] == spec.order[..common]
        });
        let at = at.unwrap_or_else(|| {
            passes.push(WindowPass {
                partition: spec.partition.clone(),
                order: Vec::new(),
                calls: Vec::new(),
            });
            passes.len() - 1
        });
        let pass = &mut passes[at];
        if pass.order.len() < spec.order.len() {
            pass.order.clone_from(&spec.order);
        }
        let call = WindowCall {
            func: draft.func,
            args: draft.args,
            number: draft.number,
            order: spec.order.len(),
            frame: frame_of(b, spec),
            ty: draft.ty,
            window: spec.name.clone(),
        };
        let column = pass.calls.iter().position(|c| *c == call);
        let column = column.unwrap_or_else(|| {
            pass.calls.push(call);
            pass.calls.len() - 1
        });
        places[n] = ColumnAt {
            table: (slots + at) as u16,
            column: column as u16,
        };
    }
    (passes, places)
}

/// Replaces the placeholder columns of window functions by the positions of their results.
pub(super) fn place(e: &mut Expr, places: &[ColumnAt]) {
    match &mut e.kind {
        ExprKind::Column(at) if at.table == WINDOWS => *at = places[usize::from(at.column)],
        _ => e.each_child_mut(&mut |child| place(child, places)),
    }
}

fn frame_of(b: &BlockBinder<'_>, spec: &WindowSpec) -> WindowFrame {
    match &spec.frame {
        None if spec.order.is_empty() => WindowFrame {
            start: FrameBound::Unbounded,
            end: FrameBound::Unbounded,
        },
        None => WindowFrame {
            start: FrameBound::Unbounded,
            end: FrameBound::Peers,
        },
        Some(frame) => WindowFrame {
            start: bound_of(b, spec, frame.range, &frame.start),
            end: bound_of(b, spec, frame.range, &frame.end),
        },
    }
}

fn bound_of(b: &BlockBinder<'_>, spec: &WindowSpec, range: bool, bound: &Bound) -> FrameBound {
    match bound {
        Bound::Unbounded => FrameBound::Unbounded,
        Bound::CurrentRow if range => FrameBound::Peers,
        Bound::CurrentRow => FrameBound::CurrentRow,
        Bound::By {
            amount,
            unit,
            following,
        } => match spec.order.first() {
            Some(key) if range => value_bound(b, key, amount.clone(), *unit, *following),
            _ => FrameBound::Rows {
                amount: amount.clone(),
                following: *following,
            },
        },
    }
}

fn value_bound(
    b: &BlockBinder<'_>,
    key: &OrderKey,
    amount: Expr,
    unit: Option<ast::IntervalUnit>,
    following: bool,
) -> FrameBound {
    let own = key.expr.clone();
    // With a descending order, following rows have smaller values.
    let subtract = following == key.desc;
    let value = match unit {
        Some(unit) => b.moved_by(own, amount.clone(), unit, subtract),
        None => {
            let op = if subtract { ArithOp::Sub } else { ArithOp::Add };
            let ty = arith_type(op, &own.ty, &amount.ty, b.cx);
            Expr {
                kind: ExprKind::Arith(op, Box::new([own, amount.clone()])),
                ty,
            }
        }
    };
    let either = |class: Class| key.expr.ty.class() == class || value.ty.class() == class;
    let kind = match key.expr.ty.class() {
        Class::Time if value.ty.class() == Class::Time => CmpKind::Time,
        class if class.is_temporal() => CmpKind::DateTime,
        _ if either(Class::Double) => CmpKind::Double,
        _ if either(Class::Decimal) => CmpKind::Decimal,
        _ => CmpKind::Int,
    };
    FrameBound::Value {
        value,
        amount,
        kind,
    }
}
