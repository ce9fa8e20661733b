//! Whether rows of a table lack the parents that a foreign key demands, before the foreign key is
//! added.

use std::sync::Arc;

use nfold_catalog::ForeignKeyDef;
use nfold_catalog::foreign_key::key_of_other_table;
use nfold_types::ValueRef;

use super::stop;
use crate::batch::{KeyRange, RowBatch};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::read::{KeyProbe, Read, ReadSpec};
use crate::session::EngineSession;
use crate::stats::{block, block_stoppable};
use crate::table::Table;

impl Engine {
    /// Whether a row of `child` has no NULL in the columns of `key`, and no row in `parent`. The
    /// caller holds the exclusive metadata locks of both. Blocks.
    ///
    /// # Errors
    /// [`EngineError::Stopped`], and those of reading.
    pub fn has_orphan(
        &self,
        child: &Arc<Table>,
        key: &ForeignKeyDef,
        parent: &Arc<Table>,
    ) -> Result<bool, EngineError> {
        let Some(index) = key.parent_index(parent.def()) else {
            return Ok(true);
        };
        let layout = key_of_other_table(&key.columns, (parent.def(), index));
        let mut session = EngineSession::internal(self.shared())?;
        session.begin_internal();
        let spec = ReadSpec {
            columns: key.columns.clone(),
            ..ReadSpec::default()
        };
        let mut read = Read::range(child.clone(), spec, &KeyRange::all(), false);
        let mut probe = KeyProbe::new(parent.clone(), index);
        let (mut batch, mut last) = (RowBatch::new(), Vec::new());
        let mut more = true;
        while more {
            stop::check()?;
            batch.clear();
            more = block_stoppable(|| read.next(&mut session, &mut batch))?;
            for row in batch.iter() {
                let value = |c: &usize| child.layout().get(row, *c);
                let is_null = |c: &usize| matches!(value(c), Ok(ValueRef::Null));
                if key.columns.iter().any(is_null) {
                    continue;
                }
                let wanted = probe.key();
                layout
                    .encode_row(child.layout(), row, wanted)
                    .map_err(|e| EngineError::Dictionary(e.to_string()))?;
                if *wanted == last {
                    continue;
                }
                last.clone_from(wanted);
                if !block(|| session.probe(&mut probe))? {
                    block(|| session.commit())?;
                    return Ok(true);
                }
            }
        }
        block(|| session.commit())?;
        Ok(false)
    }
}
