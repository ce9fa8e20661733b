//! Binds the optimizer hints about access paths.

use nfold_catalog::TableDef;
use nfold_sql::ast::{PathHint, PathHintKind};

use super::binder::BlockBinder;
use crate::logical::query::{IndexHints, PathChoice, Source};

impl BlockBinder<'_> {
    /// Adds the hints to those of their tables. As in MySQL, a hint with an unknown name has no
    /// effect.
    pub(super) fn path_hints(&mut self, hints: &[PathHint]) {
        for hint in hints {
            let slot = self
                .scope
                .iter()
                .position(|s| hint.table.eq_ignore_ascii_case(&s.alias));
            let Some(table) = slot.and_then(|slot| self.tables.get_mut(slot)) else {
                continue;
            };
            if let Source::Table(def) = &table.source
                && let Some(indexes) = indexes(def, &hint.indexes)
            {
                add(&mut table.hints, hint.kind, indexes);
            }
        }
    }
}

/// The positions of the named indexes; `None` if a name is unknown.
fn indexes(def: &TableDef, names: &[String]) -> Option<Vec<usize>> {
    let index = |name: &String| match name.eq_ignore_ascii_case("PRIMARY") {
        true => def.has_primary_key().then_some(0),
        false => def.index(name),
    };
    names.iter().map(index).collect()
}

fn add(hints: &mut IndexHints, kind: PathHintKind, indexes: Vec<usize>) {
    let (choice, allowed) = match kind {
        PathHintKind::IndexMerge => (&mut hints.index_merge, true),
        PathHintKind::NoIndexMerge => (&mut hints.index_merge, false),
        PathHintKind::SkipScan => (&mut hints.skip_scan, true),
        PathHintKind::NoSkipScan => (&mut hints.skip_scan, false),
    };
    // The first hint counts.
    if *choice == PathChoice::ByCost {
        *choice = match allowed {
            true => PathChoice::Forced(indexes),
            false => PathChoice::Forbidden(indexes),
        };
    }
}
