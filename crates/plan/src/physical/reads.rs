//! How a plan reads its tables, for status counters.

use super::{
    AccessKind, Block, InsertSource, Plan, QueryBody, QueryPlan, SubqueryPlan, TableSource,
};

/// Whether stored tables are read by full scans or by ranges, as the first or as a later table of a
/// block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    pub scan: bool,
    pub full_join: bool,
    pub range: bool,
    pub range_join: bool,
    /// A table is scanned by an index that is neither covering nor in the wanted order.
    pub no_index: bool,
}

impl Plan {
    /// How its blocks read, subqueries included.
    pub fn reads(&self) -> Reads {
        let mut reads = Reads::default();
        match self {
            Plan::Query(q) => query(q, &mut reads),
            Plan::Insert(p) => {
                if let InsertSource::Query(q) = &p.source {
                    query(q, &mut reads);
                }
                subqueries(&p.subqueries, &mut reads);
            }
            Plan::Update(p) => block(&p.source, &mut reads),
            Plan::Delete(p) => block(&p.source, &mut reads),
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
        QueryBody::Set { left, right, .. } => {
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

fn block(b: &Block, reads: &mut Reads) {
    for (at, step) in b.joins.iter().enumerate() {
        match &b.tables[step.table].source {
            TableSource::Derived(q) => query(q, reads),
            TableSource::Virtual(_) | TableSource::Json(_) => {}
            TableSource::Table(_) => {
                let access = match &step.access.kind {
                    AccessKind::Hash { build, .. } => &**build,
                    _ => &step.access,
                };
                let helps = access.index != 0 || access.covering || at == 0 && b.ordered;
                match &access.kind {
                    AccessKind::Full => {
                        reads.no_index |= !helps;
                        match at {
                            0 => reads.scan = true,
                            _ => reads.full_join = true,
                        }
                    }
                    AccessKind::Range { .. } | AccessKind::Ranges(_) if at == 0 => {
                        reads.range = true
                    }
                    AccessKind::Range { .. } | AccessKind::Ranges(_) => reads.range_join = true,
                    _ => {}
                }
            }
        }
    }
    subqueries(&b.subqueries, reads);
}
