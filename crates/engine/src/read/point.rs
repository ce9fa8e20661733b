//! One whole clustered key: straight down the tree, and from the leaf into the caller's batch.
//! Nothing is staged, as nothing can overlap.

use super::consistent::{Consistent, Stage, emit};
use super::newest::Origin;
use super::visibility::{damaged, resolve_row};
use super::{ReadSpec, Resolved, View};
use crate::batch::RowBatch;
use crate::error::{Stop, lift};
use crate::record::{CLUSTERED_HEADER, RowHeader};
use crate::session::EngineSession;
use crate::table::Table;
use nfold_types::row::RowLayout;
use std::ops::Range;

impl Consistent {
    /// Reads the row of a single key, if it exists. After a wait, call again.
    ///
    /// The snapshot is opened while the leaf is loaded into the cache. This is correct because no
    /// row was read before, and the validation shows that the page has not changed since before the
    /// snapshot was opened.
    #[inline]
    pub(crate) fn read_point(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &mut EngineSession,
        out: &mut RowBatch,
    ) -> Result<(), Stop> {
        if self.stage == Stage::Done {
            return Ok(());
        }
        let start = out.bytes();
        let index = table.index(0);
        let (store, trx) = session.reader();
        let found = index
            .tree
            .get_span(
                store,
                self.points.key(0),
                &mut self.shape,
                out.arena(),
                || {
                    trx.snapshot();
                },
            )
            .map_err(lift)?;
        let resolved = session.check_usable(index).and_then(|()| match found {
            Some(span) => {
                let view = session.view();
                self.resolve_point(table, spec, session, &view, (start, span), out)
            }
            None => Ok(()),
        });
        if resolved.is_err() {
            out.arena().truncate(start);
        }
        resolved?;
        (self.more, self.stage) = (false, Stage::Done);
        Ok(())
    }

    /// Makes the value that lies at `span` of the batch's memory, which ended at `start` before, a
    /// row of it, or takes it away.
    #[inline]
    fn resolve_point(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
        (start, span): (usize, Range<usize>),
        out: &mut RowBatch,
    ) -> Result<(), Stop> {
        let value = &out.data()[span.clone()];
        let resolved = resolve_row(
            session.system(),
            view,
            value,
            || self.points.key(0),
            &mut self.scratch,
        )?;
        if resolved == Resolved::Current {
            let (_, image) = RowHeader::split(value).ok_or_else(damaged)?;
            if !RowLayout::has_external(image) {
                out.push_span(0, span.start + CLUSTERED_HEADER..span.end);
                return Ok(());
            }
        }
        self.copy.clear();
        self.copy.extend_from_slice(value);
        out.arena().truncate(start);
        let origin = Origin {
            primary: self.points.key(0),
            entry: None,
            point: 0,
        };
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
        )
    }
}
