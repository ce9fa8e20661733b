//! Uses of an index's order: ORDER BY without a sort, grouping of adjacent rows, MIN and MAX by a
//! single row.

use nfold_catalog::TableDef;

use super::candidate::Candidate;
use super::joins::{SCAN_ROWS_MIN, orders_like_key};
use crate::logical::expr::{ColumnAt, Expr};
use crate::physical::{Access, AccessKind, AggFunc, Block, PointPart, TableSource, sort_cost};

/// The use of an ordered read of the first table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedOrder {
    /// ORDER BY. With LIMIT, an ordered read may end early.
    Order {
        limit: bool,
    },
    Group,
    /// A lone `MIN(col)` or `MAX(col)`.
    MinMax {
        column: ColumnAt,
        max: bool,
    },
}

/// The greatest share of a table's rows that an ordered read with LIMIT is assumed to read.
const LIMITED_SHARE_MAX: f64 = 0.1;

/// The order of its first table that would help the block.
pub(crate) fn wanted(block: &Block, limit: bool) -> Option<WantedOrder> {
    if block.group.is_none() && !block.windows.is_empty() {
        return None;
    }
    if let Some(group) = &block.group {
        if block.tables.len() != 1 {
            return None;
        }
        if let ([agg], true) = (
            group.aggregates.as_slice(),
            group.implicit && block.having.is_empty(),
        ) && matches!(agg.func, AggFunc::Min | AggFunc::Max)
            && let Some(column) = agg.args[0].as_column()
        {
            return Some(WantedOrder::MinMax {
                column,
                max: agg.func == AggFunc::Max,
            });
        }
        let plain = !group.keys.is_empty() && group.keys.iter().all(|k| k.as_column().is_some());
        return plain.then_some(WantedOrder::Group);
    }
    (!block.order.is_empty() && !block.distinct).then_some(WantedOrder::Order { limit })
}

/// The columns of the index in key order, each with whether it is descending; the columns of the
/// primary key follow. Ends before the first part that does not sort by the column's value.
fn key_columns(def: &TableDef, index: usize) -> Vec<(usize, bool)> {
    let mut out: Vec<(usize, bool)> = Vec::new();
    if def.array_part(&def.indexes[index]).is_some() {
        return out;
    }
    let own = def.indexes[index].parts.iter();
    let primary = if index == 0 {
        [].iter()
    } else {
        def.indexes[0].parts.iter()
    };
    for p in own.chain(primary) {
        if p.prefix_len.is_some() || !orders_like_key(&def.columns[p.column].ty.kind) {
            break;
        }
        if !out.iter().any(|(c, _)| *c == p.column) {
            out.push((p.column, p.desc));
        }
    }
    out
}

/// How many of the first key parts have a single value.
fn fixed(access: &Access) -> usize {
    let parts = match &access.kind {
        AccessKind::Points(p) | AccessKind::Range { prefix: p, .. } => p.as_slice(),
        _ => &[],
    };
    parts
        .iter()
        .take_while(|p| matches!(p, PointPart::Eq { .. }))
        .count()
}

/// Whether an access path returns rows in the order of its index. Ranges are sorted when they are
/// bound.
fn in_key_order(access: &Access) -> bool {
    match &access.kind {
        // The executor may scan the table by its primary key.
        kind if kind.may_scan() => access.index == 0 || access.covering,
        AccessKind::Full | AccessKind::Points(_) | AccessKind::Ranges(_) => true,
        // A range for each value of a list; the ranges are sorted by these values.
        AccessKind::Range { .. } | AccessKind::Skip(_) => true,
        _ => false,
    }
}

/// Whether slot `t` returns rows in the order of `keys` (column, descending): `Some(reverse)`.
fn gives(def: &TableDef, access: &Access, keys: &[(usize, bool)]) -> Option<bool> {
    if !in_key_order(access) {
        return None;
    }
    let columns = key_columns(def, access.index);
    let fixed_parts = fixed(access);
    let is_fixed = |c: usize| {
        def.indexes[access.index]
            .parts
            .iter()
            .take(fixed_parts)
            .any(|p| p.column == c)
    };
    let mut rest = columns.iter().filter(|(c, _)| !is_fixed(*c));
    let mut reverse = None;
    for (column, desc) in keys.iter().filter(|(c, _)| !is_fixed(*c)) {
        match rest.next() {
            Some((c, d)) if c == column => {
                let r = d != desc;
                if *reverse.get_or_insert(r) != r {
                    return None;
                }
            }
            _ => {
                // The index continues with another column, or ends here.
                return None;
            }
        }
    }
    let reverse = reverse.unwrap_or(false);
    let forwards = matches!(access.kind, AccessKind::Skip(_));
    (!reverse || !forwards).then_some(reverse)
}

fn order_keys(block: &Block, t: usize) -> Option<Vec<(usize, bool)>> {
    block
        .order
        .iter()
        .map(|k| {
            let at = k.expr.as_column()?;
            (usize::from(at.table) == t).then_some((usize::from(at.column), k.desc))
        })
        .collect()
}

/// The only table that ORDER BY names.
pub(super) fn first_table(block: &Block) -> Option<usize> {
    let at = block.order.first()?.expr.as_column()?;
    let t = usize::from(at.table);
    order_keys(block, t).map(|_| t)
}

/// Whether slot `t` returns rows in the order of ORDER BY.
pub(super) fn gives_order(block: &Block, t: usize, access: &Access) -> bool {
    let TableSource::Table(def) = &block.tables[t].source else {
        return false;
    };
    let given = order_keys(block, t).and_then(|keys| gives(def, access, &keys));
    given == Some(access.reverse)
}

/// Adds to the cost of a candidate the cost of the sort or grouping that it does not save.
/// `conditions` are those on the table's rows.
pub(super) fn add_order_cost(
    block: &Block,
    t: usize,
    def: &TableDef,
    c: &mut Candidate,
    wanted: Option<WantedOrder>,
    table_rows: f64,
    conditions: &[&Expr],
) {
    // The cost of a scan assumes this number of rows at least, so the cost of its sort does, too.
    let sort = |c: &Candidate| match c.access.kind {
        AccessKind::Full => sort_cost(c.rows.max(SCAN_ROWS_MIN)),
        _ => sort_cost(c.rows),
    };
    match wanted {
        None => {}
        Some(WantedOrder::Order { limit }) => {
            let keys = order_keys(block, t);
            match keys.and_then(|keys| gives(def, &c.access, &keys)) {
                Some(reverse) => {
                    c.access.reverse = reverse;
                    if limit {
                        // LIMIT ends an ordered read early, unless conditions reject most rows.
                        // A table of few rows is no exception: its LIMIT is small, too.
                        let share = (100.0 / table_rows)
                            .clamp(0.001, LIMITED_SHARE_MAX)
                            .max(100.0 / c.rows.max(100.0) * 0.1);
                        c.cost *= share.min(1.0);
                    }
                }
                None => c.cost += sort(c),
            }
        }
        Some(WantedOrder::Group) => {
            if group_order(block, def, &c.access, t) {
                c.cost *= 0.95;
            } else {
                c.cost += sort(c) * 0.5;
            }
        }
        Some(WantedOrder::MinMax { column, max }) if min_max(def, &c.access, column).is_some() => {
            c.access.reverse = max
                != key_columns(def, c.access.index)
                    .iter()
                    .any(|(col, d)| *col == usize::from(column.column) && *d);
            // One row gives the result, unless a condition has to be tested on each row.
            if conditions.iter().all(|e| c.access.implied.contains(e)) {
                c.cost = c.cost.min(1.0);
            }
        }
        Some(WantedOrder::MinMax { .. }) => {}
    }
}

fn min_max(def: &TableDef, access: &Access, column: ColumnAt) -> Option<()> {
    let single = match &access.kind {
        AccessKind::Full | AccessKind::Range { .. } => true,
        AccessKind::Points(parts) => parts.iter().all(|p| matches!(p, PointPart::Eq { .. })),
        _ => false,
    };
    let next = key_columns(def, access.index)
        .into_iter()
        .nth(fixed(access))?;
    (single && in_key_order(access) && next.0 == usize::from(column.column)).then_some(())
}

/// Whether MySQL reads the rows of the only table by an index that groups them. It does so whenever
/// there is such an index, unless conditions choose another one.
pub(super) fn an_index_groups(block: &Block) -> bool {
    let [step] = block.joins.as_slice() else {
        return false;
    };
    let TableSource::Table(def) = &block.tables[step.table].source else {
        return false;
    };
    matches!(step.access.kind, AccessKind::Full)
        && (0..def.indexes.len()).any(|index| {
            let access = Access {
                index,
                ..step.access.clone()
            };
            group_order(block, def, &access, step.table)
        })
}

fn group_order(block: &Block, def: &TableDef, access: &Access, t: usize) -> bool {
    let Some(group) = &block.group else {
        return false;
    };
    let Some(keys) = group
        .keys
        .iter()
        .map(Expr::as_column)
        .collect::<Option<Vec<_>>>()
    else {
        return false;
    };
    if !in_key_order(access) || keys.iter().any(|k| usize::from(k.table) != t) {
        return false;
    }
    if group.rollup {
        let columns = keys.iter().map(|k| (usize::from(k.column), false));
        return gives(def, access, &columns.collect::<Vec<_>>()) == Some(access.reverse);
    }
    let fixed_parts = fixed(access);
    let is_fixed = |c: usize| {
        def.indexes[access.index]
            .parts
            .iter()
            .take(fixed_parts)
            .any(|p| p.column == c)
    };
    let mut wanted: Vec<usize> = keys
        .iter()
        .map(|k| usize::from(k.column))
        .filter(|c| !is_fixed(*c))
        .collect();
    for (c, _) in key_columns(def, access.index)
        .iter()
        .filter(|(c, _)| !is_fixed(*c))
    {
        if wanted.is_empty() {
            break;
        }
        match wanted.iter().position(|w| w == c) {
            Some(p) => {
                wanted.remove(p);
            }
            None => return false,
        }
    }
    wanted.is_empty()
}

/// After all tables are placed: removes the sort and simplifies the grouping that an index makes
/// unnecessary.
pub(super) fn use_index_order(block: &mut Block) {
    let single = block.joins.len() == 1;
    let Some(first) = block.joins.first() else {
        if let Some(group) = &mut block.group {
            group.first_row_only = false;
        }
        return;
    };
    let t = first.table;
    let TableSource::Table(def) = block.tables[t].source.clone() else {
        return;
    };
    let access = first.access.clone();
    let no_filter = first.filter.is_empty();
    // Joins preserve the order of the outer rows.
    let last = block.group.is_none() && block.windows.is_empty() && !block.distinct;
    if last && !block.order.is_empty() {
        let given = order_keys(block, t).and_then(|keys| gives(&def, &access, &keys));
        if given == Some(access.reverse)
            || (given.is_some()
                && block
                    .order
                    .iter()
                    .all(|_| fixed_all(block, &def, &access, t)))
        {
            block.ordered = true;
            block.order.clear();
        }
    }
    let ordered_group = single && group_order(block, &def, &access, t);
    if let Some(group) = &mut block.group {
        group.ordered = ordered_group && !group.implicit;
        #[allow(clippy::collapsible_if)]
        // The outer `if` tests the group, the inner one its only aggregate.
        if single && no_filter && group.implicit && block.having.is_empty() {
            if let [agg] = group.aggregates.as_slice()
                && matches!(agg.func, AggFunc::Min | AggFunc::Max)
                && let Some(column) = agg.args[0].as_column()
            {
                let max = agg.func == AggFunc::Max;
                let desc = key_columns(&def, access.index)
                    .iter()
                    .any(|(c, d)| *c == usize::from(column.column) && *d);
                group.first_row_only =
                    min_max(&def, &access, column).is_some() && access.reverse == (max != desc);
            }
        }
    }
}

fn fixed_all(block: &Block, def: &TableDef, access: &Access, t: usize) -> bool {
    let n = fixed(access);
    block.order.iter().all(|k| {
        k.expr.as_column().is_some_and(|at| {
            usize::from(at.table) == t
                && def.indexes[access.index]
                    .parts
                    .iter()
                    .take(n)
                    .any(|p| p.column == usize::from(at.column))
        })
    })
}
