//! The undo log: the previous version of every changed row, kept until no snapshot can need it.
//!
//! # Picture
//! ```text
//!  undo space   page 0: space header, user area: see `spaces`
//!  stream 0     [page 7: r r r r r] [page 12: r r r C r] [page 31: r r  ← current]     one current page each, append only
//!  stream 1     [page 8: r C r r ...]
//!
//!  page   64 u16 bytes used   66 u16 records   68 12 bytes reserved   80 records, back to back
//!  long   64 u64 transaction id  72 u32 page and 76 u16 offset of the record  78 u16 length here  80 u32 next page or 0
//!         84 u32 undo number     88 bytes of a body that does not fit in a page (page type 0x22)
//!
//!  record  0 u16 length in the page   2 u8 kind   3 u8 flags (1: the body is in overflow pages, 2: purge skips it)
//!          4 u32 undo number          8 u48 transaction id      14 u16 row flags of the previous version
//!         16 u64 table id            24 u64 previous record of this transaction
//!         ── commit, end and unprepare records stop here ──
//!         32 u64 undo pointer of the row's previous version     40 u48 its transaction id    46 u16 key length
//!         48 u32 body length         52 u32 first overflow page
//!         56 body: key, then the row image of the previous version; of a prepare record two strings
//!
//!  pointer  page: 32 bits, the highest names the file (`spaces`) · offset: 16 · low bits of the undo number: 16        0: none
//! ```
//! All integers little-endian. Format v1: frozen.
//!
//! # Invariants
//! - U1: a record is appended in the mini-transaction that changes the row; a commit's or
//!   rollback's record in the one that ends it.
//! - U2: a transaction appends to one stream, so its pages come in order, and its last record is on
//!   the last of them.
//! - U3: as long as a data record of an ended transaction is on disk, so is its commit or end
//!   record: a page with such a record is freed only after the other pages of that transaction.
//!   (Otherwise recovery would undo a committed change.)
//! - U4: a page is freed only when it is no stream's current page, and every transaction with a
//!   record on it has ended at or below purge's floor and was purged. So a reader with an open
//!   snapshot finds every record that its rows lead to.
//! - U5: undo numbers of a transaction only grow, also over a rollback to a savepoint; the chain
//!   from its last record skips what was undone.
//!
//! # Concurrency
//! A stream's current page is latched from `prepare` to the end of the mini-transaction; that latch
//! is the stream's order. Latch order: tree pages, then the undo page, then the space header.
//! Readers are optimistic: copy, check, validate. Page use is counted in memory, per page and
//! transaction, in padded shards, and rebuilt at start.
//!
//! # Failure
//! At start all pages are scanned. A transaction without a commit or end record is undone in the
//! background, unless it is prepared; one that ended is purged once more, which changes nothing the
//! second time. A chain that ends in a freed page was purged to the end before.
//!
//! # Not here
//! Undoing and purging rows: [`RowApplier`](crate::RowApplier).

mod log;
mod pages;
mod read;
mod record;
mod redo;
mod scan;
mod spaces;

pub use log::{TrxUndo, UndoLog, UndoPrep};
pub use record::{MAX_BODY, OldVersion, RowChange, UndoKind, UndoPtr, UndoRecord};
pub use redo::{OP_APPEND, UNDO_OP_FIRST, UNDO_OP_LAST, UndoRedo};

pub(crate) use log::Ended;
pub(crate) use spaces::UndoSpaces;

use nfold_store::{PAGE_HEADER, PAGE_SIZE};

/// Page type of overflow pages of the undo log.
pub const UNDO_OVERFLOW: u16 = 0x22;

const USED: usize = PAGE_HEADER;
const COUNT: usize = PAGE_HEADER + 2;
const RECORDS: usize = PAGE_HEADER + 16;
/// Bytes for records on a page.
const CAPACITY: usize = PAGE_SIZE - RECORDS;

const LONG_TRX: usize = PAGE_HEADER;
const LONG_OWNER: usize = PAGE_HEADER + 8;
const LONG_OFFSET: usize = PAGE_HEADER + 12;
const LONG_LEN: usize = PAGE_HEADER + 14;
const LONG_NEXT: usize = PAGE_HEADER + 16;
const LONG_NO: usize = PAGE_HEADER + 20;
const LONG_DATA: usize = PAGE_HEADER + 24;
const LONG_CAPACITY: usize = PAGE_SIZE - LONG_DATA;
