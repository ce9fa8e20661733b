//! Joined rows that are grouped WITH ROLLUP.

use nfold_plan::query::GroupPlan;
use nfold_types::SqlError;

use super::block::Run;
use crate::operators::group::{Grouping, Rollup};

impl Run<'_, '_> {
    /// As [`grouped`](Self::grouped), WITH ROLLUP.
    #[cold]
    #[inline(never)]
    pub(crate) fn rolled_up(
        self,
        plan: &GroupPlan,
        grouping: &Grouping,
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let scx = self.scx;
        let rt = scx.rt;
        let mut rollup = Rollup::new(plan, grouping, rt.env.work_memory());
        if self.nothing {
            return rollup.finish_empty(rt, &scx.eval(&[]), emit);
        }
        let mut go_on = true;
        self.joined(&mut |cx| {
            go_on = rollup.add(rt, cx, plan, emit)?;
            Ok(go_on)
        })?;
        match go_on {
            true => rollup.finish(rt, &scx.eval(&[]), emit),
            false => Ok(()),
        }
    }
}
