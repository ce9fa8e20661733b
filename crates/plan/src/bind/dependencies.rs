//! Functional dependencies: the columns that have one value in each group.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, TableDef};
use nfold_sql::ast::{BinaryOp, IsTest};

use super::{BlockBinder, Dependency, Grouped, WINDOWS};
use crate::logical::expr::{ColumnAt, Expr, ExprKind, SubqueryUse};
use crate::logical::query::{OuterJoin, Source};

/// The columns that the keys determine: the keys themselves, columns that equal a constant or a
/// determined column, and all columns of a table whose primary key (or unique key without NULLs) is
/// determined.
pub(super) fn determined(
    block: &BlockBinder<'_>,
    keys: &[Expr],
    conditions: &[Expr],
    outer_joins: &[OuterJoin],
) -> Vec<ColumnAt> {
    let mut columns = DeterminedColumns {
        block,
        conditions,
        outer_joins,
        known: keys.iter().filter_map(Expr::as_column).collect(),
    };
    let equal: Vec<_> = conditions
        .iter()
        .filter_map(|c| equality(block, c))
        .collect();
    loop {
        let before = columns.known.len();
        columns.add_equal(&equal);
        outer_joins.iter().for_each(|join| columns.add_inner(join));
        columns.add_dependent();
        columns.add_of_tables();
        if columns.known.len() == before {
            return columns.known;
        }
    }
}

/// The sides of a condition that is an equality. The literals of a list are not parsed, so a list
/// of one member is an equality with a constant.
fn equality(block: &BlockBinder<'_>, c: &Expr) -> Option<(Expr, Expr)> {
    match &c.kind {
        ExprKind::Compare {
            op: BinaryOp::Eq,
            sides,
            ..
        } if !block.varies(c) => Some((sides[0].clone(), sides[1].clone())),
        ExprKind::InParam { left, list, .. } if left.len() == 1 && block.is_single(*list) => {
            Some((left[0].clone(), Expr::int(0)))
        }
        _ => None,
    }
}

/// Whether `e` consists of constants and columns of enclosing queries.
fn is_fixed_outside(e: &Expr) -> bool {
    !e.any(&mut |e| {
        use ExprKind::{AssignUserVar, Column, Subquery};
        matches!(e.kind, Column(_) | Subquery { .. } | AssignUserVar(..))
    })
}

/// The columns known so far to have one value in each group.
struct DeterminedColumns<'s, 'b> {
    block: &'s BlockBinder<'b>,
    conditions: &'s [Expr],
    outer_joins: &'s [OuterJoin],
    known: Vec<ColumnAt>,
}

impl DeterminedColumns<'_, '_> {
    fn has(&self, at: ColumnAt) -> bool {
        self.known.contains(&at)
    }

    fn add(&mut self, at: ColumnAt) {
        if !self.has(at) {
            self.known.push(at);
        }
    }

    /// Adds the columns that equal a constant or a determined column.
    fn add_equal(&mut self, equalities: &[(Expr, Expr)]) {
        for (a, b) in equalities {
            for (column, other) in [(a, b), (b, a)] {
                let Some(at) = column.as_column() else {
                    continue;
                };
                let fixed = self.is_uncorrelated(other)
                    || is_fixed_outside(other)
                    || other.as_column().is_some_and(|o| self.has(o));
                if fixed {
                    self.add(at);
                }
            }
        }
    }

    /// Whether `e` is the value of a subquery that names no column of the block.
    fn is_uncorrelated(&self, e: &Expr) -> bool {
        match e.kind {
            ExprKind::Subquery {
                index,
                use_as: SubqueryUse::Scalar,
            } => !self.block.subqueries[usize::from(index)].correlated,
            _ => false,
        }
    }

    /// Adds the inner columns of an outer join. Its inner row depends on the outer row through the
    /// ON condition alone.
    fn add_inner(&mut self, join: &OuterJoin) {
        let own = |at: &ColumnAt| join.inner >> at.table.min(63) & 1 == 1;
        let mut determined = true;
        for e in &join.on {
            e.any(&mut |e| {
                determined &= e.as_column().is_none_or(|at| own(&at) || self.has(at));
                false
            });
        }
        if !determined {
            return;
        }
        let block = self.block;
        for (a, b) in join.on.iter().filter_map(|c| equality(block, c)) {
            for (column, other) in [(&a, &b), (&b, &a)] {
                let unknown = |e: &Expr| e.as_column().is_some_and(|at| !self.has(at));
                if let Some(at) = column.as_column().filter(own)
                    && !other.any(&mut |e| unknown(e))
                {
                    self.add(at);
                }
            }
        }
    }

    /// Adds the columns of derived tables that depend on determined ones.
    fn add_dependent(&mut self) {
        let block = self.block;
        for (t, slot) in block.scope.iter().enumerate() {
            let nullable = block.tables.get(t).is_some_and(|s| s.nullable);
            let place = |&column: &u16| ColumnAt {
                table: t as u16,
                column,
            };
            // The NULL-extended row of an outer join differs from each row of the table only if
            // some column of the table is never NULL.
            let own = |at: ColumnAt| !slot.columns[usize::from(at.column)].nullable;
            for d in &slot.dependencies {
                let mut from = d.from.iter().map(place);
                let follows = from.clone().all(|at| self.has(at));
                if follows && (!nullable || from.any(own)) {
                    d.to.iter().map(place).for_each(|at| self.add(at));
                }
            }
        }
    }

    /// Adds the generated columns of tables that follow from determined ones, and all columns of a
    /// table of which a unique key is determined.
    fn add_of_tables(&mut self) {
        let block = self.block;
        for (t, slot) in block.tables.iter().enumerate() {
            let Source::Table(def) = &slot.source else {
                continue;
            };
            let place = |c: usize| ColumnAt {
                table: t as u16,
                column: c as u16,
            };
            for (c, column) in def.columns.iter().enumerate() {
                let named = |name: &Arc<str>| {
                    let same = |c: &ColumnDef| eq_name(&c.name, name);
                    let at = def.columns.iter().position(same);
                    at.is_some_and(|at| self.has(place(at)))
                };
                let generated = column.generated.as_ref();
                let follows = generated.is_some_and(|g| g.expr.columns.iter().all(named));
                if follows && !slot.nullable {
                    self.add(place(c));
                }
            }
            if self.has_unique_key(def, &place) {
                (0..def.columns.len()).for_each(|c| self.add(place(c)));
            }
        }
    }

    /// Whether the determined columns include a unique key that has no NULLs. `place`: the position
    /// of a column of the table.
    fn has_unique_key(&self, def: &TableDef, place: &dyn Fn(usize) -> ColumnAt) -> bool {
        def.indexes.iter().any(|i| {
            i.is_unique()
                && !i.parts.is_empty()
                && i.parts.iter().all(|p| {
                    let nullable = def.columns[p.column].nullable;
                    let never_null = !nullable || self.is_never_null(place(p.column));
                    self.has(place(p.column)) && p.prefix_len.is_none() && never_null
                })
        })
    }

    /// Whether the conditions leave no row in which the column is NULL.
    fn is_never_null(&self, at: ColumnAt) -> bool {
        let inner = |join: &&OuterJoin| at.table < 64 && join.inner >> at.table & 1 == 1;
        let joins = self.outer_joins.iter().filter(inner);
        let mut conditions = self
            .conditions
            .iter()
            .chain(joins.flat_map(|join| &join.on));
        conditions.any(|c| rejects_null(c, at))
    }
}

/// A bound query block before its grouping.
pub(super) struct BoundBlock<'s, 'b> {
    pub block: &'s BlockBinder<'b>,
    pub keys: &'s [Expr],
    /// All rows form one group.
    pub implicit: bool,
    pub conditions: &'s [Expr],
    pub outer_joins: &'s [OuterJoin],
}

impl BoundBlock<'_, '_> {
    /// The functional dependencies between the result columns `outputs`. Only two sets of several
    /// columns are tried as determinants: a unique key of a table, and the members of GROUP BY.
    pub fn dependencies(&self, outputs: &[Expr]) -> Vec<Dependency> {
        if self.block.grouped == Grouped::RolledUp {
            return Vec::new();
        }
        let single = (0..outputs.len()).map(|n| vec![n as u16]);
        let mut starts: Vec<Vec<u16>> = single.collect();
        starts.push(Vec::new());
        let place = |kind: &ExprKind| outputs.iter().position(|e| e.kind == *kind);
        let keys = self.keys.iter().map(|k| place(&k.kind).map(|n| n as u16));
        starts.extend(keys.collect::<Option<Vec<u16>>>().filter(|k| k.len() > 1));
        for (t, slot) in self.block.tables.iter().enumerate() {
            let Source::Table(def) = &slot.source else {
                continue;
            };
            for index in def
                .indexes
                .iter()
                .filter(|i| i.is_unique() && i.parts.len() > 1)
            {
                let parts = index.parts.iter().map(|p| {
                    let (table, column) = (t as u16, p.column as u16);
                    place(&ExprKind::Column(ColumnAt { table, column })).map(|n| n as u16)
                });
                starts.extend(parts.collect::<Option<Vec<u16>>>());
            }
        }
        let all = starts.into_iter().map(|from| Dependency {
            to: self.determines(outputs, &from),
            from,
        });
        all.filter(|d| !d.to.is_empty()).collect()
    }

    /// The result columns that the result columns `from` determine.
    fn determines(&self, outputs: &[Expr], from: &[u16]) -> Vec<u16> {
        let every = || (0..outputs.len() as u16).collect();
        if self.implicit {
            return every();
        }
        let start: Vec<Expr> = from
            .iter()
            .map(|&n| outputs[usize::from(n)].clone())
            .collect();
        let known = determined(self.block, &start, self.conditions, self.outer_joins);
        let follows = |e: &Expr| {
            let named = start.iter().any(|s| s.kind == e.kind);
            named || !self.block.varies(e) && !e.any(&mut |e| unknown(e, &known))
        };
        if !self.keys.is_empty() && self.keys.iter().all(follows) {
            return every();
        }
        let numbered = (0u16..).zip(outputs);
        numbered
            .filter(|(_, e)| follows(e))
            .map(|(n, _)| n)
            .collect()
    }
}

/// Whether this node, apart from its operands, has a value that `known` does not determine.
fn unknown(e: &Expr, known: &[ColumnAt]) -> bool {
    match &e.kind {
        ExprKind::Column(at) => at.table >= WINDOWS || !known.contains(at),
        ExprKind::Subquery { .. } | ExprKind::AssignUserVar(..) => true,
        _ => false,
    }
}

/// Whether condition `c` rejects every row in which column `at` is NULL.
fn rejects_null(c: &Expr, at: ColumnAt) -> bool {
    match &c.kind {
        ExprKind::Is {
            expr,
            test: IsTest::Null,
            negated: true,
        } => null_with(expr, at),
        ExprKind::Is {
            expr,
            test: IsTest::True | IsTest::False,
            negated: false,
        } => null_with(expr, at),
        ExprKind::Not(inner) => match &inner.kind {
            ExprKind::Is {
                expr,
                test: IsTest::Null,
                negated: false,
            } => null_with(expr, at),
            _ => null_with(inner, at),
        },
        ExprKind::And(list) => list.iter().any(|e| rejects_null(e, at)),
        ExprKind::Or(list) => list.iter().all(|e| rejects_null(e, at)),
        _ => null_with(c, at),
    }
}

/// Whether `e` is NULL whenever column `at` is NULL.
fn null_with(e: &Expr, at: ColumnAt) -> bool {
    let own = |e: &Expr| null_with(e, at);
    match &e.kind {
        ExprKind::Column(column) => *column == at,
        ExprKind::Compare { op, sides, .. } => *op != BinaryOp::NullSafeEq && sides.iter().any(own),
        ExprKind::Between { parts, .. } => own(&parts[0]),
        ExprKind::In { expr, .. } | ExprKind::Like { expr, .. } => own(expr),
        ExprKind::InParam { left, .. } => left.len() == 1 && own(&left[0]),
        ExprKind::Not(inner) => own(inner),
        _ => false,
    }
}
