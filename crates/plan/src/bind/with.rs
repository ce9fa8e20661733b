//! WITH: each reference to a common table expression (CTE) becomes a derived table of its own. A
//! CTE that names itself becomes a [`Recursion`]; inside its recursive query blocks the name stands
//! for the rows of the previous round.
//!
//! # Invariants
//! - W1: a CTE is bound as if it were written where it is defined: it sees the earlier CTEs of its
//!   WITH and what is visible around the WITH, but nothing of the place that names it.
//! - W2: a CTE whose rows may differ between two runs (`RAND()`) is computed once, however often it
//!   is named. If it is correlated, so that its rows cannot be shared, it is named at most once.

use std::borrow::Cow;
use std::cell::Cell;

use nfold_catalog::{ColumnDef, ColumnDefault};
use nfold_sql::ast::{self, ObjectName, QueryBody as AstBody, SetOp, With};
use nfold_types::{CollationId, ErrorCode, SqlError};

use super::context::{Ctes, OwnCte};
use super::{BindCx, BlockBinder, block, set};
use crate::logical::clauses::ColumnMeta;
use crate::logical::expr::{Class, Coercibility, ExprType};
use crate::logical::func::is_volatile;
use crate::logical::query::SubqueryForm;
use crate::logical::query::{Query, QueryBody, Recursion};
use crate::logical::walk;

/// The maximum number of CTE references of one statement, nested ones included. Without a bound,
/// CTEs that each name the previous one twice would double the plan at each step.
const MAX_REFERENCES: usize = 1000;

/// Calls `f` with a context in which the CTEs of `with` may be named. `outer` is the block around
/// the query that the WITH belongs to.
///
/// # Errors
/// 1066 for two CTEs of one name, and the errors of `f`.
pub(super) fn with_ctes<T>(
    cx: &BindCx<'_>,
    with: Option<&With>,
    outer: Option<&BlockBinder<'_>>,
    f: impl FnOnce(&BindCx<'_>) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let Some(with) = with else { return f(cx) };
    let tables = with.tables.as_slice();
    for (i, cte) in tables.iter().enumerate() {
        if tables[..i].iter().any(|before| before.name == cte.name) {
            return Err(SqlError::new(
                ErrorCode::ER_NONUNIQ_TABLE,
                &[&cte.name.value],
            ));
        }
    }
    let named = vec![Cell::new(0); tables.len()];
    let first = Cell::new(MAX_REFERENCES);
    let ctes = Ctes {
        tables,
        count: tables.len(),
        recursive: with.recursive,
        own: None,
        recursion_named: None,
        named: &named,
        left: cx.ctes.map_or(&first, |around| around.left),
        outer,
        around: cx.ctes,
    };
    f(&BindCx {
        ctes: Some(&ctes),
        ..*cx
    })
}

impl<'a> Ctes<'a> {
    fn find(self, name: &ObjectName) -> Option<(Ctes<'a>, usize)> {
        let end = self.count + usize::from(self.recursive);
        let mut seen = self.tables.iter().take(end);
        match seen.position(|c| c.name.value == name.name.value) {
            Some(at) => Some((self, at)),
            None => self.around?.find(name),
        }
    }
}

impl<'b> BlockBinder<'b> {
    /// Binds the CTE that `name` means. Returns its query, the column names given in WITH, and what
    /// identifies its definition unless it is one of its own references; `None` if no CTE has the
    /// name.
    ///
    /// # Errors
    /// The errors of the definition; 1235 for a correlated or recursive definition that is not
    /// repeatable and named twice (W2), and for too many references.
    pub(super) fn common_table(
        &self,
        name: &ObjectName,
    ) -> Result<Option<(Query, &'b [ast::Ident], Option<usize>)>, SqlError> {
        let named = |ctes: &'b Ctes<'b>| ctes.find(name).filter(|_| name.schema.is_none());
        let Some((ctes, at)) = self.cx.ctes.and_then(named) else {
            return Ok(None);
        };
        let cte = &ctes.tables[at];
        if at == ctes.count {
            return Ok(Some((self.own_rows(&ctes, cte)?, &cte.columns, None)));
        }
        let left = ctes.left.get();
        if left == 0 {
            return Err(SqlError::not_supported(format!(
                "more than {MAX_REFERENCES} references to common table expressions"
            )));
        }
        ctes.left.set(left - 1);
        let before = Ctes {
            count: at,
            own: None,
            recursion_named: None,
            ..ctes
        };
        let cx = BindCx {
            ctes: Some(&before),
            derived: !self.cx.keeps_derived,
            ..*self.cx
        };
        // A CTE may name columns from around its WITH only where the naming block has the same
        // outer block.
        let same =
            |around: &&BlockBinder<'_>| ctes.outer.is_some_and(|o| std::ptr::addr_eq(o, *around));
        let outer = self.outer.filter(same);
        let bound = match cte.recursive {
            true => recursion(&cx, &before, &cte.query, left as u32, outer).transpose(),
            false => None,
        };
        let recurses = bound.is_some();
        let bound = bound.unwrap_or_else(|| match outer {
            Some(outer) => {
                let bound = block::bind_subquery(&cx, &cte.query, outer, SubqueryForm::Rows)?;
                Ok((bound.query, bound.correlated))
            }
            None => Ok((block::bind_query(&cx, &cte.query, None)?, false)),
        });
        let (mut query, correlated) = bound.map_err(|e| {
            let unknown = e.code == ErrorCode::ER_BAD_FIELD_ERROR;
            match unknown && ctes.outer.is_some() && outer.is_none() {
                true => SqlError::not_supported(
                    "common table expressions that name columns of an enclosing query, in a subquery",
                ),
                false => e,
            }
        })?;
        if correlated {
            self.correlated.set(true);
        }
        let times = ctes.named[at].get();
        ctes.named[at].set(times + 1);
        // Rows are shared, and computed once, unless they depend on an enclosing query or recurse.
        let is_shared = !correlated && !recurses;
        if times > 0 && !is_shared && is_volatile_query(self.cx, &mut query) {
            return Err(SqlError::not_supported(
                "several references to a common table expression that gives other values each time",
            ));
        }
        let definition = std::ptr::from_ref(cte).addr();
        Ok(Some((query, &cte.columns, Some(definition))))
    }
}

impl BlockBinder<'_> {
    /// The derived table that a CTE's own name stands for inside its definition.
    fn own_rows(&self, ctes: &Ctes<'_>, cte: &ast::Cte) -> Result<Query, SqlError> {
        let error = |code| SqlError::new(code, &[&cte.name.value]);
        let Some(own) = ctes.own else {
            if let Some(named) = ctes.recursion_named {
                named.set(true);
            }
            let AstBody::SetOperation {
                op: SetOp::Union,
                distinct,
                left,
                right,
            } = &cte.query.body
            else {
                return Err(error(ErrorCode::ER_CTE_RECURSIVE_REQUIRES_UNION));
            };
            if is_intersect_or_except(left) || is_intersect_or_except(right) {
                return Err(SqlError::new(ErrorCode::ER_CTE_RECURSIVE_NOT_UNION, &[]));
            }
            let mut operands = Vec::new();
            add_operands(*distinct, right, &mut operands);
            let nested = operands.iter().any(|(_, body)| union_of(body).is_some());
            return Err(match nested {
                true => SqlError::not_supported(
                    "right nested recursive query blocks, in Common Table Expression",
                ),
                false => error(ErrorCode::ER_CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST),
            });
        };
        if own.named.replace(true) || self.cx.depth != own.depth {
            return Err(error(ErrorCode::ER_CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE));
        }
        Ok(own.rows.clone())
    }
}

/// Whether a body is an INTERSECT or an EXCEPT.
fn is_intersect_or_except(body: &AstBody) -> bool {
    match body {
        AstBody::SetOperation { op, .. } => *op != SetOp::Union,
        AstBody::Paren(q) => is_intersect_or_except(&q.body),
        _ => false,
    }
}

/// Whether a UNION is DISTINCT, and its two sides. Looks through parentheses that change nothing.
fn union_of(body: &AstBody) -> Option<(bool, &AstBody, &AstBody)> {
    match body {
        AstBody::SetOperation {
            op: SetOp::Union,
            distinct,
            left,
            right,
        } => Some((*distinct, left, right)),
        AstBody::Paren(q) => {
            let plain = q.with.is_none() && q.order_by.is_empty() && q.limit.is_none();
            plain.then(|| union_of(&q.body)).flatten()
        }
        _ => None,
    }
}

/// Adds the query blocks that a UNION's right side adds to its left one, the last first: several
/// where all is UNION ALL, or where the parser has divided a long chain of UNIONs into two.
fn add_operands<'q>(distinct: bool, body: &'q AstBody, out: &mut Vec<(bool, &'q AstBody)>) {
    match union_of(body) {
        Some((inner, left, right)) if !matches!(body, AstBody::Paren(_)) => {
            add_operands(inner, right, out);
            add_operands(distinct, left, out);
        }
        Some((false, left, right)) if !distinct => {
            add_operands(false, right, out);
            add_operands(false, left, out);
        }
        _ => out.push((distinct, body)),
    }
}

/// The parts of a recursive CTE.
struct Parts<'q> {
    seed: Cow<'q, AstBody>,
    /// The recursive query blocks, each with whether UNION DISTINCT precedes it.
    steps: Vec<(bool, &'q AstBody)>,
}

/// Splits a definition into seed and recursive query blocks; `None` if it is no UNION.
fn parts<'q>(
    cx: &BindCx<'_>,
    ctes: &Ctes<'_>,
    query: &'q ast::Query,
    outer: Option<&BlockBinder<'_>>,
) -> Option<Parts<'q>> {
    if query.with.is_some() || !matches!(query.body, AstBody::SetOperation { .. }) {
        return None;
    }
    let (distinct, mut seed, last) = union_of(&query.body)?;
    let mut steps = Vec::new();
    add_operands(distinct, last, &mut steps);
    while let Some((distinct, left, right)) = union_of(seed)
        && is_recursive(cx, ctes, right, outer)
    {
        add_operands(distinct, right, &mut steps);
        seed = left;
    }
    steps.reverse();
    let mut seed = Cow::Borrowed(seed);
    // The first operands of a parenthesized UNION may belong to the seed.
    while steps.len() > 1 && !is_recursive(cx, ctes, steps[0].1, outer) {
        let (distinct, right) = steps.remove(0);
        seed = Cow::Owned(AstBody::SetOperation {
            op: SetOp::Union,
            distinct,
            left: Box::new(seed.into_owned()),
            right: Box::new(right.clone()),
        });
    }
    Some(Parts { seed, steps })
}

/// Whether a part of a definition names the CTE being defined. Found out by binding the part.
fn is_recursive(
    cx: &BindCx<'_>,
    ctes: &Ctes<'_>,
    body: &AstBody,
    outer: Option<&BlockBinder<'_>>,
) -> bool {
    let named = Cell::new(false);
    let before: Vec<usize> = ctes.named.iter().map(Cell::get).collect();
    let left = ctes.left.get();
    let trial = Ctes {
        recursion_named: Some(&named),
        ..*ctes
    };
    let cx = BindCx {
        ctes: Some(&trial),
        ..*cx
    };
    let bound = set::set_body(&cx, body, outer);
    for (cell, n) in ctes.named.iter().zip(before) {
        cell.set(n);
    }
    ctes.left.set(left);
    bound.is_err() && named.get()
}

/// Whether the recursion is UNION DISTINCT.
///
/// # Errors
/// 1235 if a UNION DISTINCT is followed by a UNION ALL.
fn all_distinct(steps: &[(bool, &AstBody)]) -> Result<bool, SqlError> {
    match steps.windows(2).any(|two| two[0].0 && !two[1].0) {
        true => Err(SqlError::not_supported(
            "recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table Expression",
        )),
        false => Ok(steps.last().is_some_and(|step| step.0)),
    }
}

/// Binds the CTE that follows the visible ones in `ctes`, if it is recursive; otherwise returns
/// `None`. `number` identifies the recursion in its statement. The flag of the result tells whether
/// the query is correlated.
fn recursion(
    cx: &BindCx<'_>,
    ctes: &Ctes<'_>,
    query: &ast::Query,
    number: u32,
    outer: Option<&BlockBinder<'_>>,
) -> Result<Option<(Query, bool)>, SqlError> {
    let Some(parts) = parts(cx, ctes, query, outer) else {
        return Ok(None);
    };
    let steps = parts.steps.iter().map(|(_, step)| step_of(step));
    let Some(bodies) = steps.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let cx = &cx.deeper()?;
    let seed = set::set_body(cx, &parts.seed, outer)?;
    let mut correlated = seed.correlated;
    let seed = seed.query;
    let types = seed
        .types
        .iter()
        .map(|ty| {
            let ty = set::set_type(&[ty], cx.connection, "UNION")?;
            Ok(match ty.class() {
                Class::Null => {
                    ExprType::string(0, CollationId::BINARY, Coercibility::Ignorable, true)
                }
                _ => any_value_of(ty),
            })
        })
        .collect::<Result<Vec<_>, SqlError>>()?;
    let columns: Vec<ColumnMeta> = seed
        .columns
        .iter()
        .zip(&types)
        .map(|(c, t)| set::stored_column(c.name.clone(), t))
        .collect();
    let own = Query {
        body: QueryBody::Working(number),
        columns: columns.clone(),
        types: types.clone(),
        order: Vec::new(),
        limit: None,
        description: None,
    };
    let distinct = all_distinct(&parts.steps)?;
    let mut steps = Vec::with_capacity(bodies.len());
    for (body, whole) in bodies {
        let Some(step) = bind_step(cx, ctes, body, outer, &own)? else {
            return Ok(None);
        };
        if !query.order_by.is_empty() {
            return Err(SqlError::not_supported(
                "ORDER BY over UNION in recursive Common Table Expression",
            ));
        }
        let name = &ctes.tables[ctes.count].name.value;
        check_step(name, &step.query, whole)?;
        correlated |= step.correlated;
        steps.push(step.query);
    }
    let names = &ctes.tables[ctes.count].columns;
    let stored = |(n, (meta, ty)): (usize, (&ColumnMeta, &ExprType))| ColumnDef {
        name: names
            .get(n)
            .map_or_else(|| meta.name.clone(), |name| name.value.as_str().into()),
        ty: ty.col.clone(),
        nullable: true,
        default: ColumnDefault::Null,
        on_update_now: None,
        auto_increment: false,
        comment: Box::default(),
        own_charset: true,
        generated: None,
        visibility: nfold_catalog::Visibility::Visible,
        histogram: None,
    };
    let bound = Query {
        body: QueryBody::Recursive(Box::new(Recursion {
            number,
            name: ctes.tables[ctes.count].name.value.as_str().into(),
            seed,
            steps,
            distinct,
            columns: columns.iter().zip(&types).enumerate().map(stored).collect(),
        })),
        columns,
        types,
        order: Vec::new(),
        limit: block::limit(cx, query.limit.as_ref())?,
        description: None,
    };
    Ok(Some((bound, correlated)))
}

/// Widens a column type of a recursion: the steps may return NULL, and larger numbers than the
/// seed.
fn any_value_of(mut ty: ExprType) -> ExprType {
    ty.nullable = true;
    if ty.col.is_integer() {
        ty.col.width = 0;
    }
    ty
}

/// Binds a recursive query block, in which the CTE's name stands for `rows`. `None` if the block
/// does not name the CTE.
fn bind_step(
    cx: &BindCx<'_>,
    ctes: &Ctes<'_>,
    body: &AstBody,
    outer: Option<&BlockBinder<'_>>,
    rows: &Query,
) -> Result<Option<block::Bound>, SqlError> {
    let own = OwnCte {
        rows: rows.clone(),
        depth: cx.depth,
        named: Cell::new(false),
    };
    let inside = Ctes {
        own: Some(&own),
        ..*ctes
    };
    let inside = BindCx {
        ctes: Some(&inside),
        ..*cx
    };
    let step = set::set_body(&inside, body, outer)?;
    if !own.named.get() {
        return Ok(None);
    }
    match step.query.types.len() == rows.types.len() {
        true => Ok(Some(step)),
        false => Err(SqlError::new(
            ErrorCode::ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
            &[],
        )),
    }
}

/// If a body is a single query block: the block, and whether it has no DISTINCT, ORDER BY and
/// LIMIT.
fn step_of(body: &AstBody) -> Option<(&AstBody, bool)> {
    match body {
        AstBody::Select(s) => Some((body, !s.distinct)),
        AstBody::Table(_) => Some((body, true)),
        AstBody::Paren(q) if q.with.is_none() => {
            let plain = q.order_by.is_empty() && q.limit.is_none();
            step_of(&q.body).map(|(step, whole)| (step, whole && plain))
        }
        _ => None,
    }
}

/// Checks the restrictions on recursive query blocks.
fn check_step(name: &str, step: &Query, whole: bool) -> Result<(), SqlError> {
    let QueryBody::Block(block) = &step.body else {
        let what = "recursive query blocks that are none";
        return Err(SqlError::not_supported(what));
    };
    if !whole {
        return Err(SqlError::not_supported(
            "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression",
        ));
    }
    if block.group.is_some() || !block.windows.is_empty() {
        return Err(SqlError::new(
            ErrorCode::ER_CTE_RECURSIVE_FORBIDS_AGGREGATION,
            &[&name],
        ));
    }
    Ok(())
}

fn is_volatile_query(cx: &BindCx<'_>, query: &mut Query) -> bool {
    let mut found = false;
    walk::each_expr(query, 1, &mut |e, _| {
        found = found || is_volatile(cx.funcs, e)
    });
    found
}
