//! The binary log as MySQL and MariaDB write it: events, rows, and GTID sets. Bytes in, values out.
//!
//! # Picture
//! ```text
//! packet or file ─ EventReader ─► Header + Event ┬─ TableMap ─┐
//!                  (checksum)                    ├─ RowsEvent ─┴─ Rows: values of each column
//!                                                ├─ QueryEvent: a statement with its context
//!                                                ├─ Gtid, Xid, XaPrepare: bounds of a transaction
//!                                                └─ PayloadEvent ─► events again
//! ```
//! # Invariants
//! - B1: an event that this crate does not know is [`Event::Unknown`], never an empty one. The
//!   caller must not pass it over.
//! - B2: no length or offset of an event is trusted; a damaged event is a [`BinlogError`].
//! - B3: a row's values are read only with types that [`ColumnFormat::stores`] has compared.
//!
//! # Not here
//! Connections to a source and the state of a channel are in `nfold-replica`. Changes of tables are
//! the executor's.
//!
//! Source of the formats: MySQL Internals, "Replication Protocol" and `libs/mysql/binlog/event`;
//! `mariadb` names MariaDB's.
#![forbid(unsafe_code)]

mod branch;
mod collations;
mod error;
mod event;
mod gtid;
mod gtid_set;
mod json_diff;
mod mariadb;
mod payload;
mod query;
mod rows;
mod table_map;
mod tagged;
mod value;
pub mod write;

#[cfg(test)]
mod tests;

pub use branch::{BranchId, XaPrepareEvent};
pub use collations::collation_of_source;
pub use error::BinlogError;
pub use event::{
    Event, EventReader, FormatDescription, GtidEvent, Header, MariaDbGtid, TransactionForm,
    event_name,
};
pub use gtid::{Gtid, SourceUuid, Tag};
pub use gtid_set::GtidSet;
pub use json_diff::apply_diffs;
pub use payload::PayloadEvent;
pub use query::{QueryContext, QueryEvent};
pub use rows::{RowChangeKind, RowValue, Rows, RowsEvent};
pub use table_map::TableMap;
pub use value::ColumnFormat;
