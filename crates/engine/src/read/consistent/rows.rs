//! From primary keys to rows: the clustered lookup, what the snapshot sees of what it found, and what it says of the guesses.

use super::newest::{self, Origin};
use super::{Asked, Consistent, Source, Stage, emit, has_key, image_of};
use crate::batch::RowBatch;
use crate::error::{Stop, lift};
use crate::read::settle::{damaged, settle_row, stands};
use crate::read::{ReadSpec, Settled, View};
use crate::record::{CLUSTERED_HEADER, SecondaryEntry};
use crate::session::EngineSession;
use crate::table::Table;
use nfold_types::row::RowLayout;

impl Consistent {
    pub(super) fn fetch_rows(
        &mut self,
        table: &Table,
        session: &EngineSession,
    ) -> Result<(), Stop> {
        while table
            .index(0)
            .tree
            .get_many(session.store(), &mut self.get, usize::MAX)
            .map_err(lift)?
        {}
        let found = self.get.found();
        self.found_order.clear();
        self.found_order.extend(0..found.len() as u32);
        if !found.is_sorted_by_key(|f| f.key) {
            self.found_order.sort_by_key(|&i| found[i as usize].key);
        }
        if matches!(self.source, Source::Leads) {
            self.order_by_point();
        }
        self.stage = Stage::Settle(0);
        self.adopted = false;
        Ok(())
    }

    /// Counts how the guesses did, and notes the leaves of those that were wrong (G2).
    pub(super) fn note_guesses(&self, table: &Table, session: &EngineSession) {
        let guesses = session.guesses();
        if !guesses.on() {
            return;
        }
        let found = self.get.found();
        let hits = u64::from(self.get.guess_hits);
        let misses = (found.len() as u64).saturating_sub(hits);
        guesses.count(hits, misses);
        if misses == 0 && !self.get.guesses_far {
            return;
        }
        let mut last = 0;
        for f in found {
            if !self.get.guess(f.key).is_far_from(f.guess) {
                continue;
            }
            let leaf = self.origins[f.key as usize].leaf;
            if leaf != last {
                guesses.miss(table.def().space, leaf);
                last = leaf;
            }
        }
    }

    pub(super) fn settle(
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
        for i in at..self.found_order.len() {
            let found = &self.get.found()[self.found_order[i] as usize];
            let span = found.span();
            let asked = self.origins[found.key as usize];
            if self.adopted
                && asked.stands
                && let Some(value) = out.data().get(span.clone())
                && stands(view, value)
            {
                out.push_span(
                    asked.point as usize,
                    span.start + CLUSTERED_HEADER..span.end,
                );
                continue;
            }
            self.stage = Stage::Settle(i);
            let arena = if self.adopted {
                out.data()
            } else {
                self.get.values()
            };
            let value = arena.get(span.clone()).ok_or_else(damaged)?;
            let settled = settle_row(session.system(), view, value, &mut self.scratch)?;
            if settled == Settled::Gone {
                continue;
            }
            let image = image_of(settled, value, &self.scratch)?;
            let in_place =
                self.adopted && settled == Settled::Current && !RowLayout::has_external(image);
            let image_span = span.start + CLUSTERED_HEADER..span.end;
            let origin = if by_key {
                Origin {
                    primary: self.points.key(asked.place as usize),
                    entry: None,
                    point: asked.point,
                }
            } else if asked.place == Asked::NO_ENTRY {
                Origin {
                    primary: self.get.key(found.key),
                    entry: None, // V1
                    point: asked.point,
                }
            } else {
                let entry = &entries.entries()[asked.place as usize];
                let secondary = SecondaryEntry::parse(entries.value(entry)).ok_or_else(damaged)?;
                let key = entries.key(entry);
                let primary = secondary.primary_key(key).ok_or_else(damaged)?;
                let stands = settled == Settled::Current && asked.stands;
                if !stands
                    && !newest::is_unsteady(view, image)
                    && !has_key(table, spec.index, image, (key, primary), &mut self.key)?
                {
                    continue; // V2, V4
                }
                Origin {
                    primary,
                    entry: Some(key),
                    point: asked.point,
                }
            };
            if in_place {
                out.push_span(asked.point as usize, image_span);
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
                settled,
                &self.copy,
                &self.scratch,
                origin,
                (&mut self.row, out),
            )?;
        }
        self.stage = if by_key || matches!(self.source, Source::Leads) {
            Stage::Fill
        } else {
            Stage::Entries(self.resume_at)
        };
        Ok(())
    }
}
