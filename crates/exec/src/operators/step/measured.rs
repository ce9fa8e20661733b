//! The join steps of EXPLAIN ANALYZE: the same steps, with their rows and times. Times are taken
//! for each batch, never for each row.

use std::time::Instant;

use nfold_types::SqlError;

use super::{Lookup, StepCx, StepExec};
use crate::env::batch::Batch;
use crate::runtime::profile::{Counts, Profile, Stage};

impl StepCx<'_, '_> {
    /// As [`next`](Self::next).
    #[cold]
    pub(super) fn next_measured(
        &self,
        profile: &Profile,
        steps: &mut [StepExec],
        position: usize,
        out: &mut Batch,
    ) -> Result<bool, SqlError> {
        let examined = self.rt.examined.get();
        let start = Instant::now();
        let result = self.next_batch(steps, position, out);
        let (time, rows) = (start.elapsed(), out.len() as u64);
        profile.add_call(self.block, Stage::Join(position), rows, time);
        if position == 0 {
            let read = match &steps[0].reader {
                Some(_) => self.rt.examined.get() - examined,
                None => out.read.len() as u64,
            };
            let stage = Stage::Read(0);
            profile.add_call(self.block, stage, read, time);
        }
        result
    }

    /// As [`look_up`](Self::look_up). Reading the rows of a hash table is one execution, and a
    /// lookup is one.
    #[cold]
    pub(super) fn look_up_measured(
        &self,
        profile: &Profile,
        me: &mut StepExec,
        position: usize,
    ) -> Result<(), SqlError> {
        let built = |me: &StepExec| matches!(&me.lookup, Lookup::Hash(t) if t.built);
        let hashed = |me: &StepExec| me.switch.as_ref().is_some_and(|switch| switch.hashed);
        let (before, first_row, was_hashed) = (built(me), me.outer_at, hashed(me));
        let examined = self.rt.examined.get();
        let start = Instant::now();
        let result = self.look_up(me, position);
        let time = start.elapsed();
        if hashed(me) && !was_hashed {
            let once = Counts {
                loops: 1,
                ..Counts::default()
            };
            profile.add(self.block, Stage::Changed(position), once);
        }
        let counts = match &me.lookup {
            Lookup::Hash(_) if before || !built(me) => return result,
            Lookup::Hash(_) => Counts {
                loops: 1,
                rows: self.rt.examined.get() - examined,
                first: time,
                last: time,
            },
            _ => Counts {
                loops: me.group_end.saturating_sub(first_row) as u64,
                rows: me.spans.iter().map(|s| u64::from(s.1 - s.0)).sum(),
                first: time,
                last: time,
            },
        };
        profile.add(self.block, Stage::Read(position), counts);
        result
    }

    /// As [`next_piece`](Self::next_piece), for the candidates after the first piece.
    #[cold]
    pub(super) fn next_piece_measured(
        &self,
        profile: &Profile,
        me: &mut StepExec,
        position: usize,
    ) -> Result<(), SqlError> {
        let start = Instant::now();
        let result = self.next_piece(me, &self.block.joins[position]);
        let counts = Counts {
            rows: me.inner.len() as u64,
            last: start.elapsed(),
            ..Counts::default()
        };
        profile.add(self.block, Stage::Read(position), counts);
        result
    }
}
