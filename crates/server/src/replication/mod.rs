//! The thread of a replication channel: reads the source's events and applies them.
//!
//! # Picture
//! ```text
//! channel.rs   connect, read an event ─▶ applier.rs   transactions, positions, statements
//!   ▲ retry                               │    branches.rs  XA transactions
//!   │                                     │    filter.rs    which databases are followed
//!   │                                     │    rows.rs      row events
//!   └── lost connection                   │    context.rs   the settings of statements
//!                                         │    mariadb.rs   statements of a MariaDB
//!                                         └─▶ fiber.rs      a session on this thread
//! ```
//! # Invariants
//! - P1. An event is applied, or the thread ends with an error that names it. The coordinates move
//!   only with what is applied.

mod applier;
mod branches;
mod channel;
mod context;
mod fiber;
mod filter;
mod mariadb;
mod rows;

pub(crate) use channel::launch;
pub(crate) use rows::apply as apply_rows;
