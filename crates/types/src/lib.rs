//! SQL types, values, collations, DECIMAL, temporal, row and key encoding.
//!
//! Everything here is a pure function of its arguments: no I/O, no clock, no shared state. MySQL
//! 8.4 gives the meaning.
// But for `tail`, which says why.
#![deny(unsafe_code)]

mod append_cursor;
pub mod base64;
pub mod charset;
mod checkpoint;
pub mod collation;
mod collation_id;
pub mod compare;
pub mod convert;
pub mod decimal;
pub mod error;
pub mod key;
mod locale;
pub mod long_number;
pub mod number;
pub mod row;
pub mod sql_type;
pub mod temporal;
#[cfg(test)]
mod testing;
pub mod value;
pub mod wire;

pub use charset::Charset;
pub use checkpoint::{CHECKPOINT_WORK, Checkpoint, NoCheckpoint, append_in_pieces, copy_in_pieces};
pub use collation::{Collation, CollationId};
pub use decimal::Decimal;
pub use error::{ErrorCode, Level, SqlError, Warning, Warnings, WarningsMark};
pub use locale::Locale;
pub use sql_type::{ColumnType, TextSize, TypeKind};
pub use temporal::{Date, DateTime, Time, Timestamp};
pub use value::{Value, ValueRef};
