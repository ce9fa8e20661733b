//! Binds the optimizer hints that change the plan of a block.

use nfold_catalog::TableDef;
use nfold_sql::ast::{PlanHint, PlanHintKind};

use super::binder::BlockBinder;
use super::from::FromInfo;
use crate::logical::query::{IndexHints, PathChoice, Source, Table};

/// What hints say of a block as a whole.
#[derive(Default)]
pub(super) struct BlockHints {
    /// SEMIJOIN or NO_SEMIJOIN, for the block as a subquery.
    pub semijoin: Option<bool>,
    /// JOIN_FIXED_ORDER
    pub straight: bool,
    /// JOIN_ORDER, JOIN_PREFIX and JOIN_SUFFIX: the slots of the first set are read before those of
    /// the second one, as bit sets.
    pub orders: Vec<(u64, u64)>,
}

impl BlockBinder<'_> {
    /// Adds hints about tables to those of the tables, and returns the others. As in MySQL, a hint
    /// with an unknown name has no effect, and of contradictory ones the first counts.
    pub(super) fn plan_hints(&mut self, hints: &[PlanHint], from: &FromInfo) -> BlockHints {
        use PlanHintKind::*;
        let mut block = BlockHints::default();
        if hints.is_empty() {
            return block;
        }
        // Outer joins, LATERAL and JSON_TABLE have an order of their own.
        let reads_others = |t: &Table| t.lateral != 0 || matches!(t.source, Source::Json(_));
        let is_free = from.outer_joins.is_empty() && !self.tables.iter().any(reads_others);
        for hint in hints {
            match hint.kind {
                Index | NoIndex | IndexMerge | NoIndexMerge | SkipScan | NoSkipScan => {
                    self.index_hint(hint);
                }
                Merge | NoMerge | Pushdown | NoPushdown => self.derived_hint(hint),
                Semijoin => block.semijoin = block.semijoin.or(Some(true)),
                // Without one strategy, another one may still be used.
                NoSemijoin if hint.names.is_empty() => {
                    block.semijoin = block.semijoin.or(Some(false));
                }
                NoSemijoin => {}
                JoinFixedOrder => block.straight = true,
                JoinOrder | JoinPrefix | JoinSuffix if is_free => {
                    let orders = self.orders(hint).unwrap_or_default();
                    let known = from.straight_joins.iter().chain(&block.orders);
                    if !is_circular(known.chain(&orders), self.tables.len()) {
                        block.orders.extend(orders);
                    }
                }
                JoinOrder | JoinPrefix | JoinSuffix => {}
            }
        }
        block
    }

    fn slot(&self, name: &str) -> Option<usize> {
        let mut aliases = self.scope.iter();
        let slot = aliases.position(|s| name.eq_ignore_ascii_case(&s.alias))?;
        (slot < self.tables.len()).then_some(slot)
    }

    fn index_hint(&mut self, hint: &PlanHint) {
        let Some((table, names)) = hint.names.split_first() else {
            return;
        };
        let slot = self.slot(table);
        let Some(table) = slot.map(|slot| &mut self.tables[slot]) else {
            return;
        };
        if let Source::Table(def) = &table.source
            && let Some(named) = indexes(def, names)
        {
            add(&mut table.hints, hint.kind, (named, def.indexes.len()));
        }
    }

    /// MERGE, DERIVED_CONDITION_PUSHDOWN and their opposites. Without names they are about all
    /// tables of the block.
    fn derived_hint(&mut self, hint: &PlanHint) {
        let slots: Vec<usize> = match hint.names.is_empty() {
            true => (0..self.tables.len()).collect(),
            false => hint.names.iter().filter_map(|n| self.slot(n)).collect(),
        };
        for slot in slots {
            let hints = &mut self.tables[slot].hints;
            let (choice, on) = match hint.kind {
                PlanHintKind::Merge => (&mut hints.merge, true),
                PlanHintKind::NoMerge => (&mut hints.merge, false),
                PlanHintKind::Pushdown => (&mut hints.pushdown, true),
                _ => (&mut hints.pushdown, false),
            };
            *choice = choice.or(Some(on));
        }
    }

    /// The orders that JOIN_ORDER, JOIN_PREFIX or JOIN_SUFFIX demands; `None` with an unknown name.
    fn orders(&self, hint: &PlanHint) -> Option<Vec<(u64, u64)>> {
        let slots = hint.names.iter().map(|name| self.slot(name));
        let sets: Vec<u64> = slots
            .map(|slot| slot.filter(|&s| s < 64).map(|s| 1 << s))
            .collect::<Option<_>>()?;
        let named = sets.iter().fold(0, |all, set| all | set);
        let others = (0..self.tables.len().min(64)).fold(0u64, |all, s| all | 1 << s) & !named;
        let mut orders: Vec<_> = sets.windows(2).map(|pair| (pair[0], pair[1])).collect();
        match hint.kind {
            PlanHintKind::JoinPrefix => orders.push((named, others)),
            PlanHintKind::JoinSuffix => orders.push((others, named)),
            _ => {}
        }
        orders.retain(|&(first, second)| first != 0 && second != 0);
        Some(orders)
    }
}

/// Whether no order of `count` slots keeps all of `orders`.
fn is_circular<'a>(orders: impl Iterator<Item = &'a (u64, u64)> + Clone, count: usize) -> bool {
    let mut left = (0..count.min(64)).fold(0u64, |all, slot| all | 1 << slot);
    // Removes the slots that no remaining slot must precede, until there is none left.
    while left != 0 {
        let waiting = orders.clone().filter(|(first, _)| first & left != 0);
        let free = left & !waiting.fold(0, |all, (_, second)| all | second);
        if free == 0 {
            return true;
        }
        left &= !free;
    }
    false
}

/// The positions of the named indexes; `None` if a name is unknown.
fn indexes(def: &TableDef, names: &[String]) -> Option<Vec<usize>> {
    let index = |name: &String| match name.eq_ignore_ascii_case("PRIMARY") {
        true => def.has_primary_key().then_some(0),
        false => def.index(name),
    };
    names.iter().map(index).collect()
}

/// Adds a hint about indexes, of a table with `count` of them.
fn add(hints: &mut IndexHints, kind: PlanHintKind, (indexes, count): (Vec<usize>, usize)) {
    let all_without_names = |indexes: Vec<usize>| match indexes.is_empty() {
        true => (0..count).collect(),
        false => indexes,
    };
    let (choice, allowed) = match kind {
        PlanHintKind::IndexMerge => (&mut hints.index_merge, true),
        PlanHintKind::NoIndexMerge => (&mut hints.index_merge, false),
        PlanHintKind::SkipScan => (&mut hints.skip_scan, true),
        PlanHintKind::NoSkipScan => (&mut hints.skip_scan, false),
        PlanHintKind::Index => {
            let only = hints.only.get_or_insert_default();
            only.extend(all_without_names(indexes));
            hints.force = true;
            return;
        }
        _ => return hints.ignore.extend(all_without_names(indexes)),
    };
    // The first hint counts.
    if *choice == PathChoice::ByCost {
        *choice = match allowed {
            true => PathChoice::Forced(indexes),
            false => PathChoice::Forbidden(indexes),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circular_orders_are_found() {
        let circular = |orders: &[(u64, u64)]| is_circular(orders.iter(), 4);
        assert!(!circular(&[]));
        assert!(!circular(&[(1, 2), (2, 4), (1, 4), (0b0011, 0b1000)]));
        assert!(circular(&[(1, 2), (2, 1)]));
        assert!(circular(&[(1, 2), (2, 4), (0b1100, 1)]));
        assert!(circular(&[(1, 1)]));
    }
}
