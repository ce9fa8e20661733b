//! A stretch of clustered entries that becomes rows where it lies: the caller's batch takes the memory that the cursor copied into.

use super::{Consistent, Origin, Source, Stage, emit};
use crate::batch::RowBatch;
use crate::error::Stop;
use crate::read::settle::{damaged, settle_row, stands};
use crate::read::{ReadSpec, View};
use crate::record::CLUSTERED_HEADER;
use crate::session::EngineSession;
use crate::table::Table;

impl Consistent {
    /// Whether all entries at hand can become rows of `out` in place. Not after a stop: then they are copied one by one, which keeps progress.
    pub(super) fn can_adopt(&self, spec: &ReadSpec, at: usize, end: usize, out: &RowBatch) -> bool {
        spec.index == 0
            && matches!(self.source, Source::Range)
            && !self.stopped
            && at == 0
            && end == self.order.len()
            && out.is_empty()
            && out.bytes() == 0
    }

    /// Makes all entries at hand rows of `out`, which is empty. If that stops, nothing was done.
    pub(super) fn adopt_entries(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
        out: &mut RowBatch,
    ) -> Result<(), Stop> {
        out.adopt(|arena| self.entries.swap_bytes(arena));
        let bytes = out.bytes();
        let done = self.settle_in_place(table, spec, session, view, out);
        if done.is_ok() {
            self.stage = Stage::Entries(self.order.len());
        } else {
            self.stopped = true;
            out.arena().truncate(bytes);
            self.entries.swap_bytes(out.arena());
            out.clear();
        }
        done
    }

    fn settle_in_place(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
        out: &mut RowBatch,
    ) -> Result<(), Stop> {
        for entry in self.entries.entries() {
            let span = entry.value_span();
            let value = out.data().get(span.clone()).ok_or_else(damaged)?;
            if stands(view, value) {
                let image = span.start + CLUSTERED_HEADER..span.end;
                out.push_span(entry.point as usize, image);
                continue;
            }
            let settled = settle_row(session.system(), view, value, &mut self.scratch)?;
            // Key and value: the batch cannot grow while they are read in it.
            let key = entry.key_span();
            let data = out.data().get(key.start..span.end).ok_or_else(damaged)?;
            self.copy.clear();
            self.copy.extend_from_slice(data);
            let (primary, value) = self.copy.split_at(key.len());
            let origin = Origin {
                primary,
                entry: None,
                point: entry.point,
            };
            let buffers = (&mut self.row, &mut *out);
            emit(
                table,
                spec,
                session,
                view,
                settled,
                value,
                &self.scratch,
                origin,
                buffers,
            )?;
        }
        Ok(())
    }
}
