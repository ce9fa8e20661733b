//! The data dictionary: databases, tables and accounts as rows of an internal table.
//!
//! # Picture (format v1)
//! ```text
//! space 1, file "dictionary":  user area: 0 u64 magic │ 8 u32 root page of the table below │ 16 u64 next table or index id
//! internal table (id 1, index id 1): kind TINYINT UNSIGNED, id VARBINARY(700), data LONGBLOB, PRIMARY KEY (kind, id)
//!   kind 1  database: id = name                       data = DatabaseDef
//!   kind 2  table:    id = table id, big-endian       data = TableDef
//!   kind 3  account:  id = user, 0, host              data = Account
//!   kind 4  leftover: id = index id, big-endian       data = u32 space, u32 root: an unused tree
//!   kind 5  view:     id = view id, big-endian        data = StoredView
//!   kind 6  replication channel: id = its name        data = its configuration
//!   kind 7  replication channel: id = its name        data = its coordinates
//!   kind 8  statistics: id = table id, big-endian     data = StoredStats
//! ```
//! # Invariants
//! D1. The committed rows of the dictionary define which objects exist. The next start removes a
//!     tablespace that no row names, and a tree that a leftover row names together with the row.
//! D2. Ids are logged before they are used, and are never reused.
//!
//! # Failure
//! An object that cannot be read stops the start with its kind and id. To go on without it would
//! lose tables. Statistics that cannot be read are made anew.

use std::sync::Arc;

use nfold_btree::TreeHandle;
use nfold_catalog::codec::{Stored, StoredStats, StoredView};
use nfold_catalog::{
    Account, ColumnDef, ColumnDefault, DatabaseDef, IndexDef, IndexId, IndexKind, IndexPart,
    TableDef, TableId, TableOptions,
};
use nfold_store::{PageId, PageNo, SpaceId, Store, USER_AREA};
use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, TextSize, TypeKind, ValueRef};

use crate::batch::{EqualityKeys, KeyRange, RowBatch};
use crate::error::{EngineError, Stop, lift};
use crate::read::{Read, ReadSpec, RowLock};
use crate::session::EngineSession;
use crate::shared::DICTIONARY;
use crate::stats::block;
use crate::table::Table;
use crate::write::{DeleteOp, InsertOp, UpdateOp};

/// File of the dictionary's space.
pub(crate) const SPACE_NAME: &str = "dictionary";
const INDEX_ID: u64 = 1;
/// First id for users' tables and indexes.
const FIRST_ID: u64 = 1000;
const MAGIC: u64 = u64::from_le_bytes(*b"nfold\0d1");
const AT_MAGIC: usize = USER_AREA;
const AT_ROOT: usize = USER_AREA + 8;
const AT_NEXT_ID: usize = USER_AREA + 16;

/// What kind of object a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Database = 1,
    Table = 2,
    Account = 3,
    Leftover = 4,
    View = 5,
    Channel = 6,
    Coordinates = 7,
    Statistics = 8,
}

/// Everything the dictionary holds.
#[derive(Default)]
pub(crate) struct Contents {
    pub databases: Vec<DatabaseDef>,
    pub tables: Vec<TableDef>,
    pub views: Vec<TableDef>,
    pub accounts: Vec<Account>,
    /// (index id, space, root page)
    pub leftovers: Vec<(u64, SpaceId, PageNo)>,
    pub statistics: Vec<(TableId, StoredStats)>,
}

/// Makes the internal table in a new space.
pub(crate) fn create(store: &Store, space: SpaceId) -> Result<(), EngineError> {
    block(|| -> Result<(), Stop> {
        let mut mtr = store.mtr();
        mtr.reserve(TreeHandle::CREATE_LOG_BYTES + 1024, space, 1)
            .map_err(lift)?;
        let root = TreeHandle::create(&mut mtr, space, INDEX_ID);
        let page = PageId { space, page: 0 };
        let header = match mtr.find(page) {
            Some(header) => header,
            None => mtr.latch(page).map_err(lift)?,
        };
        mtr.write(header, AT_MAGIC, &MAGIC.to_le_bytes());
        mtr.write(header, AT_ROOT, &root.to_le_bytes());
        mtr.write(header, AT_NEXT_ID, &FIRST_ID.to_le_bytes());
        let end = mtr.commit();
        if let Some(wait) = store.wait_durable(end.end) {
            wait.block();
        }
        Ok(())
    })
}

/// Opens the internal table.
pub(crate) fn open(store: &Arc<Store>, space: SpaceId) -> Result<Table, EngineError> {
    let (magic, root) = block(|| -> Result<(u64, u32), Stop> {
        loop {
            let page = store.read(PageId { space, page: 0 }).map_err(lift)?;
            let found = (page.u64(AT_MAGIC), page.u32(AT_ROOT));
            if page.validate() {
                return Ok(found);
            }
        }
    })?;
    if magic != MAGIC {
        return Err(EngineError::Dictionary(
            "the dictionary's space has no dictionary in it".into(),
        ));
    }
    Ok(Table::new(Arc::new(definition(space, root)), store.clone()))
}

fn definition(space: SpaceId, root: PageNo) -> TableDef {
    let binary = |kind| ColumnType::string(kind, CollationId(63));
    let column = |name: &str, ty| ColumnDef {
        name: name.into(),
        ty,
        nullable: false,
        default: ColumnDefault::None,
        on_update_now: None,
        auto_increment: false,
        comment: Box::default(),
        own_charset: false,
        generated: None,
        visibility: nfold_catalog::Visibility::Visible,
        histogram: None,
    };
    let part = |column| IndexPart {
        column,
        prefix_len: None,
        desc: false,
    };
    TableDef {
        id: DICTIONARY,
        schema: "mysql".into(),
        name: "#dictionary".into(),
        columns: vec![
            column("kind", ColumnType::new(TypeKind::TinyInt).with_unsigned()),
            column("id", binary(TypeKind::VarBinary(700))),
            column("data", binary(TypeKind::Blob(TextSize::Long))),
        ],
        indexes: vec![IndexDef {
            id: IndexId(INDEX_ID),
            name: "PRIMARY".into(),
            kind: IndexKind::Primary,
            parts: vec![part(0), part(1)],
            root,
            comment: Box::default(),
            btree: false,
            generated: false,
            visible: true,
        }],
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        bound: nfold_catalog::BoundExprs::default(),
        collation: CollationId(63),
        options: TableOptions::default(),
        space,
        row_version: 0,
        create_time: 0,
        relation: nfold_catalog::Relation::Table,
    }
}

/// Takes `n` ids for tables and indexes (D2).
pub(crate) fn take_ids(store: &Store, space: SpaceId, n: u64) -> Result<u64, Stop> {
    let mut mtr = store.mtr();
    mtr.reserve(256, space, 0).map_err(lift)?;
    let page = mtr.latch(PageId { space, page: 0 }).map_err(lift)?;
    let first = mtr.u64(page, AT_NEXT_ID).max(FIRST_ID);
    mtr.write(page, AT_NEXT_ID, &(first + n).to_le_bytes());
    mtr.commit();
    Ok(first)
}

/// Reads everything.
pub(crate) fn load(
    session: &mut EngineSession,
    table: &Arc<Table>,
) -> Result<Contents, EngineError> {
    let spec = ReadSpec {
        columns: vec![0, 1, 2],
        ..ReadSpec::default()
    };
    let mut read = Read::range(table.clone(), spec, &KeyRange::all(), false);
    let mut contents = Contents::default();
    let mut batch = RowBatch::new();
    loop {
        batch.clear();
        let more = block(|| read.next(session, &mut batch))?;
        for row in batch.iter() {
            take_row(table, row, &mut contents)?;
        }
        if !more {
            return Ok(contents);
        }
    }
}

fn take_row(table: &Table, row: &[u8], contents: &mut Contents) -> Result<(), EngineError> {
    let layout = table.layout();
    let field = |n| layout.get(row, n).map_err(|_| table.corrupt_row());
    let (kind, id, data) = (field(0)?, field(1)?, field(2)?);
    let (ValueRef::UInt(kind), Some(id), Some(data)) = (kind, id.as_bytes(), data.as_bytes())
    else {
        return Err(table.corrupt_row());
    };
    let bad = |what: &str| {
        EngineError::Dictionary(format!(
            "object of kind {kind}, id {}: {what}",
            id.escape_ascii()
        ))
    };
    match kind {
        1 => contents
            .databases
            .push(DatabaseDef::decode(data).map_err(|e| bad(e.0))?),
        2 => contents
            .tables
            .push(TableDef::decode(data).map_err(|e| bad(e.0))?),
        3 => contents
            .accounts
            .push(Account::decode(data).map_err(|e| bad(e.0))?),
        4 => {
            let (Ok(id), Some((space, rest))) = (id.try_into(), data.split_first_chunk::<4>())
            else {
                return Err(bad("not a leftover"));
            };
            let root = rest
                .first_chunk::<4>()
                .ok_or_else(|| bad("not a leftover"))?;
            contents.leftovers.push((
                u64::from_be_bytes(id),
                u32::from_le_bytes(*space),
                u32::from_le_bytes(*root),
            ));
        }
        5 => contents
            .views
            .push(StoredView::decode(data).map_err(|e| bad(e.0))?.0),
        // Read when a channel starts.
        6 | 7 => {}
        8 => {
            let table = id.try_into().map(u64::from_be_bytes);
            let table = TableId(table.map_err(|_| bad("not a table id"))?);
            match StoredStats::decode(data) {
                Ok(stats) => contents.statistics.push((table, stats)),
                Err(e) => tracing::warn!(table = table.0, field = e.0, "unreadable statistics"),
            }
        }
        _ => return Err(bad("unknown kind")),
    }
    Ok(())
}

fn encode_row(
    table: &Table,
    kind: ObjectKind,
    id: &[u8],
    data: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), EngineError> {
    let values = [
        ValueRef::UInt(kind as u64),
        ValueRef::Bytes(id),
        ValueRef::Bytes(data),
    ];
    table
        .layout()
        .encode(values, out)
        .map_err(|_| table.corrupt_row())
}

/// The stored data of an object.
pub(crate) fn get(
    session: &mut EngineSession,
    table: &Arc<Table>,
    kind: ObjectKind,
    id: &[u8],
) -> Result<Option<Vec<u8>>, EngineError> {
    let Some(row) = find(session, table, kind, id)? else {
        return Ok(None);
    };
    let data = table.layout().get(&row, 2);
    let data = data.map_err(|_| table.corrupt_row())?;
    Ok(data.as_bytes().map(<[u8]>::to_vec))
}

/// The stored row of an object, locked for change.
fn find(
    session: &mut EngineSession,
    table: &Arc<Table>,
    kind: ObjectKind,
    id: &[u8],
) -> Result<Option<Vec<u8>>, EngineError> {
    let mut points = EqualityKeys::new();
    let values = [ValueRef::UInt(kind as u64), ValueRef::Bytes(id)];
    let mut key = Vec::new();
    table.key_layout(0).encode_values(values, &mut key)?;
    points.push(&key);
    let spec = ReadSpec {
        lock: RowLock::Exclusive,
        columns: vec![0, 1, 2],
        ..ReadSpec::default()
    };
    let mut read = Read::points(table.clone(), spec, points);
    let mut batch = RowBatch::new();
    while block(|| read.next(session, &mut batch))? {}
    Ok((!batch.is_empty()).then(|| batch.row(0).to_vec()))
}

/// Writes an object: a new row, or another value of the old one. Part of the session's transaction.
pub(crate) fn put(
    session: &mut EngineSession,
    table: &Arc<Table>,
    kind: ObjectKind,
    id: &[u8],
    data: &[u8],
) -> Result<(), EngineError> {
    match find(session, table, kind, id)? {
        Some(old) => {
            let mut op = UpdateOp::new(table.clone());
            encode_row(table, kind, id, data, op.row(&old, None))?;
            block(|| session.update(&mut op))?;
        }
        None => {
            let mut op = InsertOp::new(table.clone());
            encode_row(table, kind, id, data, op.row())?;
            block(|| session.insert(&mut op))?;
        }
    }
    Ok(())
}

/// Removes an object; whether it was there. Part of the session's transaction.
pub(crate) fn remove(
    session: &mut EngineSession,
    table: &Arc<Table>,
    kind: ObjectKind,
    id: &[u8],
) -> Result<bool, EngineError> {
    let Some(old) = find(session, table, kind, id)? else {
        return Ok(false);
    };
    let mut op = DeleteOp::new(table.clone());
    op.row(&old, None);
    block(|| session.delete(&mut op))?;
    Ok(true)
}

/// Removes a table's definition and its statistics. Part of the session's transaction.
pub(crate) fn remove_table(
    session: &mut EngineSession,
    table: &Arc<Table>,
    gone: TableId,
) -> Result<(), EngineError> {
    let id = gone.0.to_be_bytes();
    remove(session, table, ObjectKind::Table, &id)?;
    remove(session, table, ObjectKind::Statistics, &id)?;
    Ok(())
}

/// The id of an account's row.
pub(crate) fn account_id(user: &str, host: &str) -> Vec<u8> {
    [user.as_bytes(), b"\0", host.to_ascii_lowercase().as_bytes()].concat()
}
