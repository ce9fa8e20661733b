//! Makes a replica of a running MySQL or MariaDB, and compares the two: the client side of `nfold
//! follow` and `nfold verify`.
//!
//! # Picture
//! ```text
//! check ─▶ snapshot ─▶ definitions ─▶ rows, in parallel ─▶ accounts, views ─▶ position, channel
//!            short lock               workers with a connection to both sides
//! ```
//! # Invariants
//! - C1: all rows are read from transactions that see the same moment, and the channel starts at
//!   this moment. A copy that a later start continues has several such moments
//!   ([`unfinished`](crate::unfinished)).
//! - C2: what is not copied is named: it is a [`Finding`], and an error ends the copy.
//! - C3: no XA transaction is prepared at this moment. The rows of such a transaction would be
//!   neither in the snapshot nor in the events behind it.
//!
//! # Not here
//! The server that takes the copy (`nfold`), the events behind it (`nfold-server`).
#![forbid(unsafe_code)]

mod branches;
mod check;
mod copy;
mod error;
mod literal;
mod progress;
mod rows;
mod schema;
mod snapshot;
mod unfinished;
mod url;
mod verify;

pub use copy::{Copied, CopyOptions, Target, copy};
pub use error::{CopyError, Finding};
pub use snapshot::Position;
pub use url::SourceUrl;
pub use verify::{VerifyArgs, verify};
