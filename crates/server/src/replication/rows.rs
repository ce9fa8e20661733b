//! Applies a row event in a session: finds the table, locks its definition, and runs the executor.

use std::cell::RefCell;
use std::sync::Arc;

use nfold_binlog::{RowChangeKind, RowsEvent, TableMap};
use nfold_catalog::{TableDef, TableId};
use nfold_exec::{Checkpoints, ExecCx, ExpectedRows, apply_row_event};
use nfold_plan::row_event::{RowEventKind, RowEventPlan, plan_row_event};
use nfold_types::{ErrorCode, SqlError};

use crate::session::Session;
use crate::session::locks::write_permit;
use crate::session::plan_info::{Info, plan_cx};
use crate::session::vars::VarValue;
use crate::unix_time::unix_us;

/// Applies an event as a statement of the open transaction. Returns the number of rows.
///
/// # Errors
/// 1146 if the table does not exist, and the errors of [`apply_row_event`].
pub(crate) fn apply(
    session: &mut Session,
    cx: &mut dyn ExecCx,
    map: &TableMap,
    event: &RowsEvent,
) -> Result<u64, SqlError> {
    session.conditions.clear();
    session.env.begin_statement(unix_us());
    let completing = session.server.replication.is_completing();
    let expected = match completing {
        true => ExpectedRows::AnyVersion,
        false => ExpectedRows::SourceVersion,
    };
    // A row may refer to one of a later moment.
    let checks = VarValue::Bool(!event.no_foreign_key_checks() && !completing);
    session
        .env
        .vars
        .set_known(&[("foreign_key_checks", checks)]);
    let plan = plan(session, cx, map, event)?;
    session.begin_work(true);
    session.server_locks.changed = true;
    let warnings = RefCell::new(std::mem::take(&mut session.conditions));
    let engine = session.server.engine.clone();
    let result = apply_row_event(
        (&engine, &mut session.engine),
        cx,
        &session.env,
        &warnings,
        (&plan, expected),
        (map, event),
    );
    session.conditions = warnings.into_inner();
    result
}

/// Plans the event, with metadata locks on the table and on those that its foreign keys reach.
fn plan(
    session: &mut Session,
    cx: &mut dyn ExecCx,
    map: &TableMap,
    event: &RowsEvent,
) -> Result<RowEventPlan, SqlError> {
    let kind = match event.kind {
        RowChangeKind::Insert => RowEventKind::Insert,
        RowChangeKind::Update | RowChangeKind::PartialUpdate => RowEventKind::Update,
        RowChangeKind::Delete => RowEventKind::Delete,
    };
    let missing = || {
        let names: [&dyn std::fmt::Display; 2] = [&map.database, &map.table];
        SqlError::new(ErrorCode::ER_NO_SUCH_TABLE, &names)
    };
    let mut ids: Vec<TableId> = Vec::new();
    loop {
        session.lock_tables_shared(cx, &mut |schema| {
            let table = schema.table(&map.database, &map.table);
            let own = table.into_iter().flat_map(|t| [t.id, write_permit(t.id)]);
            own.chain(ids.iter().copied()).collect()
        })?;
        let table: Arc<TableDef> = session
            .schema
            .table(&map.database, &map.table)
            .filter(|table| !table.is_view())
            .cloned()
            .ok_or_else(missing)?;
        let info = Info {
            env: &session.env,
            engine: &session.server.engine,
            checkpoint: &Checkpoints::new(cx),
        };
        let plan = plan_row_event(&plan_cx(&info, &session.schema, b"", &[]), &table, kind)?;
        let Some(keys) = &plan.foreign else {
            return Ok(plan);
        };
        let before = ids.len();
        for (id, changes) in keys.uses() {
            let all = [Some(id), changes.then(|| write_permit(id))];
            for id in all.into_iter().flatten() {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
        if ids.len() == before {
            return Ok(plan);
        }
    }
}
