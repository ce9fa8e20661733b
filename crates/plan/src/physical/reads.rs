//! How a plan uses its tables, for status counters and `performance_schema`.

use nfold_catalog::TableId;

use super::{
    AccessKind, AggFunc, Aggregate, Block, InsertSource, Plan, PointPart, QueryBody, QueryPlan,
    SubqueryPlan, TableSource,
};

/// How many tables are read as a whole or by ranges: first tables of a block, and later ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    pub scan: u16,
    pub full_join: u16,
    pub range: u16,
    pub range_join: u16,
    /// Derived tables that are the first of a block, and results of set operations.
    pub temporary_scan: u16,
    /// Tables that are named, each time that they are.
    pub tables: Vec<TableUse>,
    /// A table is read as a whole, and no index is of any use for that: it neither holds all that
    /// is needed nor gives the order.
    pub no_index: bool,
}

/// A table that a plan names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableUse {
    pub table: TableId,
    /// The statement changes it, or locks its rows to change them.
    pub writes: bool,
}

impl Plan {
    /// How its blocks read, subqueries included.
    pub fn reads(&self) -> Reads {
        let mut reads = Reads::default();
        match self {
            Plan::Query(q) => query(q, &mut reads),
            Plan::Insert(p) => {
                reads.tables.push(TableUse {
                    table: p.table.id,
                    writes: true,
                });
                if let InsertSource::Query(q) = &p.source {
                    query(q, &mut reads);
                }
                subqueries(&p.subqueries, &mut reads);
            }
            Plan::Update(p) => changed_block(&p.source, &mut reads),
            Plan::Delete(p) => changed_block(&p.source, &mut reads),
            Plan::UpdateTables(p) => block(&p.source, &mut reads),
            Plan::DeleteTables(p) => block(&p.source, &mut reads),
            Plan::Do(_, subs) => subqueries(subs, &mut reads),
            Plan::Explain(_) => {}
        }
        reads
    }
}

fn query(q: &QueryPlan, reads: &mut Reads) {
    match &q.body {
        QueryBody::Block(b) => block(b, reads),
        QueryBody::Set {
            left,
            right,
            distinct,
            ..
        } => {
            // The temporary table without duplicates is scanned.
            reads.temporary_scan += u16::from(*distinct);
            query(left, reads);
            query(right, reads);
        }
        QueryBody::Recursive(r) => {
            r.queries().for_each(|q| query(q, reads));
        }
        QueryBody::Rows(_) | QueryBody::Working(_) => {}
    }
}

fn subqueries(list: &[SubqueryPlan], reads: &mut Reads) {
    list.iter().for_each(|s| query(&s.plan, reads));
}

/// The block of an UPDATE or DELETE of one table, whose reads do not count as those of a SELECT.
fn changed_block(b: &Block, reads: &mut Reads) {
    block(b, reads);
    (reads.scan, reads.range) = (0, 0);
}

/// Whether a lookup has several keys, which is a range to MySQL.
fn has_several_keys(parts: &[PointPart]) -> bool {
    parts
        .iter()
        .any(|part| !matches!(part, PointPart::Eq { .. }))
}

/// Whether MySQL finds the result without reading the table: its number of rows, or an end of an
/// index.
fn is_optimized_away(b: &Block) -> bool {
    let counts = |a: &Aggregate| a.func == AggFunc::CountStar;
    b.joins.len() == 1
        && (b.group.as_ref()).is_some_and(|g| {
            let all = g.implicit && g.aggregates.iter().all(counts);
            g.first_row_only || all && b.joins[0].filter.is_empty()
        })
}

fn block(b: &Block, reads: &mut Reads) {
    for (at, step) in b.joins.iter().enumerate() {
        match &b.tables[step.table].source {
            TableSource::Derived(q) => {
                reads.temporary_scan += u16::from(at == 0);
                query(q, reads);
            }
            TableSource::Virtual(_) | TableSource::Json(_) => {}
            TableSource::Table(def) => {
                reads.tables.push(TableUse {
                    table: def.id,
                    writes: b.locks_to_change(step.table),
                });
                let access = match &step.access.kind {
                    AccessKind::Hash { build, .. } => &**build,
                    _ => &step.access,
                };
                let helps = access.index != 0 || access.covering || at == 0 && b.ordered;
                match &access.kind {
                    AccessKind::Full => {
                        reads.no_index |= !helps;
                        match at {
                            0 if is_optimized_away(b) => {}
                            0 => reads.scan += 1,
                            _ => reads.full_join += 1,
                        }
                    }
                    AccessKind::Range { .. }
                    | AccessKind::Ranges(_)
                    | AccessKind::Merge(_)
                    | AccessKind::Skip(_) => match at {
                        0 => reads.range += 1,
                        _ => reads.range_join += 1,
                    },
                    AccessKind::Points(parts) if at == 0 && has_several_keys(parts) => {
                        reads.range += 1
                    }
                    _ => {}
                }
            }
        }
    }
    subqueries(&b.subqueries, reads);
}
