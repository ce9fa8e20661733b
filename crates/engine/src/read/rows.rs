//! From primary keys to rows: the clustered lookup, the visible version of each row, and feedback
//! on row-location hints.

use super::consistent::{
    Consistent, KeyOrigin, PARTS_AHEAD, Source, Stage, emit, has_key, image_of, prefetch_parts,
};
use super::locking::give_row_id;
use super::newest::{self, Origin};
use super::page_rows::VisibleRows;
use super::visibility::{damaged, resolve_row, visible};
use super::{PageRowSink, ReadSpec, Resolved, View};
use crate::batch::RowBatch;
use crate::error::{Stop, lift};
use crate::record::{CLUSTERED_HEADER, SecondaryEntry};
use crate::session::EngineSession;
use crate::table::Table;
use nfold_types::row::RowLayout;

impl Consistent {
    pub(crate) fn fetch_rows(
        &mut self,
        table: &Table,
        session: &EngineSession,
        view: &View<'_>,
        out: &mut RowBatch,
        row_sink: Option<&mut dyn PageRowSink>,
    ) -> Result<(), Stop> {
        let most = match self.source {
            Source::IndexProbes if out.is_empty() => {
                self.standing().saturating_sub(self.get.given())
            }
            _ => 0,
        };
        let mut standing = row_sink.filter(|_| most > 0).map(|row_sink| VisibleRows {
            view,
            row_sink,
            most,
        });
        let tree = &table.index(0).tree;
        let before = self.get.given();
        let more = loop {
            let sink = standing.as_mut().map(|standing| standing as _);
            match tree.get_many_into(session.store(), &mut self.get, usize::MAX, sink) {
                Ok(true) => {}
                end => break end,
            }
        };
        out.add_taken(self.get.given() - before);
        more.map_err(lift)?;
        self.order_found();
        self.stage = Stage::Resolve(0);
        self.adopted = false;
        Ok(())
    }

    /// How many keys come before the first one whose entry does not stand.
    fn standing(&self) -> usize {
        let first = match self.entries.is_empty() {
            true => None,
            false => self.get.tags().position(|asked| !asked.visible()),
        };
        first.unwrap_or(self.get.len())
    }

    /// Sorts the values found into the order of the keys. Waits for pages and wrong row-location
    /// hints return values out of order.
    fn order_found(&mut self) {
        if !self.get.is_in_order() {
            sort_nearly_sorted(self.get.found_mut(), |found| found.key);
        }
    }

    /// Counts how the hints did, and notes the leaves of those that were wrong (row_hint::G2).
    pub(crate) fn count_hints(&self, table: &Table, session: &EngineSession) {
        let row_hints = session.row_hints();
        if !row_hints.on() {
            return;
        }
        let found = self.get.found();
        let hits = u64::from(self.get.hint_hits);
        let misses = ((found.len() + self.get.given()) as u64).saturating_sub(hits);
        row_hints.count(hits, misses);
        if misses == 0 && !self.get.far_hints {
            return;
        }
        let mut last = 0;
        for f in found {
            if !self.get.row_hint(f.key).is_far_from(f.row_hint) {
                continue;
            }
            let leaf = self.get.tag(f.key).leaf;
            if leaf != last {
                row_hints.miss(table.def().space, leaf);
                last = leaf;
            }
        }
    }

    /// Appends the values found, from number `from` on, as rows, until one needs a closer look: its
    /// entry is not known to be visible, or its newest version is not visible or not complete.
    /// Returns the number of rows appended.
    #[inline(always)]
    fn resolve_unchanged(&self, view: &View<'_>, from: usize, out: &mut RowBatch) -> usize {
        let found = self.get.found_tags(from);
        let values =
            found.map_while(|(asked, span)| asked.visible().then_some((asked.point, span)));
        let below = view.sees_below();
        out.push_values(values, CLUSTERED_HEADER, |value| {
            visible(view, below, value)
        })
    }

    pub(crate) fn resolve(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
        at: usize,
        out: &mut RowBatch,
    ) -> Result<(), Stop> {
        let by_key = matches!(self.source, Source::Keys);
        if !self.adopted && at == 0 && out.is_empty() && out.bytes() == 0 {
            out.adopt(|arena| self.get.swap_values(arena));
            self.adopted = true;
        }
        let entries = match self.source {
            Source::Points => self.scan.entries(),
            _ => &self.entries,
        };
        let mut next = at;
        while next < self.get.found().len() {
            if self.adopted && !spec.row_ids {
                next += self.resolve_unchanged(view, next, out);
            }
            let i = next;
            next += 1;
            let Some(found) = self.get.found().get(i) else {
                break;
            };
            if !spec.parts.is_empty() {
                let ahead = self.get.found().get(i + PARTS_AHEAD);
                let arena = if self.adopted {
                    out.data()
                } else {
                    self.get.values()
                };
                let value = ahead.and_then(|ahead| arena.get(ahead.span()));
                prefetch_parts(table, spec, session, value);
            }
            let span = found.span();
            let asked = *self.get.tag(found.key);
            self.stage = Stage::Resolve(i);
            let arena = if self.adopted {
                out.data()
            } else {
                self.get.values()
            };
            let value = arena.get(span.clone()).ok_or_else(damaged)?;
            let resolved = resolve_row(
                session.system(),
                view,
                value,
                || self.get.key(found.key),
                &mut self.scratch,
            )?;
            if resolved == Resolved::Gone {
                continue;
            }
            let image = image_of(resolved, value, &self.scratch)?;
            let page_rows =
                self.adopted && resolved == Resolved::Current && !RowLayout::has_external(image);
            let image_span = span.start + CLUSTERED_HEADER..span.end;
            let origin = if by_key {
                Origin {
                    primary: self.points.key(asked.place() as usize),
                    entry: None,
                    point: asked.point,
                }
            } else if asked.place() == KeyOrigin::NO_ENTRY {
                Origin {
                    primary: self.get.key(found.key),
                    entry: None, // visibility::V1
                    point: asked.point,
                }
            } else {
                let entry = &entries.entries()[asked.place() as usize];
                let secondary = SecondaryEntry::parse(entries.value(entry)).ok_or_else(damaged)?;
                let key = entries.key(entry);
                let primary = secondary.primary_key(key).ok_or_else(damaged)?;
                let visible = resolved == Resolved::Current && asked.visible();
                if !visible
                    && !newest::is_unsteady(view, image)
                    && !has_key(table, spec.index, image, (key, primary), &mut self.key)?
                {
                    continue; // visibility::V2, newest::V4
                }
                Origin {
                    primary,
                    entry: Some(key),
                    point: asked.point,
                }
            };
            let (primary, before) = (origin.primary, out.len());
            if page_rows {
                out.push_span(asked.point as usize, image_span);
                if spec.row_ids {
                    give_row_id(table, primary, out);
                }
                continue;
            }
            // The batch cannot grow while a value in it is read.
            self.copy.clear();
            self.copy.extend_from_slice(value);
            emit(
                table,
                spec,
                session,
                view,
                resolved,
                &self.copy,
                &self.scratch,
                origin,
                out,
            )?;
            if spec.row_ids && out.len() > before {
                give_row_id(table, primary, out);
            }
        }
        self.stage = if by_key || matches!(self.source, Source::IndexProbes) {
            Stage::Fill
        } else {
            Stage::Entries(self.resume_at)
        };
        Ok(())
    }
}

/// Runs that are moved one by one before everything is sorted.
const RUNS: usize = 16;

/// Stable sort for input that consists of a few sorted runs: each run is moved to its place.
pub(crate) fn sort_nearly_sorted<T, K: Ord>(all: &mut [T], key: impl Fn(&T) -> K) {
    let mut sorted = 1;
    for _ in 0..RUNS {
        let Some((last, rest)) = all.get(sorted - 1..).and_then(|all| all.split_first()) else {
            return;
        };
        let mut before = key(last);
        let falls = |item: &T| {
            let key = key(item);
            let falls = key < before;
            before = key;
            falls
        };
        let Some(next) = rest.iter().position(falls) else {
            return;
        };
        let start = sorted + next;
        let first = key(&all[start]);
        let place = all[..start].partition_point(|i| key(i) <= first);
        // What follows goes along as far as it belongs to the same place.
        let behind = key(&all[place]);
        let fits = |pair: &&[T]| key(&pair[0]) <= key(&pair[1]) && key(&pair[1]) < behind;
        let more = all[start..].windows(2).take_while(fits).count();
        let end = start + 1 + more;
        all[place..end].rotate_left(start - place);
        sorted = end;
    }
    all.sort_by_key(key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_brought_to_their_places(lens in prop::collection::vec(1usize..6, 0..40), keys in prop::collection::vec(0u32..60, 0..120)) {
            // Runs in order, of few different keys, so that some are equal.
            let mut keys = keys;
            let mut rest = &mut keys[..];
            for len in lens {
                let (run, others) = std::mem::take(&mut rest).split_at_mut_checked(len).unwrap_or_default();
                run.sort_unstable();
                rest = others;
            }
            rest.sort_unstable();
            let mut order: Vec<u32> = (0..keys.len() as u32).collect();
            let mut expected = order.clone();
            sort_nearly_sorted(&mut order, |&i| keys[i as usize]);
            expected.sort_by_key(|&i| keys[i as usize]);
            prop_assert_eq!(order, expected);
        }
    }
}
