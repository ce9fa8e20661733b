//! ALTER TABLE of tables with full-text indexes.

use nfold_catalog::{ColumnDef, TableDef, Visibility};
use nfold_sql::ast::{AlterAction, AlterAlgorithm, AlterLock, AlterTable, KeyKind};
use nfold_types::{ErrorCode, SqlError};

use super::Source;
use crate::ddl::bind::error;

/// Checks the full-text keys that an ALTER TABLE adds, as InnoDB does for its way to build them.
///
/// # Errors
/// 1795 for several keys, 1846 for LOCK=NONE.
pub(super) fn check_added(alter: &AlterTable) -> Result<(), SqlError> {
    let is_fulltext =
        |a: &&AlterAction| matches!(a, AlterAction::AddKey(k) if k.kind == KeyKind::Fulltext);
    let added = alter.actions.iter().filter(is_fulltext).count();
    if added > 1 && alter.algorithm != AlterAlgorithm::Copy {
        return Err(error(ErrorCode::ER_INNODB_FT_LIMIT, &[]));
    }
    if added > 0 && alter.lock == AlterLock::None {
        let args: [&dyn std::fmt::Display; 3] = [
            &"LOCK=NONE",
            &"Fulltext index creation requires a lock",
            &"LOCK=SHARED",
        ];
        let code = ErrorCode::ER_ALTER_OPERATION_NOT_SUPPORTED_REASON;
        return Err(error(code, &args));
    }
    Ok(())
}

/// Whether MySQL copies the rows for another order or number of columns, because the table has a
/// full-text index.
pub(super) fn is_copied_by_mysql(
    old: &TableDef,
    columns: &[ColumnDef],
    sources: &[Source],
) -> bool {
    let shown = |c: &ColumnDef| c.visibility != Visibility::Hidden;
    let before = (0..old.columns.len()).filter(|n| shown(&old.columns[*n]));
    let before = before.map(Source::Old);
    let after = columns.iter().zip(sources);
    let after = after.filter(|(c, _)| shown(c)).map(|(_, source)| *source);
    old.indexes.iter().any(|i| i.fulltext().is_some()) && !before.eq(after)
}
