//! WITH: each reference to a common table expression is a derived table of its own.
//!
//! # Invariants
//! - W1: a definition is bound as if it stood where it is defined: it sees the definitions before it and around its WITH, not those where it is named.
//! - W2: what gives other values when it is run again (`RAND()`) is named once, or not at all: MySQL runs a definition once, however often it is named.

use std::cell::Cell;

use nfold_sql::ast::{self, ObjectName, With};
use nfold_types::{ErrorCode, SqlError};

use super::{BlockBinder, PlanCx, block};
use crate::access::is_volatile;
use crate::query::QueryPlan;
use crate::walk;

/// References of one statement, nested ones included: definitions that name one another twice each are twice as many with each.
const MAX_REFERENCES: usize = 1000;

/// The common table expressions in sight: some of one WITH, and those around it.
#[derive(Clone, Copy)]
pub struct Ctes<'a> {
    tables: &'a [ast::Cte],
    /// The first so many are in sight.
    count: usize,
    /// The next one is, too: it is the one that is being defined (RECURSIVE).
    recursive: bool,
    /// How often each is named so far.
    named: &'a [Cell<usize>],
    /// References that are left, of the statement.
    left: &'a Cell<usize>,
    /// How many queries are around the WITH.
    depth: usize,
    around: Option<&'a Ctes<'a>>,
}

/// Calls `f` with the common table expressions of `with` in sight; `outer` is what is around the query that they belong to.
///
/// # Errors
/// Two of one name; those of `f`.
pub(super) fn in_sight<T>(
    cx: &PlanCx<'_>,
    with: Option<&With>,
    outer: Option<&BlockBinder<'_>>,
    f: impl FnOnce(&PlanCx<'_>) -> Result<T, SqlError>,
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
        named: &named,
        left: cx.ctes.map_or(&first, |around| around.left),
        depth: outer.map_or(0, |o| o.depth + 1),
        around: cx.ctes,
    };
    f(&PlanCx {
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
    /// The definition that `name` means, bound, and the names of its columns, as far as they are given; `None`: it is no common table expression.
    ///
    /// # Errors
    /// Those of the definition; 1235 for one that names itself, for one that gives other values each time and is named twice, and for too many references.
    pub(super) fn common_table(
        &self,
        name: &ObjectName,
    ) -> Result<Option<(QueryPlan, &'b [ast::Ident])>, SqlError> {
        let named = |ctes: &'b Ctes<'b>| ctes.find(name).filter(|_| name.schema.is_none());
        let Some((ctes, at)) = self.cx.ctes.and_then(named) else {
            return Ok(None);
        };
        if at == ctes.count {
            return Err(SqlError::not_supported(
                "recursive common table expressions",
            ));
        }
        let left = ctes.left.get();
        if left == 0 {
            return Err(SqlError::not_supported(format!(
                "more than {MAX_REFERENCES} references to common table expressions"
            )));
        }
        ctes.left.set(left - 1);
        let cte = &ctes.tables[at];
        let before = Ctes { count: at, ..ctes };
        let cx = PlanCx {
            ctes: Some(&before),
            ..*self.cx
        };
        // What is around the WITH is around a block of its own query; nothing else can be told from here.
        let outer = self.outer.filter(|_| self.depth == ctes.depth);
        let (mut plan, correlated) = match outer {
            Some(outer) => block::bind_subquery(&cx, &cte.query, outer)?,
            None => (block::bind_query(&cx, &cte.query, None)?, false),
        };
        if correlated {
            self.correlated.set(true);
        }
        let times = ctes.named[at].get();
        ctes.named[at].set(times + 1);
        if times > 0 && is_volatile_query(self.cx, &mut plan) {
            return Err(SqlError::not_supported(
                "several references to a common table expression that gives other values each time",
            ));
        }
        Ok(Some((plan, &cte.columns)))
    }
}

fn is_volatile_query(cx: &PlanCx<'_>, plan: &mut QueryPlan) -> bool {
    let mut found = false;
    walk::all(plan, &mut |e| found = found || is_volatile(cx, e));
    found
}
